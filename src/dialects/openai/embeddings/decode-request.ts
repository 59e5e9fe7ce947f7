import { Type } from 'typebox';
import { checked } from '#kit/json/check';
import { unknownMembers, type EmbedCall } from '#core/embed';
import { invalid, missing } from '#core/fault';
import { bodyFault, isGiven } from '../../shared/read-fields.ts';
import { EmbeddingRequest, mostInputs, mostTokenIds } from './wire.ts';

/** `input` is checked by hand: it may have a million items, and a union of its four forms would give no clear message. */
const check = checked(Type.Object({ ...EmbeddingRequest.properties, input: Type.Unknown() }), bodyFault);

/** An embeddings request → call. @param body parsed JSON. @throws Fault `invalid`, naming the field as the client spelled it */
export function decodeRequest(body: unknown): EmbedCall {
  const request = check(body);
  const { model = 'text-embedding-3-small', input, dimensions, encoding_format: encoding, user } = request;
  const unknown = unknownMembers(request, EmbeddingRequest.properties);
  if (!/^[\x20-\x7e]+$/.test(model)) throw invalid('model', 'must be printable ASCII');
  return {
    model,
    inputs: inputsOf(input),
    ...(isGiven(dimensions) ? { dimensions } : {}),
    encoding: encoding ?? 'float',
    ...(isGiven(user) ? { user } : {}),
    ...(unknown.length > 0 ? { unknown } : {}),
  };
}

function inputsOf(input: unknown): EmbedCall['inputs'] {
  if (input === undefined) throw missing('input');
  if (typeof input === 'string') return [textOf(input, 'input')];
  if (!Array.isArray(input)) throw invalid('input', 'must be a string or an array of strings');
  const items: readonly unknown[] = input;
  if (items.length === 0) throw invalid('input', 'must not be empty');
  if (typeof items[0] === 'number') return [tokensOf(items, 'input')];
  if (items.length > mostInputs) throw invalid('input', `must have at most ${mostInputs} items`);
  if (Array.isArray(items[0])) return items.map((item, at) => tokensOf(item, `input[${at}]`));
  return items.map((item, at) => textOf(item, `input[${at}]`));
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw invalid(field, 'must be a string');
  if (value === '') throw invalid(field, 'must not be empty');
  return value;
}

function tokensOf(value: unknown, field: string): readonly number[] {
  if (!Array.isArray(value)) throw invalid(field, 'must be an array of tokens');
  if (value.length === 0) throw invalid(field, 'must not be empty');
  const tokens: number[] = [];
  for (const [at, token] of (value as readonly unknown[]).entries()) {
    if (!Number.isSafeInteger(token) || (token as number) < 0 || (token as number) > mostTokenIds)
      throw invalid(`${field}[${at}]`, `must be a token: an integer between 0 and ${mostTokenIds}`);
    tokens.push(token as number);
  }
  return tokens;
}
