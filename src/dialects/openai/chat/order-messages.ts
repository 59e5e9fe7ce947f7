import type { GenerateCall } from '#core/call';
import { isObject, textOf, type JsonObject } from '#core/json';

/**
 * Puts each tool message behind the assistant message with its call, before whatever else follows that, such as the image of another result: the API refuses
 * a conversation in which a call is not answered at once. Messages without a call stay in their place.
 */
export function resultsBehindCalls(messages: readonly JsonObject[]): readonly JsonObject[] {
  if (!isOutOfOrder(messages)) return messages;
  const places = new Map<string, number[]>(); // of the tool messages by their ids, in order
  for (const [at, message] of messages.entries()) {
    if (message['role'] !== 'tool') continue;
    const id = textOf(message['tool_call_id']);
    const known = places.get(id);
    if (known) known.push(at);
    else places.set(id, [at]);
  }
  const moved = new Set<number>();
  const ordered: JsonObject[] = [];
  for (const [at, message] of messages.entries()) {
    if (moved.has(at)) continue;
    ordered.push(message);
    const results = callIds(message).flatMap((id) => {
      const left = places.get(id) ?? [];
      while (left[0] !== undefined && left[0] < at) left.shift();
      return left.splice(0, 1);
    });
    for (const place of results.toSorted((one, other) => one - other)) {
      moved.add(place);
      ordered.push(messages[place]!);
    }
  }
  return ordered;
}

/** Does something else stand between calls and their results? */
function isOutOfOrder(messages: readonly JsonObject[]): boolean {
  return messages.some(({ role }, at) => {
    if (role !== 'tool') return false;
    const before = messages[at - 1];
    return before?.['role'] !== 'tool' && before?.['tool_calls'] === undefined;
  });
}

const callIds = ({ tool_calls: calls }: JsonObject): readonly string[] =>
  Array.isArray(calls) ? calls.map((call: unknown) => (isObject(call) ? textOf(call['id']) : '')) : [];

/** Has a result of a tool more than text? It follows in a message of the user, whoever the client is. */
export const hasResultMedia = ({ turns }: Pick<GenerateCall, 'turns'>): boolean =>
  turns.some(({ parts }) => parts.some((part) => part.type === 'tool-result' && part.parts.some(({ type }) => type === 'media')));

/** What the model says between the result of a tool and the next user message, where a provider wants a message of the model there. */
const bridge: JsonObject = { role: 'assistant', content: 'I have the result.' };

/** The messages with a word of the model between tool results and what the user says behind them. https://docs.mistral.ai/capabilities/function_calling */
export const bridged = (messages: readonly JsonObject[]): readonly JsonObject[] =>
  messages.flatMap((message, at) => (message['role'] === 'user' && messages[at - 1]?.['role'] === 'tool' ? [bridge, message] : [message]));
