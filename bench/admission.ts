/** CPU time of admitting and settling a call for the thread that does it, by the limits that hold, without journal and database. It does not depend on what else runs on the machine as much as the CPU time of a whole call does. */
import type { Context } from '#core/context';
import type { LeaseSource } from '#core/lease';
import { Permits } from '#core/permits';
import type { Plan } from '#core/plan';
import type { RoutedCall } from '#core/routed-call';
import { systemClock } from '#kit/async/clock';
import type { CallJournal } from '../src/ledger/journal/journal.ts';
import { openLedger, type Ledger } from '../src/ledger/index.ts';
import { usageRow } from '../test/support/usage-rows.ts';
import { atMost, type Question, type Row } from './question.ts';
import { median } from './rounds.ts';

const [calls, rounds] = [20_000, 12];
/** No call comes near any of them. */
const much = 1e12;
const done = Promise.resolve();
const source: LeaseSource = {
  lease: async (asks) => asks.map(({ wish, least }) => ({ granted: Math.max(wish, least), spent: 0, left: much })),
  giveBack: () => done,
  onRecall: () => {},
};
const journal: CallJournal = { began: () => done, spoke: () => {}, settled: () => done, trouble: undefined };

/** Who is limited by what. */
const limited: Readonly<Record<string, { readonly user: Plan; readonly team?: Plan; readonly key?: Plan }>> = {
  'no limit': { user: {} },
  'a limit of the month': { user: { monthlyTokens: much } },
  'limits of user, key and team, of month and day': {
    user: { monthlyTokens: much, dailyTokens: much },
    team: { monthlyTokens: much },
    key: { monthlyTokens: much, dailyTokens: much },
  },
};

export const admission: Question = {
  name: 'admission',
  async ask() {
    const found = new Map<string, number[]>(Object.keys(limited).map((who) => [who, []]));
    const ledgers = Object.entries(limited).map(([who, { user, team = {}, key }]) => {
      const ledger = openLedger({
        source,
        journal,
        planOf: () => user,
        teamPlan: () => team,
        reserveOutput: () => 2048,
        countTokens: () => Promise.resolve(200),
        clock: systemClock,
        log: (problem, cause) => console.error(problem, cause),
      });
      return { who, ledger, caller: { ...caller, teamIds: who === 'no limit' ? [] : [3], ...(key && { keyLimits: key }) } };
    });
    for (let round = 0; round <= rounds; round++)
      for (const { who, ledger, caller: asks } of ledgers) {
        const start = process.threadCpuUsage();
        for (let call = 0; call < calls; call++) await admitted(ledger, asks);
        const { user, system } = process.threadCpuUsage(start);
        if (round > 0) found.get(who)!.push((user + system) / calls); // the first warms up
      }
    const none = found.get('no limit')!;
    return [...found].map(([who, took]): Row => {
      const more = median(took.map((one, round) => one - none[round]!));
      const what = 'admitting and settling a call, CPU µs';
      return { what, who, value: median(took), ...(who !== 'no limit' && { bars: [atMost('≤ 5 µs more than without limits', more, 5)] }) };
    });
  },
};

const caller = { userId: 7, keyId: 9, email: 'bench@example.org', role: 'user' as const, plan: 'bench', keyName: 'bench' };
const route: RoutedCall['route'] = {
  name: 'large',
  kind: 'chat',
  targets: [],
  limits: { output: 16_000 },
  rate: { input: 1, output: 1 },
  created: 0,
  ownedBy: 'bench',
};
const call: RoutedCall = {
  model: 'large',
  route,
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'x'.repeat(800) }] }],
  tools: [],
  output: { type: 'text' },
  sampling: {},
  stream: false,
  extra: {},
};
const row = usageRow({ planTokens: 400 });
const { signal } = new AbortController();

async function admitted(ledger: Ledger, asks: Context['caller']): Promise<void> {
  const context: Context = {
    requestId: 'req_bench',
    step: 0,
    caller: asks,
    face: 'chatcompat',
    app: 'bench',
    signal,
    strict: false,
    headers: {},
    permits: new Permits(),
    progress: { attempts: [] },
  };
  const reserved = ledger.reserve(call, context);
  const reservation = reserved instanceof Promise ? await reserved : reserved;
  await reservation.begun();
  await reservation.settle(row);
}
