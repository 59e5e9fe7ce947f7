import { Counter, type Registry } from 'prom-client';
import type { UsageRow } from '#core/usage-row';
import { DurationHistogram, Durations } from './durations.ts';

/** What a settled call adds to the metrics. */
export type SettledCall = Pick<
  UsageRow,
  | 'provider'
  | 'attempts'
  | 'end'
  | 'inputTokens'
  | 'outputTokens'
  | 'cachedTokens'
  | 'cacheWriteTokens'
  | 'cacheWrite1hTokens'
  | 'thoughtTokens'
  | 'provenance'
  | 'costUsd'
  | 'firstTokenMs'
>;

/** Label sets of calls; what exceeds them is counted under `other`. */
const mostSets = 1000;
const bounds = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64];

class ModelCounts {
  readonly provider: string;
  readonly model: string;
  readonly ends = new Map<string, number>();
  input = 0;
  output = 0;
  cached = 0;
  cacheWrite = 0;
  thought = 0;
  cost = 0;
  unpriced = 0;
  cacheHits = 0;
  readonly firstToken = new Durations(bounds);

  constructor(provider: string, model: string) {
    this.provider = provider;
    this.model = model;
  }
}

/** Counts what calls use. Counted here and shown when somebody asks, as in `Durations`. */
export interface CallMetrics {
  /** @param model a name of the settings, or `other`: never what a client wrote */
  settled(call: SettledCall, model: string): void;
  /** @param limit a kind of limit: `requests`, `streams`, `inference`, `train`, `usd` */
  refused(limit: string): void;
}

export function callMetrics(registry: Registry): CallMetrics {
  const byProvider = new Map<string, Map<string, ModelCounts>>();
  const attempts = new Map<string, Map<string, number>>();
  const refusals = new Map<string, number>();
  let sets = 0;

  const countsOf = (provider: string, model: string): ModelCounts => {
    const known = byProvider.get(provider)?.get(model);
    if (known) return known;
    const [name, of] = sets < mostSets ? [provider, model] : ['other', 'other'];
    const models = byProvider.get(name) ?? new Map<string, ModelCounts>();
    byProvider.set(name, models);
    const counts = models.get(of) ?? new ModelCounts(name, of);
    if (!models.has(of)) sets++;
    models.set(of, counts);
    return counts;
  };
  const all = () => [...byProvider.values()].flatMap((models) => [...models.values()]);

  showCalls(registry, all, attempts, refusals);

  return {
    settled(call, model) {
      const counts = countsOf(call.provider === '' ? 'none' : call.provider, model);
      counts.input += call.inputTokens;
      counts.output += call.outputTokens;
      counts.cached += call.cachedTokens;
      counts.cacheWrite += call.cacheWriteTokens + call.cacheWrite1hTokens;
      counts.thought += call.thoughtTokens;
      if (call.costUsd === null) counts.unpriced++;
      else counts.cost += call.costUsd;
      if (call.provenance === 'cached') counts.cacheHits++;
      counts.ends.set(call.end, (counts.ends.get(call.end) ?? 0) + 1);
      if (call.firstTokenMs !== null) counts.firstToken.add(call.firstTokenMs / 1000);
      for (const { provider, fault = 'ok' } of call.attempts) {
        const results = attempts.get(provider) ?? new Map<string, number>();
        if (results.size === 0) attempts.set(provider, results);
        results.set(fault, (results.get(fault) ?? 0) + 1);
      }
    },
    refused(limit) {
      refusals.set(limit, (refusals.get(limit) ?? 0) + 1);
    },
  };
}

type Results = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** Registers what is shown of the counts when somebody asks. */
function showCalls(registry: Registry, all: () => readonly ModelCounts[], attempts: Results, refusals: ReadonlyMap<string, number>): void {
  const counter = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    read: (add: (labels: Record<Label, string>, value: number) => void) => void,
  ) =>
    registry.registerMetric(
      new Counter({
        name,
        help,
        labelNames,
        registers: [],
        collect() {
          this.reset();
          read((labels, value) => value > 0 && this.inc(labels, value));
        },
      }),
    );
  const modelLabels = ['provider', 'model'] as const;
  const perModel = (name: string, help: string, read: (counts: ModelCounts) => number) =>
    counter(name, help, modelLabels, (add) => {
      for (const counts of all()) add({ provider: counts.provider, model: counts.model }, read(counts));
    });
  counter('dragoman_tokens_total', 'Tokens by kind: input (of which cached and cache_write), output (of which thought).', [...modelLabels, 'kind'], (add) => {
    for (const { provider, model, input, output, cached, cacheWrite, thought } of all())
      for (const [kind, value] of Object.entries({ input, output, cached, cache_write: cacheWrite, thought })) add({ provider, model, kind }, value);
  });
  perModel('dragoman_cost_usd_total', 'Cost of calls with a known price, in US dollars.', ({ cost }) => cost);
  perModel('dragoman_unpriced_calls_total', 'Calls of models without a known price, which dragoman_cost_usd_total lacks.', ({ unpriced }) => unpriced);
  perModel('dragoman_cache_hits_total', 'Calls answered from the response cache.', ({ cacheHits }) => cacheHits);
  counter('dragoman_calls_total', 'Calls by how they ended.', [...modelLabels, 'end'], (add) => {
    for (const { provider, model, ends } of all()) for (const [end, value] of ends) add({ provider, model, end }, value);
  });
  counter('dragoman_attempts_total', 'Attempts at providers: ok, or the fault that ended them.', ['provider', 'result'], (add) => {
    for (const [provider, results] of attempts) for (const [result, value] of results) add({ provider, result }, value);
  });
  counter('dragoman_limit_refusals_total', 'Calls refused by a limit of a plan, by its kind.', ['limit'], (add) => {
    for (const [limit, value] of refusals) add({ limit }, value);
  });
  const help = 'Time from the admission of a call to the first event of its answer, in seconds.';
  registry.registerMetric(
    new DurationHistogram({ name: 'dragoman_first_token_seconds', help, labelNames: [...modelLabels] }, () =>
      all().map(({ provider, model, firstToken }) => [{ provider, model }, firstToken]),
    ),
  );
}
