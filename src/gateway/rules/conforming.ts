import type { GenerateCall } from '#core/call';
import type { GenerateEvent, Usage, Events } from '#core/event';
import { Fault } from '#core/fault';
import { fold, type Candidate } from '#core/fold';
import { where, type Generate } from '#core/generate';
import type { Context } from '#core/context';
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
    const fits = which === 'all' && output.type === 'schema' ? against(schema, asking) : undefined;
    const answer: GenerateEvent[] = [];
    const held = new HeldBytes(context);
    let isHeld = fits !== undefined;
    for await (const events of inner(call, context)) {
      if (!isHeld && events.some((event) => event.type === 'started' && event.unpromised)) {
        if (!isOptional(output, context)) isHeld = true;
        else {
          yield events.map((event) => (event.type === 'started' ? { ...event, ignored: [...event.ignored, notGuaranteed] } : event));
          continue;
        }
      }
      if (isHeld) hold(events, answer, held);
      else yield events;
    }
    if (isHeld) yield await mendedAnswer(call, answer, fits ?? against(schema, asking), context);
  }

  async function mendedAnswer(call: GenerateCall, answer: readonly GenerateEvent[], fits: ReturnType<typeof against>, context: Context): Promise<Events> {
    const range = (call.sampling.candidates ?? 1) > 1 ? 'repairs' : 'repair';
    const mended = new Map<number, string>();
    const usages: Usage[] = [];
    for (const [at, candidate] of fold(answer).candidates.entries()) {
      if (!isValue(candidate)) continue;
      const text = textIn(candidate.parts);
      if (await fits(asJson(call, text))) continue;
      const bare = bareValue(call, text);
      if (bare !== undefined && (await fits(asJson(call, bare)))) mended.set(at, bare);
      else {
        const { text: repaired, usage } = await repair(inner, call, { ...context, step: stepOf(context.step, range, at) }, text);
        if (!(await fits(asJson(call, repaired))))
          throw new Fault('upstream-failed', 'The answer of the model does not conform to the schema, and neither does the repaired answer.');
        mended.set(at, repaired);
        if (usage) usages.push(usage);
      }
    }
    return mended.size === 0 ? answer : withTexts(answer, mended, usages);
  }
}

type JsonOutput = Exclude<GenerateCall['output'], { readonly type: 'text' }>;

const anyObject: JsonObject = { type: 'object' };

/** OpenAI's interfaces guarantee a schema only if it is `strict`; the others always do. */
const isOptional = (output: JsonOutput, context: Context): boolean =>
  context.face === 'chatcompat' && output.type === 'schema' && output.strict !== true && !context.strict;

const notGuaranteed = 'response_format: the model is not known to keep to schemas, and without strict the answer is not checked.';

function hold(events: Events, answer: GenerateEvent[], held: HeldBytes): void {
  for (const event of events) {
    held.add(event);
    answer.push(event);
  }
}

async function eventsOf(answer: ReturnType<Generate>, context: Context): Promise<readonly GenerateEvent[]> {
  const all: GenerateEvent[] = [];
  const held = new HeldBytes(context);
  for await (const events of answer) hold(events, all, held);
  return all;
}

const isValue = ({ reason, parts }: Candidate): boolean =>
  reason !== 'refused' && reason !== 'length' && !parts.some(({ type }) => type === 'tool-call' || type === 'refusal');

const isBare = ({ output }: GenerateCall): boolean => output.type === 'schema' && output.bare === true;

/** The value that a text is, as JSON. */
const asJson = (call: GenerateCall, text: string): string => (isBare(call) ? JSON.stringify(text) : text);

/** The value alone, where something else may be around it. */
const bareValue = (call: GenerateCall, text: string): string | undefined => (isBare(call) ? text.trim() : withoutFence(text));

/** Asks for the answer once more, with the nonconforming one and the reason. */
async function repair(
  inner: Generate,
  call: GenerateCall,
  context: Context,
  text: string,
): Promise<{ readonly text: string; readonly usage: Usage | undefined }> {
  const turns: GenerateCall['turns'] = [
    ...call.turns,
    ...(text === '' ? [] : [textTurn('model', text)]),
    textTurn('user', isBare(call) ? wrongWord : call.output.type === 'json' ? noJson : wrongJson),
  ];
  const { candidates: _, ...sampling } = call.sampling;
  const { candidates, usage } = fold(await eventsOf(inner({ ...withoutPassthrough(call), turns, sampling }, context), context));
  const [candidate] = candidates;
  const repaired = candidate ? textIn(candidate.parts) : '';
  return { text: bareValue(call, repaired) ?? repaired, usage };
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
