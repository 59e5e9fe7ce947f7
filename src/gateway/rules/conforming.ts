import type { GenerateCall } from '#core/call';
import type { GenerateEvent, Usage, Events } from '#core/event';
import { Fault, faultOf } from '#core/fault';
import { fold, type Candidate } from '#core/fold';
import { where, type Generate } from '#core/generate';
import type { Context, Review } from '#core/context';
import { textTurn, textIn } from '#core/conversation';
import type { JsonObject } from '#core/json';
import { withoutPassthrough } from '#core/passthrough';
import { withoutFence } from '#kit/text/without-fence';
import { inSteps } from '#core/permits';
import { stepOf } from '#core/steps';
import { sumOf } from '#core/usage';
import { HeldBytes } from './held-back.ts';

export interface ConformingDeps {
  /** A test of whether a text is JSON that conforms to a JSON Schema. @throws Fault `invalid` for a schema that is too large */
  readonly against: (schema: JsonObject, asking: { readonly owner: string; readonly signal: AbortSignal }) => (text: string) => boolean | Promise<boolean>;
}

/**
 * Schema validation: an answer to a request with a schema conforms to it, whichever model answers. It is buffered until it does, in a stream too: what a client
 * has read cannot be repaired. If it does not conform, the model is asked once more, with the reason. An answer that was refused, reached its limit or calls a
 * tool is passed on unchanged: it is no value.
 * @param which the answers that are validated: all, or those of models that were not held to the schema (`Started.unpromised`). An OpenAI client that does not
 * ask for `strict` gets these with a warning instead
 * @throws Fault `upstream-failed` if neither the answer nor its repair conforms
 */
export function conforming({ against }: ConformingDeps, which: 'all' | 'unpromised', inner: Generate): Generate {
  return where(
    ({ output }) => (output.type === 'text' ? undefined : output),
    (output, call, context) => inSteps(context.permits, conformed(call, output, context)),
    inner,
  );

  async function* conformed(call: GenerateCall, output: JsonOutput, context: Context): AsyncGenerator<Events> {
    const asking = { owner: String(context.caller.userId), signal: context.signal };
    const schema = output.type === 'schema' ? output.schema : anyObject;
    let fits = which === 'all' && output.type === 'schema' ? against(schema, asking) : undefined;
    let isHeld = fits !== undefined;
    const answer = new JudgedAnswer(call, context, async (events) => verdictOn(call, events, (fits ??= against(schema, asking))));
    for await (const events of inner(call, answer.context)) {
      if (!isHeld && events.some((event) => event.type === 'started' && event.unpromised)) {
        if (!isOptional(output, context)) isHeld = true;
        else {
          yield events.map((event) => (event.type === 'started' ? { ...event, ignored: [...event.ignored, notGuaranteed] } : event));
          continue;
        }
      }
      if (isHeld) await answer.take(events);
      else yield events;
    }
    if (!isHeld) return;
    const verdict = await answer.verdict();
    yield await mendedAnswer({ inner, call, fits: (fits ??= against(schema, asking)) }, answer.events, verdict, context);
  }
}

async function mendedAnswer(repairing: Repair, answer: readonly GenerateEvent[], { mended, wrong }: Verdict, context: Context): Promise<Events> {
  const range = (repairing.call.sampling.candidates ?? 1) > 1 ? 'repairs' : 'repair';
  const texts = new Map(mended);
  const usages: Usage[] = [];
  for (const [at, text] of wrong) {
    const { text: repaired, usage } = await repair(repairing, { ...context, step: stepOf(context.step, range, at) }, text);
    texts.set(at, repaired);
    if (usage) usages.push(usage);
  }
  return texts.size === 0 ? answer : withTexts(answer, texts, usages);
}

type Test = ReturnType<ConformingDeps['against']>;

/** By index of the candidate: values taken out of the text around them, and texts that do not conform. */
interface Verdict {
  readonly mended: ReadonlyMap<number, string>;
  readonly wrong: ReadonlyMap<number, string>;
}

async function verdictOn(call: GenerateCall, answer: readonly GenerateEvent[], fits: Test): Promise<Verdict> {
  const [mended, wrong] = [new Map<number, string>(), new Map<number, string>()];
  for (const [at, candidate] of fold(answer).candidates.entries()) {
    if (!isValue(candidate)) continue;
    const text = textIn(candidate.parts);
    if (await fits(asJson(call, text))) continue;
    const bare = bareValue(call, text);
    if (bare !== undefined && (await fits(asJson(call, bare)))) mended.set(at, bare);
    else wrong.set(at, text);
  }
  return { mended, wrong };
}

type JsonOutput = Exclude<GenerateCall['output'], { readonly type: 'text' }>;

