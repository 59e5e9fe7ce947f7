import type { Turn } from '#core/conversation';
import { own, textOf, type JsonObject } from '#core/json';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

/**
 * Stands where a thought is demanded and none is known: in conversations that began with another provider, for example. DeepSeek and Kimi check that the field
 * has a text, and not which (spacedriveapp/spacebot#364, earendil-works/pi#3636).
 */
const unknownThought = '.';

/** The messages with the thoughts that the provider demands, or without any where it refuses them. */
export function withThoughts(messages: readonly JsonObject[], thoughts: Quirks['thoughts'], ignored: Set<string>): readonly JsonObject[] {
  if (thoughts === undefined) return messages;
  return messages.map((message) => {
    if (message['role'] !== 'assistant') return message;
    if (thoughts === 'demanded') {
      if (message['tool_calls'] === undefined || textOf(message['reasoning_content']) !== '') return message;
      ignored.add(
        'reasoning_content: the provider demands the thoughts before tool calls, and those of this conversation are not known: it gets "." in their place.',
      );
      return { ...message, reasoning_content: unknownThought };
    }
    const { reasoning_content: _, reasoning: __, reasoning_details: ___, ...others } = message;
    if (fields.some((name) => name in message)) ignored.add('reasoning_content: the provider does not accept thoughts.');
    return others;
  });
}

const fields = ['reasoning_content', 'reasoning', 'reasoning_details'];

/** Does `withThoughts` leave the messages of a client of this wire as they are? */
export function hasFitThoughts(turns: readonly Turn[], thoughts: Quirks['thoughts']): boolean {
  if (thoughts === undefined) return true;
  return turns.every(({ role, parts, extra }) => {
    if (role !== 'model') return true;
    if (thoughts === 'refused') return !parts.some(({ type }) => type === 'thought') && !('reasoning_details' in own(extra, dialect));
    const thinks = parts.some((part) => part.type === 'thought' && part.text !== '' && own(part.extra, dialect)['field'] === 'reasoning_content');
    return thinks || !parts.some(({ type }) => type === 'tool-call');
  });
}
