import { expect } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { monthOf } from '#core/plan';
import type { Place } from './databases.ts';
import { always, cut, failing, ok, pace, type Behaviour, type Upstream } from './fakes/upstream/index.ts';
import { reconcile } from '../../src/resources/usage/reconcile.ts';
import { openStore } from '../../src/store/open.ts';
import { join } from 'node:path';
import { askWith, loggedBy, usedByUser, type Logged, type Served } from './members.ts';

/** The outcome of a call as its client saw it: an end, a refusal or error, the client's own leaving, or a broken connection. */
type Outcome = 'answered' | 'failed' | 'left' | 'broken';

export interface MixedLoad {
  /** The outcome of each call, by its name. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** Sends calls to this server from a few clients, each until its connection breaks or `stop` is called. Resolves when all have stopped. */
  run(server: Served, key?: string): Promise<void>;
  stop(): void;
  /** A slow stream is in its middle at this moment. */
  isStreaming(): boolean;
  /** Compares the usage rows with what clients and upstream saw, waiting until they are complete. @returns the rows */
  audit(server: Served, within?: number): Promise<readonly Logged[]>;
}

/** Settings for its server: a target that fails stays in use. */
export const calm = 'routing: { cooldownSeconds: 0 }\n';

const behaviours: Readonly<Record<string, Behaviour>> & { readonly whole: Behaviour } = {
  whole: ok(),
  stream: pace(2),
  slow: pace(100, ok({ text: 'word '.repeat(30) })),
  left: pace(20, ok({ text: 'word '.repeat(100) })),
  error: failing(500),
  cut: cut({ afterEvents: 4, how: 'reset' }),
};

const kinds = ['whole', 'stream', 'slow', 'left', 'error', 'cut', 'built-in'] as const;

/** Mixed load: whole and streamed answers, clients that leave, providers that fail or break off. A call's name is its app and its prompt. */
export function mixedLoad(upstream: Upstream, clients = 8): MixedLoad {
  upstream.script(always({ name: 'mixed', answer: (exchange) => (behaviours[kindIn(exchange.asked.text)] ?? behaviours.whole).answer(exchange) }));
  const outcomes = new Map<string, Outcome>();
  const totals = new Map<string, number>();
  let stopped = false;
  let calls = 0;

  async function call(server: Served, key: string, name: string, kind: (typeof kinds)[number]): Promise<Outcome> {
    const leaving = new AbortController();
    const stream = kind === 'stream' || kind === 'slow' || kind === 'left' || kind === 'cut';
    const model = kind === 'built-in' ? kind : 'gpt-4o-mini';
    const body = { model, stream, messages: [{ role: 'user', content: `This is ${name} for ${kind} .` }] };
    try {
      const answer = await askWith(server, key, body, { headers: { 'x-app-name': name }, signal: leaving.signal });
      if (kind === 'left') {
        await answer.body!.getReader().read();
        leaving.abort();
        return 'left';
      }
      const text = await answer.text();
      if (answer.status !== 200) return 'failed';
      if (stream) return text.endsWith('data: [DONE]\n\n') ? 'answered' : 'failed';
      totals.set(name, (JSON.parse(text) as { usage: { total_tokens: number } }).usage.total_tokens);
      return 'answered';
    } catch {
      return 'broken';
    }
  }

  return {
    outcomes,
    stop: () => void (stopped = true),
    isStreaming: () =>
      upstream.requests.some(
        ({ body, piecesSent, closedAt, answeredAt }) =>
          (closedAt ?? answeredAt) === undefined && piecesSent > 1 && piecesSent < 20 && kindIn(body.toString()) === 'slow',
      ),
    async run(server, key = server.key) {
      stopped = false;
      const client = async () => {
        while (!stopped) {
          const name = `call${calls}`;
          const outcome = await call(server, key, name, kinds[calls++ % kinds.length]!);
          outcomes.set(name, outcome);
          if (outcome === 'broken') return;
        }
      };
      await Promise.all(Array.from({ length: clients }, client));
    },
    async audit(server, within = 30_000) {
      const named = (text: string) => /This is (call\d+) /.exec(text)?.[1];
      expect([...new Set(outcomes.values())]).toEqual(expect.arrayContaining(['answered', 'failed', 'left']));
      const began = new Set(upstream.requests.map(({ body }) => named(body.toString())).filter((name) => name !== undefined));
      const needed = [...outcomes].filter(([name, outcome]) => outcome === 'answered' || began.has(name)).map(([name]) => name);
      const read = async () => (await loggedBy(server)).filter(({ app }) => outcomes.has(app));
      await expect.poll(async () => missing(needed, await read()), { timeout: within, interval: 200 }).toEqual([]);
      const rows = await read();
      const by = new Map(rows.map((row) => [row.app, row]));
      expect(rows.length).toBe(by.size); // a row each
      const fits = ([name, outcome]: readonly [string, Outcome]) => {
        const row = by.get(name);
        const total = totals.get(name);
        if (total !== undefined && row!.inputTokens + row!.outputTokens !== total) return false;
        if (outcome === 'answered') return row!.status === 200 && row!.end === 'completed';
        return outcome !== 'broken' || row === undefined || began.has(name) || row.end === 'gateway-died' || row.end === 'completed';
      };
      expect([...outcomes].filter((one) => !fits(one)).map(([name, outcome]) => ({ outcome, row: by.get(name) }))).toEqual([]);
      const all = await loggedBy(server);
      const sums = new Map<number, { requests: number; planTokens: number }>();
      for (const { userId, planTokens } of all) {
        const sum = sums.get(userId) ?? { requests: 0, planTokens: 0 };
        sums.set(userId, { requests: sum.requests + 1, planTokens: sum.planTokens + planTokens });
      }
      expect(await usedByUser(server)).toEqual(sums);
      return rows;
    },
  };
}

const kindIn = (text: string) => / for (\w+) \./.exec(text)?.[1] ?? 'whole';

function missing(needed: readonly string[], rows: readonly Logged[]): readonly string[] {
  const there = new Set(rows.map(({ app }) => app));
  return needed.filter((name) => !there.has(name));
}

/** Checks that the sums in the database of a place match its rows. An embedded database must not be in use. */
export async function expectNoDrift({ folder, databaseUrl }: Place, month = monthOf(Date.now())): Promise<void> {
  const store = await openStore({ folder: join(folder, 'data'), ...(databaseUrl === undefined ? {} : { databaseUrl }), migrations: [], clock: systemClock });
  try {
    expect(await reconcile(store, month)).toEqual([]);
  } finally {
    await store.close();
  }
}
