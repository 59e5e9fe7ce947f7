import { encoded, type EmbedCall, type Embedded, type Vector } from '#core/embed';
import type { Usage } from '#core/event';
import { Fault } from '#core/fault';
import { isObject, textOf } from '#core/json';
import { readLongList, writeLongList } from '#kit/json/long-list';
import { BadJson, parseJson } from '#kit/json/scan';
import { PieceReader } from '#kit/text/piece-reader';
import { isCount } from '../../shared/read-fields.ts';
import { faultInAnswer } from '../faults.ts';

/** An embeddings response ↔ result. */

/**
 * A provider's response → the answer to a call.
 * @param model the model's upstream name, for answers that do not report one
 * @throws Fault `upstream-failed` where it is not an embeddings response, or the fault that its error means
 */
export async function decodeResult(bytes: Uint8Array, call: EmbedCall, model: string): Promise<Omit<Embedded, 'ignored'>> {
  const body = await read(bytes);
  if (!isObject(body)) throw malformed();
  if (!Array.isArray(body['data'])) throw faultInAnswer(body) ?? malformed();
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
  return { model: textOf(body['model']) || model, ...(usage ? { usage } : {}), answer: { vectors } };
}

/** The response body of this dialect, as JSON. */
export function encodeResult({
  model,
  usage,
  vectors,
}: {
  readonly model: string;
  readonly usage: Usage;
  readonly vectors: readonly Vector[];
}): Promise<string> {
  const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }));
  return writeLongList({ object: 'list', data, model, usage: { prompt_tokens: usage.input, total_tokens: usage.input } }, 'data');
}

/** Bytes that the beginning of a vector may take, and the end of an answer behind the last one. */
const mostBefore = 256;
const mostBehind = 16_384;

const listStart = /^\s*\{[^[\]{}]{0,200}?"data"\s*:\s*\[/;
const vectorStart = /^\s*\{\s*("object"\s*:\s*"embedding"\s*,\s*)?"index"\s*:\s*(\d+)\s*,\s*("object"\s*:\s*"embedding"\s*,\s*)?"embedding"\s*:\s*(["[])/;
const vectorEnd = /^\s*\}\s*,/;
const listEnd = /^\s*\}\s*\]/;

/**
 * What a response that is as its client wants it says of itself, for those who forward it unparsed: it has the members of OpenAI's format, the requested encoding, and one
 * vector for each input, in order. The vectors are looked at by native searches alone: 256 of 1,536 floats are 5 MB, and parsing them takes longer than all else.
 *
 * @param pieces the response as it arrived
 * @returns undefined for any other response, which is to be decoded
 */
export function plainAnswer(
  pieces: readonly Uint8Array[],
  { inputs, encoding }: Pick<EmbedCall, 'inputs' | 'encoding'>,
): { readonly usage: Usage } | undefined {
  const reader = new PieceReader(pieces);
  /** Steps over what is there next. */
  const next = (pattern: RegExp) => {
    const found = pattern.exec(reader.ahead(mostBefore));
    if (found) reader.skip(found[0].length);
    return found;
  };
  const isNext = encoding === 'float' ? numbersAreNext : floatsAreNext;
  const before = next(listStart)?.[0].replace(/\[$/, '');
  if (before === undefined) return undefined;
  for (let index = 0; index < inputs.length; index++) {
    const start = next(vectorStart);
    if (!start || (start[1] ?? start[3]) === undefined || Number(start[2]) !== index || (start[4] === '[') !== (encoding === 'float')) return undefined;
    if (!isNext(reader) || !next(index < inputs.length - 1 ? vectorEnd : listEnd)) return undefined;
  }
  const behind = reader.rest(mostBehind);
  if (!behind) return undefined;
  try {
    const others = parseJson(Buffer.concat([Buffer.from(`${before}0`, 'latin1'), behind]));
    if (!isObject(others) || others['object'] !== 'list' || others['data'] !== 0 || typeof others['model'] !== 'string') return undefined;
    const usage = others['usage'];
    const counted = usageOf(usage);
    if (!counted || !isObject(usage) || !isCount(usage['prompt_tokens']) || !isCount(usage['total_tokens'])) return undefined; // the client gets what is booked
    return { usage: counted };
  } catch {
    return undefined;
  }
}

/** Steps behind the inside of a list of numbers. Whatever else JSON has, NaN and Infinity contain one of the marks. */
function numbersAreNext(reader: PieceReader): boolean {
  const begins = /^\s*[-\d]/.test(reader.ahead(mostBefore));
  return begins && reader.until(closingBracket)?.every((part) => marks.every((mark) => !part.includes(mark))) === true;
}

/** Steps behind the inside of a string that is the base64 of 32-bit floats. */
function floatsAreNext(reader: PieceReader): boolean {
  const inside = reader.until(quote);
  return inside !== undefined && areFloats(inside.map((part) => part.toString('latin1')).join(''));
}

const marks = Buffer.from('"{[uaf');
const closingBracket = 0x5d;
const quote = 0x22;

/** Is this the base64 of 32-bit floats? Decoding skips what is none. */
function areFloats(text: string): boolean {
  const { length } = Buffer.from(text, 'base64');
  return length > 0 && length % 4 === 0 && length === Buffer.byteLength(text, 'base64');
}

const isVector = (value: unknown): value is Vector =>
  typeof value === 'string' ? areFloats(value) : Array.isArray(value) && value.length > 0 && value.every(Number.isFinite);

/** No text has 0 tokens: servers that report so do not count. */
function usageOf(value: unknown): Usage | undefined {
  const input = isObject(value) ? (value['prompt_tokens'] ?? value['total_tokens']) : undefined;
  return isCount(input) && input > 0 ? { input, output: 0, source: 'provider' } : undefined;
}

async function read(bytes: Uint8Array): Promise<unknown> {
  try {
    return await readLongList(bytes, 'data');
  } catch (error) {
    throw error instanceof BadJson ? malformed() : error;
  }
}

const malformed = () => new Fault('upstream-failed', 'The provider sent something that is not a list of embeddings.', { elsewhere: true });
