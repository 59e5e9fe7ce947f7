import { expect, test } from 'vitest';
import type { Account, Book, Charge } from '#core/account';
import { Fault } from '#core/fault';
import { permitKind, type LeaseRequest, type LeaseGrant, type LeaseSource, type LeaseReturn } from '#core/lease';
import { openHolders } from '#resources/usage/holders';
import { openLeases } from '#resources/usage/leases';
import { booksOf } from '../support/books-of.ts';
import { onBothDatabases } from '../support/databases.ts';
import { usageRow } from '../support/usage-rows.ts';
import { booksModel, booksOf as booksOfRow } from './books-model.ts';

const seeds = 25;
const operations = 60;

onBothDatabases('the model of the books', ({ shared }) => {
  const store = shared({ migrations: [new URL('../../src/resources/usage/', import.meta.url)] });

  test.each(Array.from({ length: seeds }, (_, seed) => seed + 1))('and the database grant, book and refuse the same, seed %i', async (seed) => {
    const chance = generator(seed);
    const isAdmittedBy = generator(seed + 1000);
    const upTo = (most: number) => Math.floor(chance() * (most + 1));
    const oneOf = <One>(list: readonly One[]) => list[upTo(list.length - 1)]!;
    let seconds = Date.UTC(2026, 10, 21) / 1000;
    const now = () => seconds;

    const usage = booksOf(store());
    const holders = openHolders(store(), now);
    for (const one of await holders.list()) if (!one.closedAt) await holders.close(one.id); // those of the seed before
    const model = booksModel(now);
    const pairs: { id: string; modelled: string; real: LeaseSource; model: LeaseSource; journal: string; byte: number }[] = [];
    let turns = 0;
    /** As one says who has heard all answers, or has missed some, or whose message was overtaken. */
    const told = (account: Account): LeaseReturn => {
      const late = chance() < 0.1 ? upTo(5) : 0;
      const turn = ++turns - late;
      return {
        account,
        turn,
        heard: chance() < 0.6 ? turn - 1 : Math.max(0, turn - 1 - upTo(20)),
        amount: chance() < 0.5 ? 0 : upTo(60) / 2,
        ...used(account),
      };
    };
    const enter = async () => {
      const [id, modelled] = [await holders.enter({ machine: 'test' }), model.enter()];
      pairs.push({ id, modelled, real: openLeases({ store: store(), holder: id, now }), model: model.source(modelled), journal: `${id}/0`, byte: 0 });
    };
    await enter();
    await enter();

    const base = seed * 1000;
    const [users, teams, keys] = [[base, base + 1], [base], [base, base + 1]];
    const owners = [...users.map((id) => `user:${id}` as const), ...teams.map((id) => `team:${id}` as const), ...keys.map((id) => `key:${id}` as const)];
    /** The month of an owner, a day of it, or a model. */
    const bookIn = (month: string): Book => {
      const owner = oneOf(owners);
      return oneOf<Book>([owner, owner, `${owner}@${month}-01`, `${owner}@${month}-02`, `${owner}/large`]);
    };
    const months = ['2026-11', '2026-12'];
    const account = (): Account => {
      const kind = oneOf(['inference', 'inference', 'train', 'usd', 'requests', 'tokens', 'streams'] as const);
      if (permitKind(kind) !== undefined) return { owner: oneOf(owners), kind, month: '' };
      const month = oneOf(months);
      return { owner: bookIn(month), kind, month };
    };
    const used = ({ kind }: Account): Pick<LeaseRequest, 'used'> =>
      (kind === 'requests' || kind === 'tokens') && chance() < 0.5
        ? { used: Array.from({ length: 1 + upTo(2) }, () => ({ count: 1 + upTo(3), ageSeconds: upTo(70) })) }
        : {};
    const ask = (): LeaseRequest => {
      const one = account();
      const least = upTo(40) / 4;
      const waiting = least + upTo(40);
      return { ...told(one), limit: oneOf([0, 40, 500, 10_000]), least, waiting, wish: waiting + upTo(2000) };
    };
    const both = async <Result>(real: () => Promise<Result>, modelled: () => Promise<Result>) => {
      const [one, other] = [await outcome(real), await outcome(modelled)];
      expect(one).toEqual(other);
    };

    for (let step = 0; step < operations; step++) {
      const pair = oneOf(pairs);
      const what = chance();
      if (what < 0.45) {
        const asks = Array.from({ length: 1 + upTo(3) }, ask);
        await both<readonly LeaseGrant[]>(
          () => pair.real.lease(asks),
          () => pair.model.lease(asks),
        );
      } else if (what < 0.6) {
        const returns = Array.from({ length: 1 + upTo(2) }, () => told(account()));
        await both(
          () => pair.real.giveBack(returns),
          () => pair.model.giveBack(returns),
        );
      } else if (what < 0.9) {
        const rows = Array.from({ length: upTo(4) }, () => {
          const numbers = { planTokens: upTo(60), inputTokens: upTo(60), outputTokens: upTo(60), costUsd: chance() < 0.3 ? null : upTo(64) / 8 };
          const at = Date.parse(oneOf(months)) + upTo(2 * 86_400_000 - 1);
          const route = chance() < 0.5 ? 'large' : undefined;
          const who = upTo(1);
          const row = usageRow({
            at,
            route,
            userId: users[who]!,
            keyId: keys[who]!,
            teamIds: chance() < 0.5 ? teams : [],
            balance: oneOf(['inference', 'train']),
            ...numbers,
          });
          const charges = booksOfRow(row).flatMap((book) => ([row.balance, 'usd'] as const).map((kind): Charge => `${kind} ${book}`));
          return { ...row, charges: charges.filter(() => isAdmittedBy() < 0.7) };
        });
        const again =
          chance() < 0.2 ? model.rows.slice(0, 1).map((row) => (row.planTokens % 2 === 0 ? row : { ...row, outputTokens: row.outputTokens + 1 })) : [];
        const from = chance() < 0.9 ? pair.byte : Math.max(0, pair.byte - 5);
        const shipment = { journal: pair.journal, from, to: from + 10, rows: [...rows, ...again] };
        await both<readonly number[]>(
          () => usage.ship({ ...shipment, holder: pair.id, rows: Buffer.from(JSON.stringify(shipment.rows)) }),
          async () => model.ship({ ...shipment, holder: pair.modelled }),
        );
        pair.byte = model.position(pair.journal);
        expect(await usage.position(pair.journal)).toBe(pair.byte);
      } else if (what < 0.94) {
        await holders.close(pair.id);
        model.close(pair.modelled);
      } else if (what < 0.96) await enter();
      else if (what < 0.98) {
        await both(
          () => holders.seen(pair.id, 30),
          async () => model.seen(pair.modelled, 30),
        );
      } else {
        await holders.endSilent();
        model.endSilent();
      }
      seconds += upTo(20) / 4;
    }
    for (const { owner, month } of model.owners) expect(await usage.spentOf(owner, month)).toEqual(model.spentOf(owner, month));
  });
});

async function outcome<Result>(work: () => Promise<Result>): Promise<Result | string> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Fault) return error.code;
    throw error;
  }
}

/** Mulberry32: the same numbers from 0 to 1 for the same seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
