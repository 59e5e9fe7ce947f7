/**
 * What a million keys and ten million usage rows cost the request path: `node bin/run.js bench/scale.ts [MILLIONS OF ROWS]`. Takes minutes and about 8 GB of
 * disk. Starts a PostgreSQL of its own and removes it afterwards; times include the round trip to it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { systemClock } from '#kit/async/clock';
import { cursorOf } from '#resources/pagination';
import { requestId } from '#kit/crypto/ids';
import { openApiKeys } from '#resources/api-keys/store';
import { openHolders } from '#resources/usage/holders';
import { openLeases } from '#resources/usage/leases';
import { dropMonthsBefore, makeMonths } from '#resources/usage/months';
import { report } from '#resources/usage/reports';
import { logItem } from '#resources/usage/routes';
import { asOld, booksOf, type Books } from '../test/support/books-of.ts';
import { fold } from '#resources/usage/upkeep';
import { openStore, type Store } from '#store/open';
import { usageRow } from '../test/support/usage-rows.ts';
import { postgresPrograms, startPostgres } from './postgres.ts';
import { cpuTime } from './processes.ts';

const rows = Number(process.argv[2] ?? 10) * 1e6;
const keyCount = rows / 10;
const months = 13;
const now = new Date();
const monthAt = (back: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7);

const programs = postgresPrograms();
if (!programs) throw new Error('PostgreSQL is not installed here (apt-get install postgresql).');
const folder = mkdtempSync(join(tmpdir(), 'dragoman-scale-'));
const postgres = await startPostgres(programs, folder);
const leave = async () => {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
};
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void leave().then(() => process.exit(1)));

try {
  for (const size of [10, rows]) {
    const store = await openStore({
      folder: join(folder, `data-${size}`),
      databaseUrl: await postgres.database(),
      migrations: ['users', 'api-keys', 'plans', 'teams', 'usage'].map((noun) => new URL(`../src/resources/${noun}/`, import.meta.url)),
      clock: systemClock,
    });
    await fill(store, size);
    console.log(`\n${size.toLocaleString('en')} rows, ${Math.max(10, size / 10).toLocaleString('en')} keys`);
    await measure(store, size);
    await store.close();
  }
} finally {
  await leave();
}

/** Rows as the server writes them, spread evenly over the months; a few users have many, most have few. */
async function fill(store: Store, size: number): Promise<void> {
  const { db } = store.long(3600);
  const users = Math.max(10, Math.floor((size * keyCount) / rows));
  const run = async (what: string, text: string) => {
    const since = performance.now();
    await sql.raw(text).execute(db);
    if (size > 10) console.error(`${what}: ${Math.round((performance.now() - since) / 1000)} s`);
  };
  await makeMonths(
    store,
    Array.from({ length: months }, (_, back) => monthAt(back)),
  );
  await run('users', `insert into users (email, plan) select 'user' || n || '@example.org', 'free' from generate_series(1, ${users}) n`);
  await run('keys', `insert into api_keys (user_id, name, digest, shown) select n, 'key', sha256(n::text::bytea), 'dgm_…' from generate_series(1, ${users}) n`);
  const indexes = (
    await sql<{ text: string; name: string }>`
    select replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ') as text, i.indexrelid::regclass::text as name from pg_index i where indrelid = 'usage'::regclass and not indisprimary`.execute(
      db,
    )
  ).rows;
  for (const { name } of indexes) await run(`without ${name}`, `drop index ${name}`);
  for (let back = 0; back < months; back++)
    await run(
      `rows of ${monthAt(back)}`,
      `insert into usage (request_id, step, month, at, user_id, team_ids, key_id, app, face, model, served_model, provider, region, attempts, status, "end",
        input_tokens, output_tokens, cached_tokens, thought_tokens, provenance, plan_tokens, balance, cost_usd, queue_ms, first_token_ms, total_ms)
      select 'req_' || substr(md5(n || '-${back}'), 1, 22), 0, '${monthAt(back)}', at, user_id, case when user_id % 2 = 0 then array[1 + user_id % 100] else '{}' end,
        user_id, 'app ' || n % 5, 'chatcompat', 'model-' || n % 20, 'model', 'openai', '', '[{"provider":"openai","model":"model","milliseconds":212}]',
        case when n % 100 = 0 then 429 else 200 end, 'completed', 812, 97, 0, 0, 'provider', 909, 'inference', 0.0012345, 0.2, 80 + 900 * random() ^ 3,
        300 + 20000 * random() ^ 4
      from (select n, '${monthAt(back)}-01'::date::timestamptz + random() * (least('${monthAt(back)}-01'::date + interval '1 month', now()) - '${monthAt(back)}-01'::date) as at,
        1 + floor(${users} * random() ^ 3)::bigint as user_id from generate_series(1, ${Math.ceil(size / months)}) n) as made order by at`,
    );
  for (const { name, text } of indexes) await run(name, text);
  const spent = (owner: string, from: string) =>
    run(
      `spent of ${owner}s`,
      `insert into spent (owner, month, inference, usd, requests, input_tokens, output_tokens)
      select '${owner}:' || id, month, sum(plan_tokens), sum(cost_usd), count(*), sum(input_tokens), sum(output_tokens) from ${from} group by id, month`,
    );
  await spent('user', '(select *, user_id as id from usage) as one');
  await spent('team', 'usage, unnest(team_ids) as team(id)');
  await run(
    'sums of the hours of this month',
    `insert into usage_hour (month, hour, user_id, key_id, app, face, model, provider, region, tags, requests, input_tokens, output_tokens, plan_tokens, cost_usd,
      errors, balance, team_ids, route, cached_tokens, unpriced, first_times, total_times, series)
    select *, usage_series(app, face, model, route, provider, region, tags, balance, team_ids) from (
      select month, date_trunc('hour', at, 'UTC') as hour, user_id, key_id, app, face, model, provider, region, '' as tags, count(*), sum(input_tokens),
        sum(output_tokens), sum(plan_tokens), sum(cost_usd), count(*) filter (where status >= 400), balance, team_ids, model as route, 0, 0,
        times_of(array_agg(first_token_ms)), times_of(array_agg(total_ms))
      from usage where month = '${monthAt(0)}' group by month, 2, user_id, key_id, app, face, model, provider, region, balance, team_ids
    ) as sums (month, hour, user_id, key_id, app, face, model, provider, region, tags, requests, input_tokens, output_tokens, plan_tokens, cost_usd, errors, balance,
      team_ids, route, cached_tokens, unpriced, first_times, total_times)`,
  );
  await run(
    'sums of all users',
    `insert into usage_overall
    select month, start, span, face, model, provider, region, balance, sum(requests), sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(plan_tokens),
      sum(cost_usd), sum(unpriced), sum(errors), times_short(times_sum(string_agg(times_text(first_times), ','))),
      times_short(times_sum(string_agg(times_text(total_times), ','))),
      overall_series(face, model, provider, region, balance, of_app, of_team), of_app, of_team
      from usage_hour, usage_spans(hour, app, team_ids) group by month, start, span, face, model, provider, region, balance, of_app, of_team`,
  );
  await run('vacuum', 'vacuum (analyze)');
}

