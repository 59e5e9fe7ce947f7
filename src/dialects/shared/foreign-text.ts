import type { ForeignPart } from '#core/conversation';
import { isObject, textOf, type Json } from '#core/json';

/**
 * What a part says that only its own dialect knows, as text for the others: a search result, a reference to a tool, a document made of parts.
 * https://platform.claude.com/docs/en/build-with-claude/search-results
 *
 * @returns undefined for a part that says nothing as text
 */
export function foreignText({ value }: Pick<ForeignPart, 'value'>): string | undefined {
  switch (value['type']) {
    case 'search_result':
      return lines(value['title'], value['source'], textIn(value['content']));
    case 'document': {
      const { source } = value;
      return isObject(source) && source['type'] === 'content' ? lines(value['title'], value['context'], textIn(source['content'])) : undefined;
    }
    case 'tool_reference':
      return lines(value['tool_name']);
    default:
      return undefined;
  }
}

/** @returns undefined where none of them says anything */
function lines(...texts: readonly (Json | undefined)[]): string | undefined {
  const said = texts.map(textOf).filter((text) => text.trim() !== '');
  return said.length > 0 ? said.join('\n') : undefined;
}

/** Text, or the texts of a list of blocks. */
function textIn(content: Json | undefined): string {
  if (!Array.isArray(content)) return textOf(content);
  return (content as readonly Json[]).map((block) => (isObject(block) ? textOf(block['text']) : textOf(block))).join('\n');
}
