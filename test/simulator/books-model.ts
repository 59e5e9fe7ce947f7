import { accountName, isAlwaysKept, type Account, type Book, type Owner } from '#core/account';
import { Fault } from '#core/fault';
import { grantOf, permits, type LeaseRequest, type LeaseGrant, type LeaseSource, type LeaseReturn } from '#core/lease';
import { dayOf, monthOf } from '#core/plan';
import type { UsageRow } from '#core/usage-row';
import { isSame } from '../support/fakes/shipped-books.ts';

/** The rules of the books on disk, in memory: what the database must do, for the simulator and to hold the database against. */
export interface BooksModel {
  enter(): string;
  /** The holder lives, and its streams take so long at most. */
  seen(holder: string, streamSeconds: number): void;
  /** Ends the permits of holders that have been silent for too long. */
  endSilent(): void;
  /** Frees what a holder holds. */
  close(holder: string): void;
  source(holder: string): LeaseSource;
  /** Books rows, each once: in the sums, and in the leases of who spent. */
  book(holder: string, rows: readonly UsageRow[]): readonly number[];
  /** What `ship` of resources/usage does. @throws Fault `conflict` when the journal's position stands elsewhere */
  ship(shipment: { holder: string; journal: string; from: number; to: number; rows: readonly UsageRow[] }): readonly number[];
  position(journal: string): number;
  spentOf(owner: Book, month: string): BookedSums;
  readonly rows: readonly UsageRow[];
  /** All accounts of which something is leased, with what is spent and what holders have of it. */
  readonly balances: readonly (Account & { readonly spent: number; readonly leased: number })[];
  /** Who has a counter, of which month. */
  readonly owners: readonly { readonly owner: Book; readonly month: string }[];
  /** Asks the holders for all that they do not need. */
  recall(): void;
  /** What all open holders hold of all accounts and have not settled. */
  readonly outstanding: number;
}

interface BookedSums {
  inference: number;
  train: number;
  usd: number;
  requests: number;
  inputTokens: number;
  outputTokens: number;
}

interface Lease {
  readonly holder: string;
  readonly account: Account;
  granted: number;
  settled: number;
  turn: number;
  moved: number;
  reported: number;
}

/**
 * @param now seconds since 1970
 * @param countsUnknown do requests that a closed holder was permitted, and may have made, count for their minute?
 */
