import type { Settings } from '#config/index';
import { conforming } from '#gateway/rules/conforming';
import { openHealth } from '#gateway/routing/health';
import { regionStates, type RegionState } from '#gateway/routing/regions';
import { modelsFor, modelsWithin, type Models } from '#gateway/rules/resolved';
import { gateway, type Gateway } from '#gateway/pipeline';
import { searching } from '#gateway/searching/index';
import { rawSender } from '#gateway/tasks/send-raw';
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
import type { Generate } from '#core/generate';
import type { CountTokens } from '#core/measure';
import { steps } from '#core/steps';
import type { Accounting } from './accounting.ts';
import type { Administration } from './administration.ts';
import { openRuntime, type Runtime } from './runtime.ts';
import { outwardOf, upstreamsOf } from './upstreams.ts';

export interface CallsDeps {
  readonly settings: Settings;
  readonly accounting: Accounting;
  readonly administration: Pick<Administration, 'planOf' | 'teamPlan' | 'residencies'>;
  readonly clock: Clock;
  readonly chance: () => number;
  readonly log: Log;
  /** The network outside, for addresses that users choose; the internet when absent. */
  readonly outside: Outside | undefined;
}

/** The gateway with all that it needs: whatever becomes of a call. */
export interface Calls extends Gateway {
  /** What the settings are made into; `change` replaces it. */
  readonly runtime: () => Runtime;
  /** Takes new settings. @throws where they cannot be taken: then nothing has changed */
  change(settings: Settings): void;
  readonly ledger: Ledger;
  /** With the web search of the gateway. */
  readonly searched: Generate;
  /** The same, and held against the schema that was asked for. */
  readonly conformed: Generate;
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

/** Puts the gateway together. */
export function openCalls({ settings: first, accounting, administration, clock, chance, log, outside }: CallsDeps): Calls {
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
  const { generate, booked, affords } = gateway({
    models,
    ledger,
    health,
    routing: () => settings().routing,
    waits: () => settings().limits,
    clock,
    guards: () => runtime!.guards,
    answers: () => runtime!.answers,
    ttlOf: ({ name }) => runtime!.ttlOf(name),
  });
  const patterns = openPatterns(clock);
  const conformance = openConformance(clock);
  const runtimeDeps = {
    upstreams,
    media: openGuardedFetch({ ...outward, allow }),
    engineFetch: (more: readonly string[]) => openGuardedFetch({ ...outward, allow: more }),
    sentences: openSentences(),
    clock,
    log,
    created: Math.floor(clock.now() / 1000),
    generate: booked,
    pass: rawSender(booked),
    finding: patterns,
  };
  runtime = openRuntime(first, runtimeDeps);
  const pages = openGuardedFetch({ ...outward, allow, seconds: 6 }); // a shorter time than others get: there are other pages
  const searched = (stepsEach: number, inner: Generate) => searching({ models, engine: () => runtime!.engine, fetcher: pages, stepsEach }, inner);
  return {
    generate,
    booked,
    affords,
    runtime: () => runtime!,
    change(next) {
      runtime = openRuntime(next, runtimeDeps);
    },
    ledger,
    searched: searched(1, generate),
    conformed: searched(steps.round, conforming(conformance, generate)),
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
