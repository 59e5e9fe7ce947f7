import type { Call } from '#core/routed-call';
import { encoded, type Embed, type EmbedCall, type Embedded, type InputStatistics, type Purpose, type Vector } from '#core/embed';
import type { Task } from '#core/task';
import type { Started, Usage, Events } from '#core/event';
import type { Generate } from '#core/generate';
import type { TargetContext } from '#core/context';
import { estimatedPrompt } from '#core/measure';
import { withoutPassthrough } from '#core/passthrough';
import type { Target } from '#core/target';
import { estimatedTokensOf } from '#kit/tokens/estimate';

/** Most bytes and tokens per request: some 250,000 tokens of English, below OpenAI's limit of 300,000. */
const partBytes = 750_000;
const partTokens = 250_000;

/** Embeddings through the gateway. A request larger than providers accept is split into parts, which run in order. */
export function embedding(generate: Generate<Call>): Embed {
  return async (call, context) => {
    let started: Started | undefined;
    const head = () => ({ model: started?.model ?? '', ignored: started?.ignored ?? [] });
    const parts = split(call).map((part) => task(part, head));
    const request = parts.length === 1 ? parts[0]! : whole(call, parts);
    let usage: Usage | undefined;
    for await (const events of generate(request, context))
      for (const event of events) {
        if (event.type === 'started') started = event;
        if (event.type === 'usage') usage = event.usage;
      }
    const vectors = parts.flatMap((part) => part.vectors);
    const statistics = parts.flatMap((part) => part.statistics);
    return {
      ...head(),
      usage: usage ?? { input: estimatedPrompt(request, estimatedTokensOf), output: 0, source: 'estimated' },
      vectors,
      ...(statistics.length === call.inputs.length ? { statistics } : {}),
    };
  };
}

type Head = Pick<Embedded, 'model' | 'ignored'>;

/** A task and its vectors; none if the answer was forwarded unparsed. */
interface EmbedTask extends Task {
  vectors: readonly Vector[];
  statistics: readonly InputStatistics[];
}

/** The texts of a call that a model reads: each input, followed by the title of its document. */
function textsOf({ inputs, purposes }: EmbedCall): readonly string[] {
  const texts: string[] = [];
  for (const [at, input] of inputs.entries()) {
    if (typeof input === 'string') texts.push(input);
    const title = purposes?.[at]?.title;
    if (title !== undefined) texts.push(title);
  }
  return texts;
}

/** The call with its texts replaced, in the order of `textsOf`; the client's own bytes no longer apply. */
function withTexts(changed: EmbedCall, texts: readonly string[]): EmbedCall {
  const call = withoutPassthrough(changed);
  if (texts.length === 0) return call;
  const left = texts.values();
  const inputs: string[] = [];
  const purposes: Purpose[] = [];
  for (const [at, input] of call.inputs.entries()) {
    if (typeof input === 'string') inputs.push(left.next().value!);
    const purpose = call.purposes?.[at];
    if (purpose) purposes.push(purpose.title === undefined ? purpose : { ...purpose, title: left.next().value! });
  }
  return { ...call, ...(inputs.length === 0 ? {} : { inputs }), ...(call.purposes ? { purposes } : {}) };
}

/** @param head the head of the answer, known when it begins */
function task(call: EmbedCall, head: () => Head): EmbedTask {
  const partOf = (current: EmbedCall) => ({
    ...common(current),
    async *ask(target: Target, context: TargetContext): AsyncGenerator<Events> {
      const { model, ignored, usage, answer } = await target.embed!(current, context);
      yield [
        { type: 'started', model, ignored },
        { type: 'passed', tokens: 0 },
      ];
      if ('vectors' in answer) {
        made.vectors = answer.vectors.map((vector) => encoded(vector, current.encoding));
        made.statistics = answer.statistics ?? [];
      } else current.passthrough!.forward(head(), answer.pieces);
      if (usage) yield [{ type: 'usage', usage }];
    },
  });
  const made: EmbedTask = { ...partOf(call), vectors: [], statistics: [], withTexts: (texts) => partOf(withTexts(call, texts)) };
  return made;
}

const whole = (call: EmbedCall, parts: readonly Task[]): Task => ({
  ...common(call),
  parts,
  ask: () => [] as never,
  withTexts(texts) {
    let at = 0;
    const changed = parts.map((part) => part.withTexts!(texts.slice(at, (at += part.texts.length))));
    return whole(withTexts(call, texts), changed);
  },
});

const common = (call: EmbedCall) => ({
  model: call.model,
  kind: 'embedding' as const,
  stream: false,
  sampling: { maxTokens: 0 },
  texts: textsOf(call),
  ...(call.inputs.some((input) => typeof input !== 'string') ? { unread: 'input' } : {}),
  tokens: call.inputs.reduce((sum, input) => sum + (typeof input === 'string' ? 0 : input.length), 0),
  able: (target: { readonly embed?: unknown }) => target.embed !== undefined,
  unable: 'No provider here makes vectors for this model. Name an embedding model: GET /models lists them.',
});

/** Splits a call into parts, in order, each as large as providers accept. */
function split(call: EmbedCall): readonly EmbedCall[] {
  const starts: number[] = [];
  let room = 0;
  for (const [at, input] of call.inputs.entries()) {
    const size = typeof input === 'string' ? Buffer.byteLength(input) / partBytes : input.length / partTokens;
    if (starts.length === 0 || size > room) {
      starts.push(at);
      room = 1;
    }
    room -= size;
  }
  if (starts.length === 1) return [call];
  const { inputs, purposes, ...rest } = withoutPassthrough(call);
  return starts.map((from, part) => {
    const to = starts[part + 1];
    return { ...rest, inputs: inputs.slice(from, to), ...(purposes ? { purposes: purposes.slice(from, to) } : {}) };
  });
}
