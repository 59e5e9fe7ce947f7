import type { Settings } from '#config/index';
import { type Health, type HealthChange, openHealth } from '#gateway/routing/health';
import { type RegionState, regionStates } from '#gateway/routing/regions';
import { type Models, modelsFor, modelsWithin } from '#gateway/rules/resolved';
import { openPipeline, type Pipeline } from '#gateway/pipeline';
import type { Clock } from '#kit/async/clock';
import { repeated } from '#kit/async/repeated';
import { QueueFull } from '#kit/async/fair-semaphore';
import type { Outside } from '#kit/net/guarded-dial';
import { type GuardedFetch, openGuardedFetch } from '#kit/net/guarded-fetch';
import { openPatterns } from '#kit/patterns/index';
import { openTokens, type Tokens } from '#kit/tokens/index';
import { type Ledger, type LedgerDeps, openLedger } from '#ledger/index';
import { type Conformance, openConformance } from '#providers/built-in/schema/conformance';
import { openSentences } from '#providers/built-in/sentence/sentence';
import { openVoice } from '#providers/built-in/voice/voice';
import { spentOf } from '#resources/usage/leases';
import type { Store } from '#store/open';
import { isAway } from '#store/patience';
import { causeOf, problemsTo, type Log } from '#telemetry/log';
import type { Metrics } from '#telemetry/metrics';
import type { Upstreams } from '#kit/upstream/pool';
import type { Caller } from '#core/context';
import type { ServerTools } from '#core/server-tools';
import { queueFull } from '#core/fault';
import { placesOf } from '#core/target';
import type { PromptLog } from '#core/prompt-log';
import type { ThoughtMemory } from '#core/thoughts';
import { embeddingThreads } from './cores.ts';
import type { Accounting } from './accounting.ts';
import { anyOtherName } from '#core/known-models';
import type { Administration } from './administration.ts';
import { openOfferedModels } from './offered-models.ts';
import { openRuntime, type Runtime } from './runtime.ts';
import { outwardOf, upstreamsOf } from './upstreams.ts';
import type { CallJournal } from '#ledger/journal/journal';

export interface CallsDeps {
  readonly metrics: Pick<Metrics, 'settled'>;
  readonly settings: Settings;
  readonly accounting: Accounting;
  readonly administration: Pick<Administration, 'planOf' | 'teamPlan' | 'teamOf' | 'modelLists' | 'residencies' | 'lessons'>;
  readonly store: Pick<Store, 'db'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The network outside, for addresses that users choose; the internet when absent. */
  readonly outside: Outside | undefined;
  readonly tools: ServerTools;
  readonly thoughts: ThoughtMemory;
  readonly prompts: PromptLog;
  /** What this gateway is called in the hops of its requests. */
  readonly hop: string;
  /** Told when 80 or 100 per cent of a limit is spent. */
  readonly reached: LedgerDeps['reached'];
}

/** The pipeline of calls with all that it needs. */
export interface Calls {
  readonly pipeline: Pipeline;
  /** What the settings are made into; `change` replaces it. */
  readonly runtime: () => Runtime;
  /** Takes new settings. @throws where they cannot be taken: then nothing has changed */
  change(settings: Settings): void;
  readonly ledger: Ledger;
  readonly models: (caller: Caller) => Models;
  /** By the vocabulary `o200k`, unless another one is named. */
  readonly countTokens: Tokens['countAll'];
  readonly upstreams: Upstreams;
  /** Checks values against the JSON Schemas of users. */
  readonly schemas: Pick<Conformance, 'against' | 'isPattern'>;
  /** Reads pages of the web, and is told when the search engine did not answer. */
  readonly web: { readonly fetcher: GuardedFetch; readonly failed: (error: unknown, requestId: string) => void };
  modelNames(): readonly string[];
  regions(): readonly RegionState[];
  resetRegions(): void;
  /** How many targets of each provider are cooling down. */
  cooling(): ReadonlyMap<string, number>;
  /** What lets go of threads, connections and leases, to be run one after the other. */
  readonly closing: readonly (() => void | Promise<void>)[];
}

