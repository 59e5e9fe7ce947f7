import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { newPrivateKey, signingKey, type PublicJwk, type SigningKey } from '#kit/crypto/jwt';
import type { Sealer } from '#kit/crypto/sealing';
import { openLiveValue } from '#store/live-value';
import type { Store } from '#store/open';
import { overloaded } from '#store/sql-error';

/** The keys that sign access tokens, the same on every machine. */
export interface SigningKeys {
  /** The one that signs now; a new one when the last is 30 days old. @throws Fault `overloaded` */
  current(): Promise<SigningKey>;
  /** @returns nothing for a key that is not there, or no longer. @throws Fault `overloaded` where the database is away and may know it */
  find(id: string): Promise<SigningKey | undefined>;
  /** The public halves of all whose tokens may be good. */
  published(): Promise<readonly PublicJwk[]>;
  close(): void;
}

export interface SigningKeysDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
  /** Told of a key that cannot be read. */
  readonly log: (problem: string, cause: unknown) => void;
}

interface Row {
  readonly id: string;
  readonly sealed: Buffer;
  /** Monotonic milliseconds: the database says how old it is. */
  readonly madeAt: number;
}

const day = 86_400_000;
/** A key signs for so long, and is there a day longer than what it has signed. */
const signsMilliseconds = 30 * day;
const keptDays = 32;
const topic = 'signing-keys';
const contextOf = (id: string) => `signing-key/${id}`;

export async function openSigningKeys({ store, seal, clock, log }: SigningKeysDeps): Promise<SigningKeys> {
  const live = await openLiveValue({ store, topic, clock, read: () => read(store, clock) });
  const opened = new Map<string, Promise<SigningKey | undefined>>();

  /** A key that cannot be read signs nothing and vouches for nothing. */
  const open = ({ id, sealed }: Row): Promise<SigningKey | undefined> => {
    const known = opened.get(id);
    if (known) return known;
    const key = (async () => signingKey(id, seal.open(sealed, contextOf(id))))().catch((error: unknown) => {
      log('A signing key of access tokens cannot be read: its tokens are refused.', error);
      return undefined;
    });
    opened.set(id, key);
    return key;
  };
  const all = async () => {
    const keys = await Promise.all(live.value.map(open));
    return live.value.flatMap(({ madeAt }, at) => (keys[at] ? [{ key: keys[at], madeAt }] : []));
  };
  const young = async () => (await all()).find(({ madeAt }) => clock.monotonic() - madeAt < signsMilliseconds)?.key;

  async function make(): Promise<SigningKey> {
    if (!(await live.again())) throw overloaded('The database is away.');
    const other = await young(); // another process was quicker
    if (other) return other;
    const id = randomText(16);
    const sealed = seal.seal(await newPrivateKey(), contextOf(id));
    await store.transaction(async (inside) => {
      await sql`insert into signing_key (id, sealed) values (${id}, ${sealed})`.execute(inside.db);
      await sql`delete from signing_key where made_at < now() - make_interval(days => ${keptDays})`.execute(inside.db);
      await inside.publish(topic, null);
    });
    await live.again();
    return (await young())!;
  }
  let making: Promise<SigningKey> | undefined;
  const current = async () => (await young()) ?? (making ??= make().finally(() => (making = undefined)));

  return {
    current,
    async find(id) {
      const its = () => live.value.find((row) => row.id === id);
      if (!its() && !(await live.again())) throw overloaded('The database is away.');
      const row = its();
      return row && open(row);
    },
    async published() {
      await current();
      return (await all()).map(({ key }) => key.jwk);
    },
    close: () => live.close(),
  };
}

/** The newest first. */
async function read(store: Store, clock: Clock): Promise<readonly Row[]> {
  const { rows } = await sql<Omit<Row, 'madeAt'> & { readonly age: number }>`
    select id, sealed, (extract(epoch from now() - made_at) * 1000)::double precision as age from signing_key order by made_at desc, id`.execute(store.db);
  return rows.map(({ age, ...row }) => ({ ...row, madeAt: clock.monotonic() - age }));
}