export function booksModel(now: () => number, countsUnknown = true): BooksModel {
  const open = new Set<string>();
  const lives = new Map<string, { seenAt: number; streamSeconds: number }>();
  const listeners = new Map<string, (account: Account) => void>();
  const leases = new Map<string, Lease>();
  const spent = new Map<string, BookedSums>();
  const rows = new Map<string, UsageRow>();
  const positions = new Map<string, number>();
  const uses: { readonly owner: string; readonly second: number; readonly count: number }[] = [];
  let entered = 0;

  const nameOf = (holder: string, account: Account) => `${holder} ${accountName(account)}`;
  const leasesOf = (account: Account) => [...leases.values()].filter((lease) => accountName(lease.account) === accountName(account));
  const heldOf = (lease: Lease | undefined) => (lease ? lease.granted - lease.settled : 0);
  const sum = (amounts: readonly number[]) => amounts.reduce((all, one) => all + one, 0);

  function sumsOf(owner: string, month: string): BookedSums {
    const sums = spent.get(`${owner} ${month}`) ?? { inference: 0, train: 0, usd: 0, requests: 0, inputTokens: 0, outputTokens: 0 };
    spent.set(`${owner} ${month}`, sums);
    return sums;
  }

  /** A book that no limit has asked for yet is opened with what was spent before. */
  function opened(owner: Book, month: string): void {
    if (isAlwaysKept(owner) || spent.has(`${owner} ${month}`)) return;
    for (const row of rows.values()) if (monthOf(row.at) === month && booksOf(row).includes(owner)) add(sumsOf(owner, month), row);
    sumsOf(owner, month);
  }

  function spentNow({ owner, kind, month }: Account): number {
    if (kind === 'streams') return 0;
    if (kind !== 'requests' && kind !== 'tokens') return sumsOf(owner, month)[kind];
    const whose = usesOf({ owner, kind });
    return sum(uses.filter((use) => use.owner === whose && use.second >= Math.floor(now()) - 60).map(({ count }) => count));
  }

  /** Permits that were used, but for those that are known already, count from the second of their use. @returns how many there were */
  function noteUsed(account: Account, used: LeaseReturn['used'] = [], known: number): number {
    let fresh = 0;
    for (const { count, ageSeconds } of used) {
      if (!Number.isInteger(count)) throw new Error(`invalid input syntax for type bigint: "${count}"`); // the database takes no fractions
      const more = Math.max(0, count - known);
      known = Math.max(0, known - count);
      fresh += more;
      if (ageSeconds < 61) uses.push({ owner: usesOf(account), second: Math.floor(now() - ageSeconds), count: more });
    }
    return fresh;
  }

  /** Takes what a holder says with each message. @returns false where a later message has overtaken this one */
  function told(holder: string, { account, turn, heard, amount, used }: LeaseReturn): boolean {
    const lease = leases.get(nameOf(holder, account));
    if (lease && lease.turn >= turn) return false;
    if (lease && lease.turn > heard) lease.granted -= lease.moved;
    else if (lease) lease.reported = 0;
    const fresh = noteUsed(account, used, lease?.reported ?? 0);
    if (!lease) return true;
    lease.settled += fresh;
    lease.reported += fresh;
    lease.turn = turn;
    lease.moved = -Math.min(Math.max(amount, 0), lease.granted);
    lease.granted += lease.moved;
    return true;
  }

  function requireOpen(holder: string): void {
    if (!open.has(holder)) throw new Fault('conflict', 'This process was closed by another one: it holds nothing any more.');
  }

  function grant(holder: string, ask: LeaseRequest): LeaseGrant {
    if (ask.account.month !== '') opened(ask.account.owner, ask.account.month);
    const isTimely = told(holder, ask);
    const reported = sum((ask.used ?? []).map(({ count }) => count));
    const own = leases.get(nameOf(holder, ask.account)) ?? { holder, account: ask.account, granted: 0, settled: 0, turn: ask.turn, moved: 0, reported };
    const held = heldOf(own);
    const others = sum(
      leasesOf(ask.account)
        .filter((lease) => lease.holder !== holder)
        .map((lease) => Math.max(heldOf(lease), 0)),
    );
    const booked = spentNow(ask.account);
    const granted = isTimely ? grantOf(ask, ask.limit - booked - others - held, open.size) : 0;
    if (granted > 0) leases.set(nameOf(holder, ask.account), own);
    own.granted += granted;
    own.moved += granted;
    if (others > 0 && granted < Math.max(ask.least, ask.waiting)) for (const [other, listen] of listeners) if (other !== holder) listen(ask.account);
    return { granted, spent: booked, left: ask.limit - booked - others - Math.max(held + granted, 0) };
  }

  /** @returns which rows, by their places, were left out because another one has their key */
  function book(holder: string, booked: readonly UsageRow[]): readonly number[] {
    const leftOut: number[] = [];
    for (const [place, row] of booked.entries()) {
      const name = `${row.requestId} ${row.step} ${monthOf(row.at)}`;
      const before = rows.get(name);
      if (before && !isSame(before, row)) leftOut.push(place);
      if (before) continue;
      rows.set(name, row);
      const month = monthOf(row.at);
      for (const owner of booksOf(row)) if (isAlwaysKept(owner) || spent.has(`${owner} ${month}`)) add(sumsOf(owner, month), row);
      for (const charge of row.charges ?? []) {
        const [kind] = charge.split(' ', 1) as ['inference' | 'train' | 'usd'];
        const lease = leases.get(nameOf(holder, { owner: charge.slice(kind.length + 1) as Book, kind, month }));
        if (lease) lease.settled += amountsOf(row)[kind] ?? 0;
      }
    }
    return leftOut;
  }

  return {
    enter() {
      const holder = `holder-${++entered}`;
      open.add(holder);
      lives.set(holder, { seenAt: now(), streamSeconds: 3600 });
      return holder;
    },
    seen(holder, streamSeconds) {
      requireOpen(holder);
      lives.set(holder, { seenAt: now(), streamSeconds });
    },
    endSilent() {
      for (const [name, { holder, account }] of leases) {
        const { seenAt, streamSeconds } = lives.get(holder)!;
        const silence = now() - seenAt;
        const isOver =
          silence > permits.requestsSilentSeconds &&
          (account.kind === 'requests' || account.kind === 'tokens' || silence > streamSeconds + permits.streamsSilentSeconds);
        if (isOver && account.month === '') leases.delete(name);
      }
    },
    close(holder) {
      open.delete(holder);
      listeners.delete(holder);
      const seenAt = lives.get(holder)?.seenAt ?? -Infinity;
      const second = Math.floor(Math.min(now(), seenAt + permits.useMilliseconds / 1000));
      const mayHaveUsed = countsUnknown && seenAt > now() - permits.requestsSilentSeconds;
      for (const [name, lease] of leases) {
        if (lease.holder !== holder) continue;
        if (mayHaveUsed && (lease.account.kind === 'requests' || lease.account.kind === 'tokens') && heldOf(lease) > 0)
          uses.push({ owner: usesOf(lease.account), second, count: Math.ceil(heldOf(lease)) });
        leases.delete(name);
      }
    },
    source: (holder) => ({
      async lease(asks) {
        requireOpen(holder);
        return asks.map((ask) => grant(holder, ask));
      },
      async giveBack(returns) {
        requireOpen(holder);
        for (const one of returns) {
          const lease = leases.get(nameOf(holder, one.account));
          const isFirst = lease && lease.turn <= one.heard && one.amount > 0 && !one.used?.length;
          if (isFirst && lease.granted - one.amount === lease.settled) leases.delete(nameOf(holder, one.account));
          else told(holder, one);
        }
      },
      onRecall: (listen) => void listeners.set(holder, listen),
    }),
    ship({ holder, journal, from, to, rows: shipped }) {
      const stands = positions.get(journal) ?? 0;
      if (stands >= to) return [];
      if (stands !== from) throw new Fault('conflict', `The journal ${journal} has been shipped up to byte ${stands}, not ${from}.`);
      positions.set(journal, to);
      return book(holder, shipped);
    },
    book,
    position: (journal) => positions.get(journal) ?? 0,
    spentOf: (owner, month) => ({ ...sumsOf(owner, month) }),
    get rows() {
      return [...rows.values()];
    },
    get balances() {
      const accounts = new Map<string, Account & { spent: number; leased: number }>();
      for (const lease of leases.values()) {
        const name = accountName(lease.account);
        const one = accounts.get(name) ?? { ...lease.account, spent: spentNow(lease.account), leased: 0 };
        one.leased += Math.max(0, heldOf(lease));
        accounts.set(name, one);
      }
      return [...accounts.values()];
    },
    get owners() {
      return [...spent.keys()].map((name) => {
        const [owner, month] = name.split(' ') as [Book, string];
        return { owner, month };
      });
    },
    recall() {
      for (const { account } of leases.values()) for (const listen of listeners.values()) listen(account);
    },
    get outstanding() {
      return sum([...leases.values()].map((lease) => Math.max(heldOf(lease), 0)));
    },
  };
}

/** All books that a row belongs to, whether or not they are kept: what `usage_books` says in the database. */
export function booksOf({ userId, teamIds, keyId, route, model, at }: UsageRow): readonly Book[] {
  const owners: readonly Owner[] = [`user:${userId}`, `key:${keyId}`, ...teamIds.map((team): Owner => `team:${team}`)];
  return owners.flatMap((owner): Book[] => [owner, `${owner}@${dayOf(at)}`, `${owner}/${route ?? model}`]);
}

const amountsOf = (row: UsageRow): Partial<Record<'inference' | 'train' | 'usd', number>> => ({ [row.balance]: row.planTokens, usd: row.costUsd ?? 0 });

function add(sums: BookedSums, row: UsageRow): void {
  const amounts = amountsOf(row);
  for (const kind of ['inference', 'train', 'usd'] as const) sums[kind] += amounts[kind] ?? 0;
  sums.requests++;
  sums.inputTokens += row.inputTokens;
  sums.outputTokens += row.outputTokens;
}

/** Under what the uses of a minute are noted. */
const usesOf = ({ owner, kind }: Pick<Account, 'owner' | 'kind'>) => `${owner} ${kind}`;
