import { splice } from '#kit/json/scan';
import { valueIn } from '#kit/json/value-in';
import type { UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { isCount } from '#dialects/shared/read-fields';
import type { Events, GenerateEvent, Usage } from '#core/event';
import type { TargetContext } from '#core/context';
import { isObject } from '#core/json';
import type { RawBody, RawRequest } from '#core/raw-request';
import type { Counts } from '#core/price';
import { answerFault, asRefusal, AwaitingWords, whole } from '../shared/post.ts';
import { beginsWithEvents } from '../shared/read-answer.ts';
import { Forwarder } from '../shared/forwarder.ts';
import { attempt } from '../shared/attempt.ts';
import type { OperationEndpoint } from '../shared/operation.ts';
import { checkBeginning, checkWhole, recordedSeconds, isEvents, mostJudged } from './raw-answers.ts';
import { RawEvents } from './raw-events.ts';

/** The operation whose answer is a sound. */
export const speech = 'audio/speech';
const unknownType = 'application/octet-stream';
/** Bytes at the end of an answer that are searched for its usage. */
const tailBytes = 16_384;

/** What is needed of a request in order to forward it. */
type Forwarded = Pick<RawRequest, 'operation' | 'body' | 'stream' | 'saysText' | 'open' | 'write' | 'drained'> & Partial<Pick<RawRequest, 'counts'>>;

/** Forwards a request with the model name replaced, and its answer unchanged: a sound or a stream as it arrives, any other once it is complete and checked. @throws Fault */
export async function* sendRaw(endpoint: OperationEndpoint, clock: Clock, call: Forwarded, context: TargetContext): AsyncGenerator<Events> {
  const { body, contentType } = await bodyOf(call.body, endpoint.model);
  const { response } = await attempt(endpoint, { operation: call.operation, body, contentType, ignored: [] }, context);
  const isFlowing = call.operation === speech || (call.stream && (isEvents(response.headers['content-type'] ?? '') || (await beginsWithEvents(response))));
  const events = isFlowing ? flowing(response, endpoint.model, clock, call, context) : complete(response, endpoint.model, call, context);
  try {
    yield* events;
  } finally {
    response.leave();
  }
}

/** @param counts of the answer, in place of those of the request */
const begun = (model: string, counts: Counts = {}): Events => [{ type: 'started', model, ignored: [] }, amounts(counts)];

const amounts = (counts: Counts): GenerateEvent => ({ type: 'passed', tokens: 0, counts });

async function* complete(response: UpstreamResponse, model: string, call: Forwarded, context: TargetContext): AsyncGenerator<Events> {
  const bytes = await whole(response, context);
  const contentType = response.headers['content-type'] ?? unknownType;
  const { textTokens, counts } = await checkWhole(call, contentType, bytes);
  yield begun(model, counts);
  call.open(contentType, []);
  call.write(bytes);
  yield [costOf(bytes.subarray(-tailBytes), call.saysText ? textTokens : 0)];
}

async function* flowing(response: UpstreamResponse, model: string, clock: Clock, call: Forwarded, { patience, signal }: TargetContext): AsyncGenerator<Events> {
  let size = 0;
  let reported = 0;
  let tail = Buffer.alloc(0);
  let watched: RawEvents | undefined;
  const give = (bytes: Uint8Array): boolean => {
    size += bytes.length;
    tail = bytes.length >= tailBytes ? Buffer.from(bytes.subarray(-tailBytes)) : Buffer.concat([tail, bytes]).subarray(-tailBytes);
    return call.write(bytes);
  };
  const untold = () => {
    const fresh = (call.saysText ? (watched?.textTokens ?? 0) : 0) - reported;
    reported += fresh;
    return fresh;
  };
  try {
    const awaiting = new AwaitingWords(response, patience, clock);
    const first = await beginning(awaiting);
    const declared = response.headers['content-type'] ?? unknownType;
    const contentType = call.operation === speech || isEvents(declared) ? declared : 'text/event-stream';
    checkBeginning(contentType, first);
    if (isEvents(contentType)) watched = new RawEvents(call.counts?.pictures);
    const held = watched ? await upToContent(watched, first, awaiting) : [first];
    yield begun(model);
    awaiting.spoke();
    call.open(contentType, [], lengthOf(response));
    const giveAll = (pieces: readonly Uint8Array[]) => pieces.reduce((ready, bytes) => give(bytes) && ready, true);
    if (!giveAll(held)) await call.drained();
    watched?.check();
    if (watched?.isOver) response.over();
    const forward = (bytes: Uint8Array): boolean => {
      if (!watched) return give(bytes);
      const ready = giveAll(watched.push(bytes));
      watched.check();
      if (watched.isOver) response.over();
      return ready;
    };
    const forwarder = new Forwarder(response, clock, {
      give: forward,
      drained: () => call.drained(),
      untold,
      isComplete: () => watched?.isOver === true,
    });
    while (!(await forwarder.ended())) yield [{ type: 'passed', tokens: untold() }];
    giveAll(watched?.end() ?? []);
  } catch (error) {
    const finished = signal.aborted ? {} : (watched?.counts ?? {}); // for a client that left, the provider may make them all
    if (size > 0) yield [amounts(finished), soFar(costOf(tail, untold()), watched?.isOver === true)];
    const fault = answerFault(error, size > 0);
    throw size > 0 ? fault : asRefusal(fault);
  }
  yield [amounts(watched?.counts ?? {}), costOf(tail, untold())];
}

/** Bytes of events without content, such as comments, after which the answer goes on its way. */
const mostHeld = 65_536;

/** The events up to the first with content, which are forwarded with it, or as many as are held back. @throws Fault for an error before it */
async function upToContent(watched: RawEvents, first: Uint8Array, awaiting: AwaitingWords): Promise<readonly Uint8Array[]> {
  const held = [...watched.push(first)];
  let size = first.length;
  for (let bytes; !watched.spoken && size < mostHeld; held.push(...watched.push(bytes))) {
    watched.check();
    bytes = await awaiting.take();
    if (!bytes) return [...held, ...watched.end()];
    size += bytes.length;
  }
  return held;
}

/** As many bytes as the answer is judged by; fewer if it is shorter. */
async function beginning(awaiting: AwaitingWords): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (let bytes = await awaiting.take(); bytes; bytes = size < mostJudged ? await awaiting.take() : undefined) {
    pieces.push(bytes);
    size += bytes.length;
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/** The announced length, in bytes as they are forwarded. */
function lengthOf({ headers }: UpstreamResponse): number | undefined {
  const announced = headers['content-encoding'] === undefined ? Number(headers['content-length']) : NaN;
  return isCount(announced) ? announced : undefined;
}

/** What an answer that broke off, or whose client left, has cost. @param isWhole its last event has come */
const soFar = (cost: GenerateEvent, isWhole: boolean): GenerateEvent =>
  cost.type === 'usage' && !isWhole ? { type: 'usage', usage: { ...cost.usage, source: 'partial' } } : cost;

/** @param untold tokens that were not reported yet */
function costOf(tail: Uint8Array, untold: number): GenerateEvent {
  const told = usageIn(Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength).toString('latin1'));
  const usage = told && usageOf(told);
  return usage ? { type: 'usage', usage } : { type: 'passed', tokens: untold, counts: recordedSeconds(told?.['seconds']) }; // `{"type": "duration", "seconds": 9}`
}

async function bodyOf(body: RawBody, model: string): Promise<{ readonly body: Uint8Array; readonly contentType: string }> {
  if (body.type === 'json') return { body: splice(body.bytes, body.places, { model: JSON.stringify(model) }), contentType: 'application/json' };
  body.form.set('model', model);
  const written = new Response(body.form);
  return { body: await written.bytes(), contentType: written.headers.get('content-type')! };
}

/** The last usage in an answer, whole or streamed. */
function usageIn(tail: string): Readonly<Record<string, unknown>> | undefined {
  const json = [...tail.matchAll(/"usage"\s*:\s*(\{(?:[^{}]|\{[^{}]*\})*\})/g)].at(-1)?.[1];
  const usage = json === undefined ? undefined : valueIn(json);
  return isObject(usage) ? usage : undefined;
}

/** In tokens: `{"input_tokens": …, "output_tokens": …}` with details inside. */
function usageOf(counted: Readonly<Record<string, unknown>>): Usage | undefined {
  const [input, output] = [counted['input_tokens'] ?? counted['prompt_tokens'], counted['output_tokens'] ?? counted['completion_tokens'] ?? 0];
  return isCount(input) && isCount(output) ? { input, output, source: 'provider' } : undefined;
}
