/** Good answers, and good answers with odd manners: what a gateway must be able to read. */
import { collected, whole, type Bytes, type HttpAnswer, type Pieces } from './answer.ts';
import type { Behaviour, Exchange } from './behaviour.ts';
import { pieces, type Asked, type Answer, type AnswerUsage, type ToolCall, type ToolShape } from './wire.ts';

export interface Saying {
  /** Unless given: `You said: ` and the last words of the user, cut at their maximum of tokens. */
  readonly text?: string;
  readonly thought?: string;
  /** Without an id of its own a call gets one of ours. */
  readonly tools?: readonly (Omit<ToolCall, 'id'> & Partial<Pick<ToolCall, 'id'>>)[];
  readonly toolShape?: ToolShape;
  readonly signature?: string;
  readonly thoughtField?: string;
  readonly model?: string;
  /** The wire's word; null: as null; `missing`: no chunk says it. */
  readonly finish?: string | null;
  /** Unless given, one token a word, told once, to a stream when it asks. Given numbers may be anything, and are told always. */
  readonly usage?: 'missing' | 'null' | 'twice' | 'with-finish' | { readonly input: unknown; readonly output: unknown; readonly total?: unknown };
  readonly manners?: Manners;
}

/** How a stream is written down. */
interface Manners {
  readonly lineEnd?: '\n' | '\r\n' | '\r';
  /** How often the frame comes that ends a good stream; 1 unless said. */
  readonly done?: number;
  /** Frames after that. */
  readonly after?: readonly string[];
  readonly bom?: boolean;
  readonly comments?: boolean;
  /** `event: message`, `id:` and `retry:` lines in every frame. */
  readonly fields?: boolean;
}

/** A good answer, whole or streamed as asked. */
export const ok = (saying: Saying = {}): Behaviour => ({ name: 'ok', answer: (exchange) => good(exchange, saying) });

export const toolCalls = (tools: Saying['tools'] & object, toolShape: ToolShape = 'pieces'): Behaviour =>
  named('toolCalls', ok({ text: '', tools, toolShape }));
export const thinking = (thought: string, text?: string): Behaviour => named('thinking', ok({ thought, ...(text === undefined ? {} : { text }) }));
export const noDone = (): Behaviour => named('noDone', ok({ manners: { done: 0 } }));
export const noFinish = (): Behaviour => named('noFinish', ok({ finish: 'missing' }));
export const doneTwice = (): Behaviour => named('doneTwice', ok({ manners: { done: 2 } }));
export const afterDone = (...after: string[]): Behaviour => named('afterDone', ok({ manners: { after } }));
export const lineEnds = (lineEnd: '\r\n' | '\r'): Behaviour => named('lineEnds', ok({ manners: { lineEnd } }));
export const comments = (): Behaviour => named('comments', ok({ manners: { comments: true } }));
export const fields = (): Behaviour => named('fields', ok({ manners: { fields: true } }));
export const bom = (): Behaviour => named('bom', ok({ manners: { bom: true } }));
export const usage = (usage: NonNullable<Saying['usage']>): Behaviour => named('usage', ok({ usage }));

/** Bills as many tokens as it is allowed to say for each answer, and no more than its model can. @param after it answers then */
export const talkative = (most: number, after?: Promise<void>): Behaviour => ({
  name: 'talkative',
  answer: async (exchange) => {
    await after;
    const { promptTokens, candidates, maxTokens = most } = exchange.asked;
    return good(exchange, { text: 'On and on.', usage: { input: promptTokens, output: candidates * Math.min(most, maxTokens) } });
  },
});

/** One byte a packet: each is a chunk of its own, so no reader gets two at once. */
export const sliced = (base: Behaviour = ok()): Behaviour =>
  altered('sliced', base, async (answer) => ({ ...answer, body: cutUp(await collected(answer.body), 1), framing: 'chunked' }));

/** This many bytes a second. */
export const drip = (bytesPerSecond: number, base: Behaviour = ok()): Behaviour =>
  altered('drip', base, async (answer, { sleep }) => ({ ...answer, body: paced(cutUp(await collected(answer.body), bytesPerSecond), () => sleep(1000)) }));

/** Headers at once, the first event after this many seconds. */
export const slowThinker = (seconds: number, base: Behaviour = ok()): Behaviour =>
  altered('slowThinker', base, (answer, { sleep }) => ({ ...answer, body: late(answer.body, () => sleep(seconds * 1000)) }));

/** This many milliseconds between two events. */
export const pace = (milliseconds: number, base: Behaviour = ok()): Behaviour =>
  altered('pace', base, (answer, { sleep }) => ({ ...answer, body: paced(answer.body, () => sleep(milliseconds)) }));

