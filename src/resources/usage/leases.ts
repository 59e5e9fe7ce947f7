import { sql } from 'kysely';
import type { Account, Book } from '#core/account';
import { isObject } from '#core/json';
import type { LeaseRequest, LeaseGrant, LeaseSource } from '#core/lease';
import type { Store } from '#store/open';
import { closedHolder } from './holders.ts';
import { withMonths } from './months.ts';

export interface LeasesOptions {
  readonly store: Store;
  readonly holder: string;
  /** Clock in seconds since 1970, for tests; absent: the clock of the database. */
  readonly now?: () => number;
}

/** Holders are asked on it to give back what they do not need. */
export const recallTopic = 'leases';
/** Accounts of a notification: its payload has at most 7,900 bytes. */
export const mostTold = 50;

/** Takes leases of one holder from the database: one round trip for all requests, exact under concurrent requests of other holders. */
export function openLeases({ store, holder, now }: LeasesOptions): LeaseSource {
  const at = () => now?.() ?? null;
  return {
    async lease(asks) {
      if (asks.length === 0) return [];
      const asked = JSON.stringify(asks.map(({ account, ...ask }) => ({ ...stored(account), ...ask })));
      const { rows } = await withMonths(
        store,
        async () => monthsOf(asks),
        () =>
          sql<LeaseGrant & { contested: boolean }>`
          select granted, spent, "left", contested from account_lease(${holder}, ${asked}::jsonb, ${at()}::double precision)`.execute(store.db),
      );
      if (rows.length === 0) throw closedHolder();
      await recall(asks.filter((_, one) => rows[one]!.contested));
      return rows.map(({ granted, spent, left }) => ({ granted, spent, left }));
    },
    async giveBack(returns) {
      if (returns.length === 0) return;
      const given = JSON.stringify(returns.map(({ account, ...one }) => ({ ...stored(account), ...one })));
      const { rows } = await withMonths(
        store,
        async () => monthsOf(returns),
        () => sql<{ open: boolean }>`select account_give_back(${holder}, ${given}::jsonb, ${at()}::double precision) as open`.execute(store.db),
      );
      if (!rows[0]!.open) throw closedHolder();
    },
    onRecall(listen) {
      store.subscribe(recallTopic, (change) => {
        if (change.type !== 'change') return; // a missed recall is reported again with the next request
        const told: unknown = change.payload;
        if (isRecall(told) && told.holder !== holder) for (const account of told.accounts) listen(accountOf(account));
      });
    },
  };

  async function recall(asks: readonly LeaseRequest[]): Promise<void> {
    const accounts = asks.slice(0, mostTold).map(({ account }) => stored(account));
    // the grant is valid even if the notification failed
    if (accounts.length > 0) await store.publish(recallTopic, { holder, accounts }).catch(() => {});
  }
}

/**
 * What all holders together have booked of accounts, in their order; of those of a minute, what they have reported of the last 58 seconds: what is older may be
 * forgotten by who used it. @throws Fault `overloaded`
 */
export async function spentOf({ db }: Pick<Store, 'db'>, accounts: readonly Account[]): Promise<readonly number[]> {
  const all = accounts.map(stored);
  const column = (of: (account: StoredAccount) => string) => sql`${all.map(of)}::text[]`;
  const { rows } = await sql<{ spent: number }>`
    select coalesce(case kind
      when 'requests' then (select sum(requests) from request_second where owner = asked.owner and second > floor(extract(epoch from clock_timestamp())) - 59)
      when 'train' then book.train when 'inference' then book.inference end, 0)::double precision as spent
    from unnest(${column(({ owner }) => owner)}, ${column(({ kind }) => kind)}, ${column(({ month }) => month)})
      with ordinality as asked (owner, kind, month, place)
      left join spent as book on book.owner = asked.owner and book.month = asked.month
    order by place`.execute(db);
  return rows.map(({ spent }) => spent);
}

const tokens = 'tokens of ';

/** An account as the database names it: tokens of a minute are counted as requests are, in a book of their own. */
function stored({ owner, kind, month }: Account): StoredAccount {
  return kind === 'tokens' ? { owner: tokens + owner, kind: 'requests', month } : { owner, kind, month };
}

function accountOf({ owner, kind, month }: StoredAccount): Account {
  const isTokens = owner.startsWith(tokens);
  return { owner: (isTokens ? owner.slice(tokens.length) : owner) as Book, kind: isTokens ? 'tokens' : kind, month };
}

type StoredAccount = Omit<Account, 'owner'> & { readonly owner: string };

interface Recall {
  readonly holder: string;
  readonly accounts: readonly StoredAccount[];
}

const isRecall = (payload: unknown): payload is Recall => isObject(payload) && typeof payload['holder'] === 'string' && Array.isArray(payload['accounts']);

const monthsOf = (about: readonly { readonly account: Account }[]): string[] => about.map(({ account }) => account.month).filter((month) => month !== '');
