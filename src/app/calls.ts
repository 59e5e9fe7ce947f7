import type { Settings } from '#config/index';
import { openHealth } from '#gateway/routing/health';
import { regionStates, type RegionState } from '#gateway/routing/regions';
import { modelsFor, modelsWithin, type Models } from '#gateway/rules/resolved';
import { openPipeline, type Pipeline } from '#gateway/pipeline';
import type { Clock } from '#kit/async/clock';
import { QueueFull } from '#kit/async/fair-semaphore';
import type { Outside } from '#kit/net/guarded-dial';
import { openGuardedFetch } from '#kit/net/guarded-fetch';
import { openPatterns } from '#kit/patterns/index';
import { openTokens } from '#kit/tokens/index';
import { openLedger, type Ledger } from '#ledger/index';
import { openConformance } from '#providers/built-in/schema/conformance';
import { openSentences } from '#providers/built-in/sentence/sentence';
import { causeOf, type Log } from '#telemetry/log';
import type { Caller } from '#core/context';
import { queueFull } from '#core/fault';
import type { CountTokens } from '#core/measure';
import type { ThoughtMemory } from '#core/thoughts';
import type { Accounting } from './accounting.ts';
import type { Administration } from './administration.ts';
import { openRuntime, type Runtime } from './runtime.ts';
import { outwardOf, upstreamsOf } from './upstreams.ts';

export interface CallsDeps {
  readonly settings: Settings;
  readonly accounting: Accounting;
  readonly administration: Pick<Administration, 'planOf' | 'teamPlan' | 'residencies' | 'lessons'>;
  readonly clock: Clock;
  readonly chance: () => number;
  readonly log: Log;
  /** The network outside, for addresses that users choose; the internet when absent. */
  readonly outside: Outside | undefined;
  readonly thoughts: ThoughtMemory;
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
  readonly countTokens: CountTokens;
  /** Names of the models that answer. */
  modelNames(): readonly string[];
  /** How the regions are, as this process sees them. */
  regions(): readonly RegionState[];
  resetRegions(): void;
  /** What lets go of threads, connections and leases, to be run one after the other. */
  readonly closing: readonly (() => void | Promise<void>)[];
}

/** Puts the pipeline together. */
export function openCalls({ settings: first, accounting, administration, clock, chance, log, outside, thoughts }: CallsDeps): Calls {
  let runtime: Runtime | undefined;
  const settings = () => runtime?.settings ?? first;
  const upstreams = upstreamsOf(settings, clock);
  const { allow } = first.outbound;
  const outward = { clock, ...outwardOf(first), outside };
  const ledger = openLedger({
    source: accounting.source,
    journal: accounting.journal,
    planOf: administration.planOf,
    teamPlan: administration.teamPlan,
    reserveOutput: () => settings().limits.reserveOutput,
    countTokens,
    clock,
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });
  const models = (caller: Caller) => {
    const lists = administration.residencies(caller);
    return modelsFor(lists ? modelsWithin(runtime!.models, lists) : runtime!.models, caller);
  };
  const health = openHealth(() => settings().routing, clock, chance);
  const pages = openGuardedFetch({ ...outward, allow, seconds: 6 }); // a shorter time than others get: there are other pages
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
    web: { engine: () => runtime!.engine, fetcher: pages },
    schemas: conformance,
    countTokens,
  });
  const runtimeDeps = {
    upstreams,
    thoughts,
    media: openGuardedFetch({ ...outward, allow }),
    engineFetch: (more: readonly string[]) => openGuardedFetch({ ...outward, allow: more }),
    sentences: openSentences(),
    clock,
    log,
    created: Math.floor(clock.now() / 1000),
    lessons: administration.lessons,
    own: pipeline.own,
    finding: patterns,
  };
  runtime = openRuntime(first, runtimeDeps);
  return {
    pipeline,
    runtime: () => runtime!,
    change(next) {
      runtime = openRuntime(next, runtimeDeps);
    },
    ledger,
    models,
    countTokens,
    modelNames: () => [...runtime!.models.list().map(({ name }) => name), ...(settings().models['*'] ? ['any other name'] : [])],
    regions: () => regionStates(runtime!.models, health),
    resetRegions: () => health.reset(),
    closing: [() => ledger.close(), () => accounting.close(), () => upstreams.close(), () => patterns.close(), () => conformance.close()],
  };
}

const countTokens: CountTokens = async (texts, context) => {
  try {
    return await (await openTokens()).countAll(texts, context);
  } catch (error) {
    throw error instanceof QueueFull ? queueFull(error) : error;
  }
};
