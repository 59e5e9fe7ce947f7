import type { Decoder } from '#dialects/shared/decoder';
import { plainAnswer } from '#dialects/openai/chat/decode-answer';
import { areWholeCalls } from '#dialects/openai/chat/mended-chunk';
import { PassingFrames, contentTokens, textIn } from '#dialects/openai/chat/passthrough';
import { decodeResult } from '#dialects/openai/chat/result';
import { LineFeeds } from '#kit/upstream/line-feeds';
import type { UpstreamResponse } from '#kit/upstream/response';
import { mostFrameBytes } from '#kit/upstream/sse';
import { byteOrderMark } from '#kit/text/byte-order-mark';
import type { Clock } from '#kit/async/clock';
import { speaks, type GenerateEvent } from '#core/event';
import type { Events } from '#core/event';
import { isObject } from '#core/json';
import type { Passthrough } from '#core/passthrough';
import { answerFault, asRefusal, type AwaitingWords } from '../shared/post.ts';
import { Forwarder, type ForwardSink } from '../shared/forwarder.ts';
import { orComplete } from '../shared/read-answer.ts';

export interface Forwarding {
  readonly passthrough: Passthrough;
  /** Is called with the decoded events, if the answer begins with thoughts with all of them. */
  readonly observe?: ((events: Events) => void) | undefined;
}

/** Forwards a whole answer unparsed; reads only its usage and its end. One that lacks what every chat completion has is decoded, so that it is written anew. */
export function passWhole(bytes: Uint8Array, body: unknown, model: string, { passthrough, observe }: Forwarding): Events {
  const isWhole = hasAllMembers(body);
  const plain = observe || !isWhole ? undefined : plainAnswer(body, model);
  if (plain) {
    passthrough.write(bytes);
    return plain;
  }
  const events = decodeResult(body, model);
  observe?.(events);
  if (!isWhole) return events;
  passthrough.write(bytes);
  return [
    ...events.filter(({ type }) => type === 'started'),
    { type: 'passed', tokens: contentTokens(events), text: textIn(events) },
    ...events.filter((event) => event.type !== 'started' && !speaks(event)),
  ];
}

/** Has an answer the members of a chat completion, but for its usage, which is added where it is missing? */
function hasAllMembers(body: unknown): boolean {
  if (!isObject(body) || typeof body['id'] !== 'string' || body['object'] !== 'chat.completion' || typeof body['model'] !== 'string') return false;
  const choices: unknown = body['choices'];
  return typeof body['created'] === 'number' && Array.isArray(choices) && choices.every(isWholeChoice);
}

function isWholeChoice(choice: unknown): boolean {
  if (!isObject(choice) || !Number.isInteger(choice['index']) || typeof choice['finish_reason'] !== 'string') return false;
  const { message } = choice;
  return (
    isObject(message) && message['role'] === 'assistant' && 'content' in message && !Array.isArray(message['content']) && areWholeCalls(message['tool_calls'])
  );
}

/** Forwards the frames of a stream unparsed, once its first content has arrived and the response head has been sent. */
export async function* passStream(
  response: UpstreamResponse,
  awaiting: AwaitingWords,
  decoder: Decoder,
  forwarding: Forwarding & { readonly clock: Clock },
): AsyncGenerator<Events> {
  const passing = new PassthroughStream(response, decoder, forwarding);
  const { frames } = passing;
  try {
    await passing.begin(awaiting);
    yield [...frames.opening.splice(0), { type: 'passed', tokens: 0 }];
    awaiting.spoke();
    forwarding.passthrough.request.written = undefined; // what was heard is never asked for again
    response.isEnding = decoder.isFinished();
    if (!passing.forwardBeginning()) await passing.drained();
    frames.check();
    const forwarder = new Forwarder(response, forwarding.clock, passing);
    while (!(await forwarder.ended())) yield [{ type: 'passed', tokens: frames.untold() }];
    passing.forward(frames.last());
    frames.end();
  } catch (error) {
    if (frames.spoken) yield unfinished(frames, decoder);
    const fault = answerFault(error, frames.spoken);
    throw frames.spoken ? fault : asRefusal(fault, decoder.counted());
  }
  yield [{ type: 'passed', tokens: frames.untold() }, ...frames.closing];
}

