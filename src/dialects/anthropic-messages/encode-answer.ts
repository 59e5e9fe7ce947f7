import type { FinishReason, Started } from '#model/event';
import { own, type Extra, type Json, type JsonObject } from '#model/json';
import { dialect } from './wire.ts';

/** What streams and whole answers have in common. */

const stopWords: Readonly<Record<FinishReason, string>> = { stop: 'end_turn', length: 'max_tokens', tool: 'tool_use', refused: 'refusal' };
const ownWords: ReadonlySet<string> = new Set([...Object.values(stopWords), 'stop_sequence', 'pause_turn', 'model_context_window_exceeded']);

/** The members of a message before its content, and those after its end. */
export function headOf({ model, extra }: Started, id: string): { readonly head: JsonObject; readonly others: JsonObject } {
  const { id: itsId, ...others } = own(extra, dialect);
  return { head: { id: itsId ?? id, type: 'message', role: 'assistant', model }, others };
}

/** The upstream's own word for the end where it is one of this wire's. `others` are what the message says of itself at its end. */
export function stopOf(reason: FinishReason, raw: string, extra: Extra | undefined): { readonly stop: JsonObject; readonly others: JsonObject } {
  const { stop_sequence: sequence = null, stop_details: details, container, ...others } = own(extra, dialect);
  const stop: Record<string, Json> = { stop_reason: ownWords.has(raw) ? raw : stopWords[reason], stop_sequence: sequence };
  if (details !== undefined) stop['stop_details'] = details;
  if (container !== undefined) stop['container'] = container;
  return { stop, others };
}
