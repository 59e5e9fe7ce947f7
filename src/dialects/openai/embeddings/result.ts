import { encoded, purposesIgnored, type EmbedCall, type Embedded, type Vector } from '#core/embed';
import type { Usage } from '#core/event';
import { Fault } from '#core/fault';
import { isObject, textOf, type JsonObject } from '#core/json';
import { isCount } from '../../shared/read-fields.ts';

/** An embeddings response ↔ result. */

/**
 * A provider's response → the answer to a call.
 *
 * @param model the model's upstream name, for answers that do not report one
 * @throws Fault `upstream-failed` where it is not an embeddings response
 */
export function decodeResult(bytes: Uint8Array, call: EmbedCall, model: string): Embedded {
  const body = parsed(bytes);
  if (!isObject(body) || !Array.isArray(body['data'])) throw malformed();
  const vectors = call.inputs.map((): Vector | undefined => undefined);
  for (const [at, one] of (body['data'] as readonly unknown[]).entries()) {
    if (!isObject(one)) throw malformed();
    const index = one['index'] ?? at;
    const vector = one['embedding'];
    if (!Number.isSafeInteger(index) || !((index as number) in vectors) || !isVector(vector)) throw malformed();
    vectors[index as number] = encoded(vector, call.encoding);
  }
  if (!vectors.every((vector) => vector !== undefined)) throw malformed();
  const usage = usageOf(body['usage']);
  return { model: textOf(body['model']) || model, ignored: purposesIgnored(call), ...(usage ? { usage } : {}), answer: { vectors } };
}

/** The response body of this dialect. */
export function encodeResult({ model, usage, vectors }: { readonly model: string; readonly usage: Usage; readonly vectors: readonly Vector[] }): JsonObject {
  return {
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    model,
    usage: { prompt_tokens: usage.input, total_tokens: usage.input },
  };
}

/** Bytes at the start and the end of a response that are scanned. */
export const ends = { head: 256, tail: 1024 };

const head = /^\s*\{\s*"object"\s*:\s*"list"\s*,\s*"data"\s*:\s*\[\s*\{\s*"object"\s*:\s*"embedding"\s*,\s*"index"\s*:\s*0\s*,\s*"embedding"\s*:\s*(["[])/;
const usageMember = /"usage"\s*:\s*(\{[^{}]*\})/;

/**
 * May a response with this beginning pass through unparsed? It may where it has OpenAI's format and the requested encoding: 256 vectors of 1,536 floats are
 * 5 MB, and buffering and parsing them takes longer than forwarding them.
 */
export function passes(beginning: Uint8Array, encoding: EmbedCall['encoding']): boolean {
  const found = head.exec(latin(beginning).slice(0, ends.head));
  return found !== null && (found[1] === '[') === (encoding === 'float');
}

/** The usage at the end of a response that was passed through, if it is there. @throws Fault `upstream-failed` where the object is incomplete */
export function usageAtEnd(end: Uint8Array): Usage | undefined {
  const text = latin(end).slice(-ends.tail);
  if (!/\}\s*$/.test(text)) throw malformed();
  const found = usageMember.exec(text);
  return found ? usageOf(parsed(Buffer.from(found[1]!, 'latin1'))) : undefined;
}

const latin = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');

const isVector = (value: unknown): value is Vector => typeof value === 'string' || (Array.isArray(value) && value.every((one) => typeof one === 'number'));

function usageOf(value: unknown): Usage | undefined {
  const input = isObject(value) ? (value['prompt_tokens'] ?? value['total_tokens']) : undefined;
  return isCount(input) ? { input, output: 0, source: 'provider' } : undefined;
}

/** The fault has no cause: the message of JSON.parse repeats a piece of the text. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch {
    throw malformed();
  }
}

const malformed = () => new Fault('upstream-failed', 'The provider sent something that is not a list of embeddings.', { elsewhere: true });
