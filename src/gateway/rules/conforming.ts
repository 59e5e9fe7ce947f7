import type { GenerateCall, Output } from '#core/call';
import type { GenerateEvent, Usage, Events } from '#core/event';
import { Fault } from '#core/fault';
import { fold, type Candidate } from '#core/fold';
import type { Generate } from '#core/generate';
import type { Context } from '#core/context';
import type { JsonObject } from '#core/json';
import { inSteps } from '#core/permits';
import { stepOf } from '#core/steps';
import { sumOf } from '#core/usage';
import { HeldBytes } from './held-back.ts';

export interface ConformingDeps {
  /** A test of whether a text is JSON that conforms to a JSON Schema. @throws Fault `invalid` for a schema that is too large */
  readonly against: (schema: JsonObject, asking: { readonly owner: string; readonly signal: AbortSignal }) => (text: string) => boolean | Promise<boolean>;
  /** Every answer to a request with a schema is validated. Absent: only those whose form no provider has promised. */
  readonly always?: boolean;
}

/**
 * Schema validation: an answer conforms to the schema of its request, whichever model answers. It is buffered until it does, in a stream too: what a client has
 * read cannot be repaired. If it does not conform, the model is asked once more, with the reason. An answer that was refused, reached its limit or calls a tool is
 * passed on unchanged: it is no value.
 *
 * @throws Fault `upstream-failed` if neither the answer nor its repair conforms
 */
export function conforming({ against, always = false }: ConformingDeps, inner: Generate): Generate {
  return (call, context) => {
    const { output } = call;
    if (output.type === 'text') return inner(call, context);
    return inSteps(context.permits, conformed(call, output, context));
  };

  async function* conformed(call: GenerateCall, output: Exclude<Output, { type: 'text' }>, context: Context): AsyncGenerator<Events> {
    const testOf = () => against(output.type === 'schema' ? output.schema : anyObject, { owner: String(context.caller.userId), signal: context.signal });
    const fits = always && output.type === 'schema' ? testOf() : undefined;
    const held: GenerateEvent[] = [];
    const bytes = new HeldBytes(context);
    let isPromised: boolean | undefined = fits ? false : undefined;
    for await (const events of inner(call, context)) {
      isPromised ??= promiseIn(events);
      if (isPromised) yield events;
      else
        for (const event of events) {
          bytes.add(event);
          held.push(event);
        }
    }
    if (!isPromised) yield await mended(held, call, fits ?? testOf(), context);
  }

  async function mended(
    answer: readonly GenerateEvent[],
    call: GenerateCall,
    fits: (text: string) => boolean | Promise<boolean>,
    context: Context,
  ): Promise<Events> {
    const texts = new Map<number, string>();
    const usages: Usage[] = [];
    for (const [at, candidate] of fold(answer).candidates.entries()) {
      if (!isValue(candidate)) continue;
      const text = textOf(candidate);
      if (await fits(text)) continue;
      const bare = withoutFence(text);
      if (bare !== undefined && (await fits(bare))) texts.set(at, bare);
      else {
        const { text: repaired, usage } = await repair(inner, call, { ...context, step: stepOf(context.step, 'repair', at) }, text);
        if (usage) usages.push(usage);
        if (await fits(repaired)) texts.set(at, repaired);
        else if (!isBestEffort(call.output))
          throw new Fault('upstream-failed', 'The answer of the model does not conform to the schema, and neither does the repaired answer.');
      }
    }
    return texts.size === 0 && usages.length === 0 ? answer : withTexts(answer, texts, usages);
  }
}

const anyObject: JsonObject = { type: 'object' };

/** Does the provider promise the form of the answer? @returns undefined for events before its beginning */
function promiseIn(events: Events): boolean | undefined {
  const started = events.find((event) => event.type === 'started');
  return started ? started.isUnchecked !== true : undefined;
}

/** The wires on which schemas have names have strict ones, which alone are a promise to the client. */
const isBestEffort = (output: Output): boolean => output.type === 'schema' && output.name !== undefined && output.strict !== true;

async function eventsOf(answer: ReturnType<Generate>, context: Context): Promise<readonly GenerateEvent[]> {
  const all: GenerateEvent[] = [];
  const held = new HeldBytes(context);
  for await (const events of answer)
    for (const event of events) {
      held.add(event);
      all.push(event);
    }
  return all;
}

const isValue = ({ reason, parts }: Candidate): boolean =>
  reason !== 'refused' && reason !== 'length' && !parts.some(({ type }) => type === 'tool-call' || type === 'refusal');

const textOf = ({ parts }: Candidate): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The JSON within a Markdown code fence. Models are untrusted, so no backtracking regular expression may run on their texts. */
function withoutFence(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed.length < 6 || !trimmed.startsWith('```') || !trimmed.endsWith('```')) return undefined;
  const fenced = trimmed.slice(trimmed.startsWith('json', 3) ? 7 : 3, -3);
  const inner = fenced.trimStart();
  return fenced.slice(0, fenced.length - inner.length).includes('\n') ? inner.trimEnd() : undefined;
}

/** Asks for the answer once more, with the nonconforming one and the reason. */
async function repair(
  inner: Generate,
  call: GenerateCall,
  context: Context,
  text: string,
): Promise<{ readonly text: string; readonly usage: Usage | undefined }> {
  const turns: GenerateCall['turns'] = [
    ...call.turns,
    ...(text === '' ? [] : [{ role: 'model' as const, parts: [{ type: 'text' as const, text }] }]),
    {
      role: 'user',
      parts: [{ type: 'text', text: 'That does not conform to the JSON schema of the answer. Answer again, with nothing but JSON that conforms to it.' }],
    },
  ];
  const { candidates: _, ...sampling } = call.sampling;
  const { candidates, usage } = fold(await eventsOf(inner({ ...call, turns, sampling }, context), context));
  const [candidate] = candidates;
  const repaired = candidate ? textOf(candidate) : '';
  return { text: withoutFence(repaired) ?? repaired, usage };
}

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