async function measure(store: Store, size: number): Promise<void> {
  const users = Math.max(10, size / 10);
  const usage = booksOf(store);
  const holder = await openHolders(store).enter({ machine: 'bench' });
  const leases = openLeases({ store, holder });
  const anyone = () => 1 + Math.floor(users * Math.random());
  const keys = openApiKeys(store, Buffer.alloc(32));
  const { key } = (await keys.add({ userId: 1, name: 'measured' }))!;
  const month = monthAt(0);
  const account = () => ({ owner: `user:${anyone()}` as const, kind: 'inference' as const, month });
  let turns = 0;
  const ask = () => ({ account: account(), turn: ++turns, heard: turns - 1, amount: 0, limit: 1e9, least: 2000, waiting: 2000, wish: 100_000 });
  let at = 0;
  const ship = () => {
    const batch = Array.from({ length: 200 }, () => usageRow({ requestId: requestId(), at: Date.now(), userId: anyone(), costUsd: 0.0012345 }));
    return usage.ship({ holder, journal: `${holder}/0`, from: at, to: ++at, rows: Buffer.from(JSON.stringify(batch)) });
  };

  await timed('a key, found', 500, () => keys.find([key]));
  await timed('counters of a user', 2000, () => usage.spentOf(`user:${anyone()}`, month));
  await timed('a lease of one account', 500, () => leases.lease([ask()]));
  await timed('leases of 50 accounts', 100, () => leases.lease(Array.from({ length: 50 }, ask)));
  await timed('200 rows shipped', 100, ship);
  await timed('logs, first page of 50', 100, () => usage.logs({ limit: 50 }));
  await timed('logs of a user', 100, () => usage.logs({ limit: 50, userId: anyone() }));
  await timed('logs of a model', 100, () => usage.logs({ limit: 50, model: `model-${anyone() % 20}` }));
  await timed('logs of a status', 100, () => usage.logs({ limit: 50, status: 429 }));
  await timed('logs, a page in the middle', 20, async () => {
    const { items } = await usage.logs({ limit: 1, userId: 1 });
    const cursor = cursorOf('logs', [`${monthAt(6)}-15T00:00:00.000Z`, items[0]?.requestId ?? '', 0]);
    return usage.logs({ limit: 50, cursor });
  });
  await timed('a request, by its id', 100, () => usage.log('req_nobody'));
  const thisMonth = { from: Date.parse(`${month}-01`), to: Date.now() };
  await timed('usage of this month by model and day', 5, () => usage.usage({ ...thisMonth, groupBy: ['model', 'day'] }));
  await timed('usage of this month by hour in Berlin', 5, () => usage.usage({ ...thisMonth, groupBy: ['hour'], tz: 'Europe/Berlin' }));
  await timed('usage of this month by model and day in Berlin', 5, () => usage.usage({ ...thisMonth, groupBy: ['model', 'day'], tz: 'Europe/Berlin' }));
  await timed('usage of this month by team', 2, () => usage.usage({ ...thisMonth, groupBy: ['team'] }));
  await timed('usage of a team this month by user', 2, () => usage.usage({ ...thisMonth, groupBy: ['user'], team: 1 + (anyone() % 100) }));
  await timed('usage of this month by app', 2, () => usage.usage({ ...thisMonth, groupBy: ['app'] }));
  await timed('usage of a user this month by model', 50, () => usage.usage({ ...thisMonth, groupBy: ['model'], userId: anyone() }));
  await exported(usage, Math.min(size, 1e6));
  await timed('20,000 rows folded', 1, () => fold(store));

  await during('a month made while rows are shipped', ship, () => makeMonths(store, [monthAt(-1), monthAt(-2)]));
  await asOld(store);
  await during('a month dropped while rows are shipped', ship, async () =>
    console.log(`  dropped: ${(await dropMonthsBefore(store, monthAt(months - 2))).join(', ')}`),
  );
}

