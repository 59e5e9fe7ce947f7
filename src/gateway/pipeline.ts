import type { Caller, Context } from '#core/context';
import type { Embed, EmbedCall } from '#core/embed';
import type { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import type { CountTokens } from '#core/measure';
import type { ServerTools } from '#core/server-tools';
import type { PromptLog } from '#core/prompt-log';
import type { SendRaw } from '#core/raw-request';
import { plainCall } from '#core/call';
import type { Call, RoutedCall } from '#core/routed-call';
import type { Speak } from '#core/speak';
import type { Clock } from '#kit/async/clock';
import type { Ledger } from '#ledger/index';
import { failover, type Waits } from './routing/failover.ts';
import type { Health } from './routing/health.ts';
import { openRetryBudget } from './routing/retry-budget.ts';
import { admitted, unreserved } from './rules/admitted.ts';
import { alternating } from './rules/alternatives.ts';
import { cached, type CachedDeps } from './rules/cached.ts';
import { conforming, type ConformingDeps } from './rules/conforming.ts';
import { guarded, type GuardedDeps } from './rules/guarded.ts';
import { inParts } from './rules/in-parts.ts';
import { metered, recordRefusal } from './rules/metered.ts';
import { permitted } from './rules/permitted.ts';
import { promising } from './rules/promising.ts';
import { promptLogged, promptLoggedTask } from './rules/prompt-logged.ts';
import { resolved, type Models } from './rules/resolved.ts';
import { fallingBack } from './rules/tier-fallback.ts';
import { calling } from './calling/index.ts';
import { searching, type SearchingDeps } from './searching/index.ts';
import { counting, type CountPrompt } from './tasks/count.ts';
import { embedding } from './tasks/embed.ts';
import { rawSender } from './tasks/send-raw.ts';
import { speaking } from './tasks/speak.ts';

export interface PipelineDeps extends Pick<CachedDeps, 'answers' | 'ttlOf'>, Pick<GuardedDeps, 'guards'> {
  /** Exact for the built-in model. */
  readonly countTokens: CountTokens;
  readonly models: (caller: Caller) => Models;
  readonly ledger: Ledger;
  readonly health: Health;
  readonly routing: () => { readonly retryBudget: number };
  readonly waits: () => Waits;
  readonly clock: Clock;
  readonly web: Pick<SearchingDeps, 'engine' | 'fetcher' | 'failed'>;
  readonly prompts: PromptLog;
  readonly tools: ServerTools;
  /** Validates answers against the JSON Schemas of clients. */
  readonly schemas: ConformingDeps;
}

/** A call goes down through the rules and the events of its answer come back up. */
export interface Pipeline {
  readonly chatcompat: Generate;
  readonly messages: Generate;
  readonly gencompat: Generate;
  /** The tokens of prompts, of each face. */
  readonly count: CountPrompt;
  readonly embed: Embed;
  /** Media requests that are forwarded as they came. */
  readonly sendRaw: SendRaw;
  readonly speak: Speak;
  /** Calls that the gateway makes itself in the course of another, without checks and cache. */
  readonly own: { readonly generate: Generate<Call>; readonly sendRaw: SendRaw };
  /**
   * Checks that the call could be made and paid for now: for a call that will be made later. @throws Fault as the pipeline does before any provider is asked
   */
  affords(call: Call, context: Context): Promise<void>;
  /** The same for vectors. @throws the same */
  affordsVectors(call: EmbedCall, context: Context): Promise<void>;
  /** Counts a request that may ask no model at all. @throws Fault `rate-limited`, `quota-spent`, `overloaded` */
  enters(context: Context): Promise<void>;
  /** Notes what is left of the caller's limits. @returns false where that is not known yet. @throws Fault `quota-spent` where the limits are not known */
  left(context: Context): boolean;
}

/**
 * The rules about a call in order, for each face: the outermost is first on its line, and the innermost line comes first. A rule that does not apply to a call
 * passes it on unchanged. A provider wraps its own targets in the rules that only it needs.
 *
 * `metered` is inside `admitted`: settling turns the reservation into the booked amount in one step, so that there is no moment in which neither counts.
 * `guarded` and `cached` are outside both: their own answers reserve nothing.
 */
export function openPipeline(deps: PipelineDeps): Pipeline {
  const { models, ledger, health, routing, waits, clock, guards, answers, ttlOf, web, schemas, prompts, tools, countTokens } = deps;
  const budget = openRetryBudget(() => routing().retryBudget, clock);
  const replayed = replaying(ledger, clock);
  const refused = (call: RoutedCall, context: Context, refusal: Fault) => recordRefusal(ledger, clock, call, context, refusal);
  const rounds = { ...web, models, rounds: 'round' } as const;
  const repairableRounds = { ...web, models, rounds: 'repairableRound' } as const;

  const paid = admitted(ledger, metered(clock, inParts(clock, failover({ health, budget, waits, clock }))));
  const known = (inner: Parameters<typeof alternating>[0]) => permitted(tools, resolved(models, alternating(inner)));
  const client = known(promising(guarded({ guards, recordRefusal: refused }, cached({ answers, ttlOf, replayed }, paid))));
  const kept = conforming(schemas, 'unpromised', client);
  const own = resolved(models, alternating(paid));
  const affordable = known(checking(ledger.affords));
  const admissible = known(checking(ledger.admits));

  return {
    chatcompat: promptLogged(prompts, calling({ tools, inner: searching(rounds, kept), admits: checked(admissible) })),
    messages: promptLogged(prompts, searching(rounds, kept)),
    gencompat: promptLogged(prompts, fallingBack(searching(repairableRounds, conforming(schemas, 'all', client)))),
    count: counting({ models, guards, waits, health, countTokens, tools }),
    embed: promptLoggedTask(prompts, ({ inputs }) => inputs.filter((input) => typeof input === 'string'), embedding(client)),
    sendRaw: promptLoggedTask(prompts, ({ texts }) => texts, rawSender(client)),
    speak: promptLoggedTask(prompts, ({ text }) => [text], speaking(client)),
    own: { generate: own, sendRaw: rawSender(own) },
    affords: checked(affordable),
    affordsVectors: async (call, context) => void (await embedding(affordable)(call, context)),
    enters: (context) => ledger.enters(nothingAsked, context),
    left: (context) => ledger.left(nothingAsked, context),
  };
}

/** A call of no model. */
const nothingAsked: RoutedCall = {
  ...plainCall({ model: '', turns: [] }),
  route: { name: '', kind: 'chat', targets: [], limits: {}, rate: { input: 0, output: 0 }, price: { input: 0, output: 0 }, created: 0, ownedBy: '' },
};

/** Checks a call, without making it. */
const checking = (check: Ledger['affords']): Generate<RoutedCall> =>
  async function* (call, context) {
    await check(call, context);
    yield [];
  };

const checked =
  (generate: Generate<Call>) =>
  async (call: Call, context: Context): Promise<void> => {
    for await (const _ of generate(call, context));
  };

/** Replays the events of an earlier answer, which is booked as a call without a provider. */
const replaying =
  (ledger: Ledger, clock: Clock): CachedDeps['replayed'] =>
  (answer) => {
    const replay = metered(clock, async function* ({ stream }) {
      yield* stream ? answer : [answer.flat()];
    });
    return async function* (call, context) {
      yield* replay(unreserved(ledger, call, context), context);
    };
  };