/** A stream that is forwarded. A class: as many closures would take half a KB more of each open stream. */
class PassthroughStream implements ForwardSink {
  readonly frames: PassingFrames;
  readonly #response: UpstreamResponse;
  readonly #decoder: Decoder;
  readonly #passthrough: Passthrough;
  #lines: LineFeeds | undefined;
  #held: Uint8Array[] | undefined;

  constructor(response: UpstreamResponse, decoder: Decoder, { passthrough, observe }: Forwarding) {
    this.frames = new PassingFrames(decoder, { usageWanted: passthrough.usageWanted, observe, heard: passthrough.heard });
    this.#response = response;
    this.#decoder = decoder;
    this.#passthrough = passthrough;
    passthrough.forwards?.(this);
  }

  /** Takes what is to be sent first: all up to the first content. */
  async begin(awaiting: AwaitingWords): Promise<void> {
    const { frames } = this;
    const held: Uint8Array[] = [];
    let bytes = await firstLine(awaiting);
    if (!hasPlainLines(bytes)) this.#lines = new LineFeeds();
    for (; bytes; bytes = frames.spoken || frames.failed ? undefined : await orComplete(awaiting.take(), () => frames.isComplete, undefined))
      held.push(...this.#push(bytes));
    if (!frames.spoken) held.push(...frames.last());
    if (!frames.spoken) frames.end();
    this.#held = held;
  }

  forwardBeginning(): boolean {
    const held = this.#held ?? [];
    this.#held = undefined;
    return this.forward(held);
  }

  #push(bytes: Uint8Array): readonly Uint8Array[] {
    const ready = this.frames.push(this.#lines ? this.#lines.take(bytes) : bytes);
    if (this.frames.isOver) this.#response.over();
    return ready;
  }

  give(bytes: Uint8Array): boolean {
    const { frames } = this;
    const ready = this.forward(this.#push(bytes));
    frames.check();
    if (frames.closing.length > 0) this.#response.isEnding = this.#decoder.isFinished();
    return ready;
  }

  /** @returns false while the client reads slowly */
  forward(pieces: readonly Uint8Array[]): boolean {
    let ready = true;
    for (const bytes of pieces) ready = this.#passthrough.write(bytes) && ready;
    return ready;
  }

  drained(): Promise<void> {
    return this.#passthrough.drained();
  }

  untold(): number {
    return this.frames.untold();
  }

  get noted(): ((tokens: number) => void) | undefined {
    return this.#passthrough.noted;
  }

  isComplete(): boolean {
    return this.frames.isComplete;
  }
}

/** The known usage of an incomplete answer. */
function unfinished(frames: PassingFrames, decoder: Decoder): Events {
  const usage = decoder.counted();
  const passed: GenerateEvent = { type: 'passed', tokens: frames.untold(), ...(frames.thinks ? { thoughts: true } : {}) };
  return usage ? [passed, { type: 'usage', usage: { ...usage, source: 'partial' } }] : [passed];
}

/** The bytes up to the end of the first line, with the rest of the same chunk. */
async function firstLine(awaiting: AwaitingWords): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (let more = await awaiting.take(); more; more = await awaiting.take()) {
    pieces.push(more);
    size += more.length;
    if (more.includes(LF) || more.includes(CR) || size >= mostFrameBytes) break;
  }
  return pieces.length > 1 ? Buffer.concat(pieces) : pieces[0];
}

const LF = 0x0a;
const CR = 0x0d;

const hasPlainLines = (bytes: Uint8Array | undefined): boolean => bytes === undefined || (!bytes.includes(CR) && bytes[0] !== byteOrderMark[0]);
