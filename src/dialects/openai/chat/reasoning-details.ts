import type { Part } from '#core/conversation';
import { isObject, own, rest, textOf, type Json, type JsonObject } from '#core/json';
import { dialect } from './wire.ts';

/**
 * The member `reasoning_details` of OpenRouter and of those who follow it: signed, summarised and encrypted thoughts, which are to come back unchanged and in
 * their order. https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
 */

/** Members that a stream sends in pieces. */
const pieced = ['text', 'summary', 'data'] as const;
const none = new Set<string>();

/** Takes those of a chunk: the pieces of one detail become one, as clients of OpenRouter put them together (RooCodeInc/Roo-Code#9506). */
export function takeDetails(details: JsonObject[], given: unknown): void {
  if (!Array.isArray(given)) return;
  for (const one of given as readonly unknown[]) {
    if (!isObject(one)) continue;
    const last = details.at(-1);
    if (last && isPieceOf(last, one)) details[details.length - 1] = joined(last, one);
    else details.push(rest(one, none));
  }
}

const isPieceOf = (before: JsonObject, piece: Readonly<Record<string, unknown>>): boolean =>
  before['type'] === piece['type'] &&
  (before['index'] ?? null) === (piece['index'] ?? null) &&
  typeof before['index'] === 'number' &&
  (!before['id'] || !piece['id'] || before['id'] === piece['id']);

function joined(before: JsonObject, piece: Readonly<Record<string, unknown>>): JsonObject {
  const whole: Record<string, Json> = { ...before };
  for (const [name, value] of Object.entries(rest(piece, none))) {
    if (value === null) continue;
    const isPiece = pieced.some((one) => one === name) && typeof value === 'string';
    whole[name] = isPiece ? textOf(before[name]) + value : value;
  }
  return whole;
}

/** Those of the thoughts of a message. */
export const detailsIn = (parts: readonly Part[]): readonly Json[] =>
  parts.flatMap((part) => {
    const details = part.type === 'thought' ? own(part.extra, dialect)['details'] : undefined;
    return Array.isArray(details) ? (details as readonly Json[]) : [];
  });
