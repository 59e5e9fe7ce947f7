import { splice } from '#kit/json/scan';
import type { Clock } from '#kit/async/clock';
import { isCount } from '#dialects/shared/read-fields';
import type { Usage, Events } from '#core/event';
import type { TargetContext } from '#core/context';
import { isObject } from '#core/json';
import type { RawBody, RawRequest } from '#core/raw-request';
import type { Counts } from '#core/price';
import { awaitingWords, upstreamFault } from '../shared/post.ts';
import { passing } from '../shared/passing.ts';
import { attempt } from '../shared/attempt.ts';
import type { OperationEndpoint } from '../shared/operation.ts';

/** Bytes at the end of an answer that are searched for its usage, and bytes per token if it reports none. */
const tailBytes = 16_384;
const bytesPerToken = 4;

/** What is needed of a request in order to forward it. */
type Forwarded = Pick<RawRequest, 'operation' | 'body' | 'saysText' | 'open' | 'write' | 'drained'>;

/** Forwards a request with the model name replaced, and its answer unparsed. @throws Fault */
export async function* sendRaw(endpoint: OperationEndpoint, clock: Clock, call: Forwarded, context: TargetContext): AsyncGenerator<Events> {
  const { body, contentType } = await bodyOf(call.body, endpoint.model);
  const { response } = await attempt(endpoint, { operation: call.operation, body, contentType, ignored: [] }, context);
  let size = 0;
  let reported = 0;
  let tail = Buffer.alloc(0);
  const give = (bytes: Uint8Array): boolean => {
    size += bytes.length;
    tail = bytes.length >= tailBytes ? Buffer.from(bytes.subarray(-tailBytes)) : Buffer.concat([tail, bytes]).subarray(-tailBytes);
    return call.write(bytes);
  };
  const untold = () => {
    const fresh = (call.saysText ? Math.ceil(size / bytesPerToken) : 0) - reported;
    reported += fresh;
    return fresh;
  };
  try {
    const awaiting = awaitingWords(response, context.patience, clock);
    const first = await awaiting.take();
    yield [
      { type: 'started', model: endpoint.model, ignored: [] },
      { type: 'passed', tokens: 0 },
    ];
    awaiting.spoke();
    call.open(response.headers['content-type'] ?? 'application/octet-stream', []);
    if (first && !give(first)) await call.drained();
    yield* passing(response, clock, { give, drained: () => call.drained(), untold });
  } catch (error) {
    if (size > 0) yield [{ type: 'passed', tokens: untold() }];
    throw upstreamFault(error, size > 0);
  } finally {
    response.leave();
  }
  const counted = usageIn(tail.toString('latin1'));
  const usage = counted && usageOf(counted);
  if (usage) yield [{ type: 'usage', usage }];
  else yield [{ type: 'passed', tokens: untold(), ...(counted ? secondsIn(counted) : {}) }];
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
  if (json === undefined) return undefined;
  try {
    const usage: unknown = JSON.parse(json);
    return isObject(usage) ? usage : undefined;
  } catch {
    return undefined;
  }
}

/** In tokens: `{"input_tokens": …, "output_tokens": …}` with details inside. */
function usageOf(counted: Readonly<Record<string, unknown>>): Usage | undefined {
  const [input, output] = [counted['input_tokens'] ?? counted['prompt_tokens'], counted['output_tokens'] ?? counted['completion_tokens'] ?? 0];
  return isCount(input) && isCount(output) ? { input, output, source: 'provider' } : undefined;
}

/** In seconds of the recording: `{"type": "duration", "seconds": 9}`. */
function secondsIn({ seconds }: Readonly<Record<string, unknown>>): { readonly counts?: Counts } {
  return typeof seconds === 'number' && seconds >= 0 && seconds <= longest ? { counts: { heardSeconds: seconds } } : {};
}

/** Plausibility limit in seconds: a day of sound, which no request can contain. */
const longest = 86_400;
