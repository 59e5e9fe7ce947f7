import type { Events, GenerateEvent } from '#core/event';
import { isObject, textOf, type JsonObject } from '#core/json';
import { encodeCallPiece, finishReasonOf, isOlderCall } from './encode-answer.ts';
import { isCount } from '../../shared/read-fields.ts';
import type { Choice, Chunk } from './wire.ts';

/** What SDKs need of an answer that is forwarded as it came, and some servers leave out. */

type ToolCallEvent = Extract<GenerateEvent, { type: 'tool-call' }>;

/** Has each choice of a chunk its index and its delta? */
export function hasDeltas({ choices }: Chunk): boolean {
  return Array.isArray(choices) && choices.every((one: unknown) => isObject(one) && Number.isInteger(one['index']) && isObject(one['delta']));
}

/**
 * A chunk with the list of choices, the indexes, deltas and tool calls that clients expect.
 * @param events what the chunk was decoded to; the first one of an answer has roles
 * @returns undefined where nothing has to change
 */
export function mendedChunk(chunk: Chunk, events: Events): Chunk | undefined {
  const { choices } = chunk;
  if (!Array.isArray(choices)) return { ...chunk, choices: [] };
  const isFirst = events.some(({ type }) => type === 'started');
  const calls = Map.groupBy(events.filter(isCall), ({ candidate }) => candidate);
  const mended = choices.map((one: Choice, at) => mendedChoice(one, { index: isCount(one.index) ? one.index : at, isFirst, events, calls }));
  return mended.every((one, at) => one === choices[at]) ? undefined : { ...chunk, choices: mended };
}

interface Meant {
  readonly index: number;
  readonly isFirst: boolean;
  readonly events: Events;
  /** Those of `events` that have newer tool calls, by their candidate. */
  readonly calls: ReadonlyMap<number, readonly ToolCallEvent[]>;
}

function mendedChoice(choice: Choice, { index, isFirst, events, calls: all }: Meant): Choice {
  const { index: given, delta: written, message, finish_reason: reason, ...rest } = choice;
  const delta = isObject(written) ? written : isObject(message) ? message : {};
  const needsRole = isFirst && textOf(delta['role']) === '';
  const calls = all.get(index) ?? [];
  const pieces: unknown = delta['tool_calls'] ?? [];
  const inParts = Array.isArray(delta['content']);
  if (Array.isArray(pieces) && arePieces(pieces, calls) && index === given && delta === written && !needsRole && !inParts) return choice;
  const { tool_calls: _, ...others } = inParts ? { ...delta, ...joinedContent(events, index) } : delta;
  const words = needsRole ? { ...others, role: 'assistant' } : others;
  const ended = events.find((event) => event.type === 'finished' && event.candidate === index);
  const finishReason = typeof reason === 'string' && reason !== '' ? reason : ended?.type === 'finished' ? finishReasonOf(ended.reason, ended.raw) : null;
  return { ...rest, index, delta: calls.length > 0 ? { ...words, tool_calls: calls.map(encodeCallPiece) } : words, finish_reason: finishReason };
}

/** The texts and thoughts of a delta whose content came in parts, as Mistral sends it: SDKs take it for a string. https://docs.mistral.ai/capabilities/reasoning */
function joinedContent(events: Events, candidate: number): JsonObject {
  const said = (type: 'text' | 'thought') => events.map((event) => (event.type === type && event.candidate === candidate ? event.text : '')).join('');
  const thought = said('thought');
  return { content: said('text'), ...(thought === '' ? {} : { reasoning_content: thought }) };
}

const isCall = (event: GenerateEvent): event is ToolCallEvent => event.type === 'tool-call' && !isOlderCall(event);

/** Do these pieces say the same as the events that they were decoded to, in a form that clients can put together? */
function arePieces(pieces: readonly unknown[], calls: readonly ToolCallEvent[]): boolean {
  if (!pieces.every(isObject)) return false;
  const said = pieces.filter((piece) => !isEmptyPiece(piece));
  return said.length === calls.length && said.every((piece, at) => isPiece(piece, calls[at]!));
}

type Piece = Readonly<Record<string, unknown>>;

function isPiece(piece: Piece, { call, id, name = '', json }: ToolCallEvent): boolean {
  const its = innerOf(piece);
  return piece['index'] === call && its.name === name && (its.text ?? '') === json && (name === '' || (piece['id'] === id && textOf(piece['type']) !== ''));
}

/** Does it say nothing? */
function isEmptyPiece(piece: Piece): boolean {
  const { name, text } = innerOf(piece);
  return Number.isInteger(piece['index']) && name === '' && (text ?? '') === '';
}

/** Have the tool calls of a whole message all that clients read of them? */
export const areWholeCalls = (calls: unknown): boolean =>
  (calls ?? null) === null ||
  (Array.isArray(calls) &&
    calls.every((call: unknown) => {
      if (!isObject(call) || textOf(call['id']) === '' || textOf(call['type']) === '') return false;
      const { name, text } = innerOf(call);
      return name !== '' && typeof text === 'string' && (isObject(call['custom']) || text.trim() !== '');
    }));

function innerOf(call: Piece): { readonly name: string; readonly text: unknown } {
  const { function: called, custom } = call;
  if (isObject(custom)) return { name: textOf(custom['name']), text: custom['input'] };
  return isObject(called) ? { name: textOf(called['name']), text: called['arguments'] } : { name: '', text: undefined };
}
