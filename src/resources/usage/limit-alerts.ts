import { createHmac } from 'node:crypto';
import { sql } from 'kysely';
import { partsOf, type Account } from '#core/account';
import { isObject, textOf } from '#core/json';
import type { Clock } from '#kit/async/clock';
import { jobs as openJobs, type Jobs } from '#store/jobs';
import type { Store } from '#store/open';

/** A limit of which 80 or 100 per cent is spent. */
export interface Reached {
  readonly account: Account;
  readonly share: 80 | 100;
  /** In the account's unit. */
  readonly limit: number;
  readonly used: number;
}

export interface LimitAlerts {
  /** Has the operator told, once in the month or day of the limit, and again when it was raised meanwhile. At once; what fails is logged, and told when the limit is next looked at. */
  note(reached: Reached): void;
}

export interface LimitAlertsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly isOn: () => boolean;
  readonly log: (problem: string, cause: unknown) => void;
}

const kind = 'limit-alert';
/** Once, and five times again. */
const tries = 6;
const mostKnown = 10_000;

export function openLimitAlerts({ store, clock, isOn, log }: LimitAlertsDeps): LimitAlerts {
  const jobs = openJobs({ store, clock });
  const known = new Set<string>();

  async function tell({ account, share, limit, used }: Reached): Promise<void> {
    const period = partsOf(account.owner).day ?? account.month;
    await store.transaction(async (inside) => {
      const { numAffectedRows } = await sql`
        insert into limit_alert (book, kind, period, share, told_of) values (${account.owner}, ${account.kind}, ${period}, ${share}, ${limit})
        on conflict (book, kind, period, share) do update set told_of = excluded.told_of, at = now() where limit_alert.told_of < excluded.told_of`.execute(
        inside.db,
      );
      if (numAffectedRows !== 1n) return;
      const payload = { book: account.owner, kind: account.kind, period, share, of: limit, used, at: new Date(clock.now()).toISOString() };
      await jobs.add(kind, payload, { tries, inside });
    });
  }

  return {
    note(reached) {
      if (!isOn()) return;
      const { account, share, limit } = reached;
      const name = `${account.owner} ${account.kind} ${account.month} ${share} ${limit}`;
      if (known.has(name)) return;
      if (known.size >= mostKnown) known.clear();
      known.add(name);
      tell(reached).catch((error: unknown) => {
        known.delete(name);
        log('That a limit is nearly reached could not be noted.', error);
      });
    },
  };
}

export interface AlertSender {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly settings: () => { readonly url: string; readonly secret: string };
  /** Sends a POST. @throws where no 2xx comes back */
  readonly post: (url: string, body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<void>;
}

const tables = { user: ['users', 'email'], team: ['teams', 'name'], key: ['api_keys', 'name'] } as const;

/** Sends the alerts that were noted, by any machine. */
export function workOnAlerts({ store, jobs, clock, settings, post }: AlertSender): void {
  jobs.work(
    kind,
    async ({ payload, signal }) => {
      const { url, secret } = settings();
      if (url === '' || !isObject(payload)) return;
      const body = JSON.stringify(await messageOf(store, payload));
      const seconds = Math.floor(clock.now() / 1000);
      const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
      const signed = secret === '' ? {} : { 'x-dragoman-signature': `t=${seconds},v1=${signature}` };
      await post(url, body, { 'content-type': 'application/json', ...signed }, signal);
    },
    { retrySeconds: 5 },
  );
}

async function messageOf({ db }: Store, told: object) {
  const { book, kind: unit, period, share, of, used, at } = told as Record<string, unknown>;
  const { owner, day, model } = partsOf(textOf(book) as Account['owner']);
  const [type, id] = owner.split(':') as [keyof typeof tables, string];
  const [table, column] = tables[type];
  const { rows } = await sql<{ name: string }>`select ${sql.ref(column)} as name from ${sql.table(table)} where id = ${Number(id)}`.execute(db);
  const word = { inference: 'Tokens', train: 'TrainTokens', usd: 'Usd' }[textOf(unit)] ?? '';
  return {
    type: 'limit',
    at,
    share,
    owner: { type, id: Number(id), name: rows[0]?.name ?? '' },
    limit: `${day === undefined ? 'monthly' : 'daily'}${word}`,
    model: model ?? null,
    period,
    of,
    used,
  };
}