/** The log as a file, and by how many megabytes that makes this process larger at most. */
async function exported(usage: Books, most: number): Promise<void> {
  const megabytes = () => process.memoryUsage.rss() / 2 ** 20;
  const [since, before] = [performance.now(), megabytes()];
  let [lines, bytes, peak] = [-1, 0, before];
  const file = report('csv', 'logs', Object.keys(logItem), usage.allLogs({}));
  for await (const piece of file.content as AsyncIterable<string>) {
    lines += piece.split('\r\n').length - 1;
    bytes += piece.length;
    peak = Math.max(peak, megabytes());
    if (lines >= most) break;
  }
  const took = ((performance.now() - since) / 1000).toFixed(1);
  console.log(
    `  ${lines.toLocaleString('en')} rows of the log as CSV, ${Math.round(bytes / 2 ** 20)} MB: ${took} s, ${Math.round(peak - before)} MB more memory at most`,
  );
}

async function timed(what: string, times: number, work: () => Promise<unknown>): Promise<void> {
  const took: number[] = [];
  const before = databaseMilliseconds();
  for (let count = 0; count < times; count++) {
    const since = performance.now();
    await work();
    took.push(performance.now() - since);
  }
  const sorted = took.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!.toFixed(2);
  console.log(`  ${what}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, CPU of the database ${((databaseMilliseconds() - before) / times).toFixed(2)} ms`);
}

async function during(what: string, traffic: () => Promise<unknown>, work: () => Promise<void>): Promise<void> {
  let worst = 0;
  let isDone = false;
  const flowing = (async () => {
    while (!isDone) {
      const since = performance.now();
      await traffic();
      worst = Math.max(worst, performance.now() - since);
    }
  })();
  const since = performance.now();
  await work();
  const took = performance.now() - since;
  isDone = true;
  await flowing;
  console.log(`  ${what}: ${took.toFixed(0)} ms, the slowest shipment meanwhile ${worst.toFixed(0)} ms`);
}

/** CPU of the database so far, in milliseconds. */
function databaseMilliseconds(): number {
  const { user, system } = cpuTime(postgres.pid);
  return (user + system) / 1000;
}