/** Puts the pipeline together. */
export function openCalls({ settings: first, accounting, administration, clock, log, outside, prompts, ...deps }: CallsDeps): Calls {
  const { metrics, thoughts, tools, reached, store, hop } = deps;
  let runtime: Runtime | undefined;
  const settings = () => runtime?.settings ?? first;
  const upstreams = upstreamsOf(settings, clock);
  const outward = { clock, allow: first.outbound.allow, ...outwardOf(first), outside };
  const ledger = openLedger({
    source: accounting.source,
    journal: counted(accounting.journal, metrics, () => runtime!.models),
    planOf: administration.planOf,
    teamPlan: administration.teamPlan,
    teamOf: administration.teamOf,
    modelName: (name) => runtime!.models.find(name)?.name,
    reserveOutput: () => settings().limits.reserveOutput,
    countTokens,
    clock,
    log: problemsTo(log),
    reached,
  });
  const models = modelsSeen(administration, () => runtime!.models);
  const health = openHealth(() => settings().routing, clock, Math.random, healthLine(log));
  const web = { fetcher: openGuardedFetch({ ...outward, seconds: 6 }), failed: searchFailed(log, settings) }; // a shorter time than others get: there are other pages
  const patterns = openPatterns(clock);
  const conformance = openConformance(clock);
  const pipeline = openPipeline({
    models,
    ledger,
    health,
    routing: () => settings().routing,
    waits: () => settings().limits,
    clock,
    guards: () => runtime!.guards,
    answers: () => runtime!.answers,
    ttlOf: ({ name }) => runtime!.ttlOf(name),
    web: { engine: () => runtime!.engine, ...web },
    schemas: conformance,
    prompts,
    tools,
    countTokens,
  });
  const offered = openOfferedModels(clock, log);
  const learning = { close: learningSpent(first, ledger, { store, clock, log }) };
  const runtimeDeps = {
    offered,
    upstreams,
    thoughts,
    hop,
    media: openGuardedFetch(outward),
    engineFetch: (more: readonly string[]) => openGuardedFetch({ ...outward, allow: more }),
    sentences: openSentences(embeddingThreads(first)),
    voice: openVoice(clock),
    clock,
    log,
    created: Math.floor(clock.now() / 1000),
    lessons: administration.lessons,
    own: pipeline.own,
    finding: patterns,
  };
  runtime = openRuntime(first, runtimeDeps);
  offered.watch(() => runtime!);
  return {
    pipeline,
    runtime: () => runtime!,
    change(next) {
      runtime = openRuntime(next, runtimeDeps);
      offered.changed();
    },
    ledger,
    models,
    countTokens,
    upstreams,
    schemas: conformance,
    web,
    modelNames: () => [...runtime!.models.list().map(({ name }) => name), ...(settings().models['*'] ? [anyOtherName] : [])],
    regions: () => regionStates(runtime!.models, health),
    resetRegions: () => health.reset(),
    cooling: () => coolingOf(runtime!.models, health),
    closing: [learning, offered, ledger, accounting, upstreams, patterns, conformance].map((one) => () => one.close()),
  };
}

const learnMilliseconds = 5000;

/** Tells the ledger every five seconds what all processes have booked, where the database is a server. While it is away, the last figures hold. */
function learningSpent({ databaseUrl }: Settings, ledger: Ledger, { store, clock, log }: Pick<CallsDeps, 'store' | 'clock' | 'log'>): () => void {
  if (databaseUrl === undefined) return () => {};
  const problem = problemsTo(log);
  const failed = (cause: unknown) => isAway(cause) || problem('What other processes have spent could not be read.', cause);
  return repeated({ clock, milliseconds: learnMilliseconds, work: () => ledger.learn((accounts) => spentOf(store, accounts)), failed });
}

/** The models that there are for a caller: within the residency lists and the lists of names of the user, the teams and the key. */
function modelsSeen(administration: Pick<Administration, 'residencies' | 'modelLists'>, all: () => Models): (caller: Caller) => Models {
  return (caller) => {
    const lists = administration.residencies(caller);
    const placed = lists ? modelsWithin(all(), lists) : all();
    const seen = modelsFor(administration.modelLists(caller)?.reduce(modelsFor, placed) ?? placed, caller);
    const isSettled = seen.hasProviders && !seen.unusedProviders?.length;
    return isSettled || caller.role !== 'admin' ? seen : { ...seen, mayAddProviders: true };
  };
}

function coolingOf(models: Models, health: Pick<Health, 'state'>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const places = new Set(models.list().flatMap(({ targets }) => placesOf(targets)));
  for (const target of places) counts.set(target.provider, (counts.get(target.provider) ?? 0) + (health.state(target).state === 'cooling' ? 1 : 0));
  return counts;
}

const healthLine = (log: Log) => (change: HealthChange) => {
  const { provider, name } = change.target;
  if (change.type === 'back') log.info({ provider, target: name }, 'Answers again.');
  else log.warn({ provider, target: name, seconds: change.seconds, fault: change.fault.code }, `Cools down: ${change.fault.message}`);
};

const searchFailed = (log: Log, settings: () => Settings) => (error: unknown, requestId: string) =>
  log.warn({ id: requestId, engine: settings().search.engine, ...causeOf(error) }, 'The search engine does not work: check search.url and search.apiKey.');

const countTokens: Calls['countTokens'] = async (texts, asking) => {
  try {
    return await (await openTokens()).countAll(texts, asking);
  } catch (error) {
    throw error instanceof QueueFull ? queueFull(error) : error;
  }
};

/** A journal whose settled calls are counted in the metrics. */
function counted(journal: CallJournal, metrics: Pick<Metrics, 'settled'>, models: () => Pick<Models, 'find' | 'list'>): CallJournal {
  let listed: readonly unknown[] = [];
  let names: ReadonlySet<string> = new Set();
  const nameOf = (written: string): string => {
    const list = models().list();
    if (list !== listed) {
      listed = list;
      names = new Set(list.map(({ name }) => name));
    }
    if (names.has(written)) return written;
    const name = models().find(written)?.name;
    return name !== undefined && names.has(name) ? name : 'other'; // a name that only "*" takes is the client's
  };
  return {
    began: (call, open) => journal.began(call, open),
    spoke: (requestId, step, outputTokens) => journal.spoke(requestId, step, outputTokens),
    settled(row) {
      metrics.settled(row, nameOf(row.model));
      return journal.settled(row);
    },
    get trouble() {
      return journal.trouble;
    },
  };
}