/** A recorded stream: the JSON texts of its `data:` lines, as they came. */
export const replay = (lines: readonly string[], { paceMs = 0, last = true } = {}): Behaviour => ({
  name: 'replay',
  answer: ({ wire, sleep }) => {
    const frames = [...lines.map((line) => `data: ${line}`), ...(last && wire.last ? [wire.last] : [])].map((frame) => `${frame}\n\n`);
    return { ...stream([]), body: paceMs ? paced(frames, () => sleep(paceMs)) : frames };
  },
});

/** Closes the kept-alive connection this many milliseconds after a good answer, without having said so. */
export const closesIdle = (milliseconds: number): Behaviour =>
  altered('closesIdle', ok(), (answer, { hangUp }) => {
    hangUp(milliseconds);
    return answer;
  });

/** The answer of `ok`, for behaviours that spoil it. */
export function good({ asked, wire, request }: Exchange, saying: Saying = {}): HttpAnswer {
  const said = saidOf(asked, saying, request.id);
  if (!asked.stream) return whole(200, JSON.stringify(wire.whole(asked, said)), { 'content-type': 'application/json' });
  return stream(written(wire.frames(asked, said), wire.last, saying.manners));
}

/** A 200 event stream of these pieces. */
export const stream = (body: HttpAnswer['body']): HttpAnswer => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  body,
  framing: 'chunked',
  end: 'finish',
});

/** A behaviour whose answer is another's, changed. Only for those that speak HTTP. */
export function altered(name: string, base: Behaviour, change: (answer: HttpAnswer, exchange: Exchange) => HttpAnswer | Promise<HttpAnswer>): Behaviour {
  return {
    ...base,
    name: base.name === 'ok' ? name : `${name}(${base.name})`,
    answer: async (exchange) => change((await base.answer(exchange)) as HttpAnswer, exchange),
  };
}

const named = (name: string, behaviour: Behaviour): Behaviour => ({ ...behaviour, name });

function saidOf(asked: Asked, saying: Saying, id: number): Answer {
  const echo = pieces(`You said: ${asked.text}`);
  const text = saying.text === undefined ? echo.slice(0, asked.maxTokens) : pieces(saying.text);
  const cut = saying.text === undefined && text.length < echo.length;
  const tools = (saying.tools ?? []).map((tool, at) => ({ id: `call_${id}_${at}`, ...tool }));
  const thought = pieces(saying.thought ?? '');
  return {
    id: String(id),
    model: saying.model ?? asked.model,
    created: Math.floor(Date.now() / 1000),
    text,
    thought,
    tools,
    toolShape: saying.toolShape ?? 'pieces',
    ...(saying.signature === undefined ? {} : { signature: saying.signature }),
    ...(saying.thoughtField === undefined ? {} : { thoughtField: saying.thoughtField }),
    finish:
      saying.finish === 'missing'
        ? 'missing'
        : saying.finish === undefined
          ? { reason: cut ? 'length' : tools.length > 0 ? 'tool' : 'stop' }
          : { raw: saying.finish },
    usage: usageOf(asked, saying.usage, asked.candidates * (text.length + thought.length + tools.length)),
  };
}

function usageOf(asked: Asked, told: Saying['usage'], output: number): AnswerUsage {
  const counted = { input: asked.promptTokens, output, total: asked.promptTokens + output };
  if (told === undefined) return asked.stream && !asked.usage ? { how: 'missing' } : { how: 'once', numbers: counted };
  if (typeof told === 'object') return { how: 'once', numbers: { total: counted.total, ...told } };
  return told === 'missing' || told === 'null' ? { how: told } : { how: told, numbers: counted };
}

function written(frames: readonly string[], last: string | undefined, manners: Manners = {}): Bytes[] {
  const { lineEnd = '\n', done = 1, after = [] } = manners;
  const before = manners.fields ? 'event: message\nid: 1\nretry: 10\n' : '';
  const all = [...frames, ...Array.from({ length: last ? done : 0 }, () => last!), ...after];
  const lines = all.map((frame) => `${manners.comments ? ': keep-alive\n\n' : ''}${before}${frame}\n\n`.replaceAll('\n', lineEnd));
  return manners.bom ? [`\uFEFF${lines[0]}`, ...lines.slice(1)] : lines;
}

function* cutUp(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function* paced(body: Pieces, pause: () => Promise<void>): AsyncGenerator<Bytes> {
  let first = true;
  for await (const piece of body) {
    if (!first) await pause();
    first = false;
    yield piece;
  }
}

async function* late(body: Pieces, pause: () => Promise<void>): AsyncGenerator<Bytes> {
  await pause();
  yield* body;
}