const anyObject: JsonObject = { type: 'object' };

/** OpenAI's interfaces guarantee a schema only if it is `strict`; the others always do. */
const isOptional = (output: JsonOutput, context: Context): boolean =>
  context.face === 'chatcompat' && output.type === 'schema' && output.strict !== true && !context.strict;

const notGuaranteed = 'response_format: the model is not known to keep to schemas, and without strict the answer is not checked.';

/** Buffers an answer and judges it as soon as it is complete, before it is booked, so that its usage row has the refusal. */
class JudgedAnswer<Judgement> {
  readonly events: GenerateEvent[] = [];
  /** The context of the call. */
  readonly context: Context;
  readonly #judge: (events: readonly GenerateEvent[]) => Promise<Judgement>;
  readonly #review: Review = {};
  readonly #held: HeldBytes;
  #unfinished: number;
  #verdict: Promise<Judgement> | undefined;

  constructor({ sampling }: Pick<GenerateCall, 'sampling'>, context: Context, judge: (events: readonly GenerateEvent[]) => Promise<Judgement>) {
    this.context = { ...context, review: this.#review };
    this.#judge = judge;
    this.#held = new HeldBytes(context);
    this.#unfinished = sampling.candidates ?? 1;
  }

  async take(events: Events): Promise<void> {
    for (const event of events) {
      this.#held.add(event);
      this.events.push(event);
      if (event.type === 'finished') this.#unfinished--;
    }
    if (this.#unfinished > 0 || this.#verdict) return;
    await this.verdict().catch((error: unknown) => (this.#review.refusal = faultOf(error)));
  }

  /** @throws what the judge throws */
  verdict(): Promise<Judgement> {
    return (this.#verdict ??= this.#judge(this.events));
  }
}

const isValue = ({ reason, parts }: Candidate): boolean =>
  reason !== 'refused' && reason !== 'length' && !parts.some(({ type }) => type === 'tool-call' || type === 'refusal');

const isBare = ({ output }: GenerateCall): boolean => output.type === 'schema' && output.bare === true;

/** The value that a text is, as JSON. */
const asJson = (call: GenerateCall, text: string): string => (isBare(call) ? JSON.stringify(text) : text);

/** The value alone, where something else may be around it. */
const bareValue = (call: GenerateCall, text: string): string | undefined => (isBare(call) ? text.trim() : withoutFence(text));

interface Repair {
  readonly inner: Generate;
  readonly call: GenerateCall;
  readonly fits: Test;
}

/** Asks for the answer once more, with the nonconforming one and the reason. @throws Fault `upstream-failed` if the new one does not conform either */
async function repair({ inner, call, fits }: Repair, context: Context, text: string): Promise<{ readonly text: string; readonly usage: Usage | undefined }> {
  const turns: GenerateCall['turns'] = [
    ...call.turns,
    ...(text === '' ? [] : [textTurn('model', text)]),
    textTurn('user', isBare(call) ? wrongWord : call.output.type === 'json' ? noJson : wrongJson),
  ];
  const { candidates: _, ...sampling } = call.sampling;
  const again = { ...withoutPassthrough(call), turns, sampling };
  const answer = new JudgedAnswer(again, context, async (events) => {
    const [candidate] = fold(events).candidates;
    const repaired = candidate ? textIn(candidate.parts) : '';
    const value = bareValue(call, repaired) ?? repaired;
    if (await fits(asJson(call, value))) return value;
    throw new Fault('upstream-failed', 'The answer of the model does not conform to the schema, and neither does the repaired answer.');
  });
  for await (const events of inner(again, answer.context)) await answer.take(events);
  return { text: await answer.verdict(), usage: fold(answer.events).usage };
}

const wrongJson = 'That does not conform to the JSON schema of the answer. Answer again, with nothing but JSON that conforms to it.';
const noJson = 'That is not a JSON object. Answer again, with a single JSON object and nothing else.';
const wrongWord = 'That is none of the words that may be answered. Answer again, with nothing but one of them.';

/** The answer with replaced texts, each at the end of its candidate, and with the usage of the repairs. */
function withTexts(answer: readonly GenerateEvent[], texts: ReadonlyMap<number, string>, usages: readonly Usage[]): readonly GenerateEvent[] {
  return answer.flatMap((event): readonly GenerateEvent[] => {
    if (event.type === 'usage') return [{ type: 'usage', usage: usages.reduce(sumOf, event.usage) }];
    const text = 'candidate' in event ? texts.get(event.candidate) : undefined;
    if (text === undefined) return [event];
    if (event.type === 'text') return [];
    return event.type === 'finished' ? [{ type: 'text', candidate: event.candidate, text }, event] : [event];
  });
}
