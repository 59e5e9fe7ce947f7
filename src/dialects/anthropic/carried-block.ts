import type { ForeignPart, TextPart } from '#core/conversation';
import { isObject, textOf, type Json, type JsonObject } from '#core/json';
import { carriedAs, dialect } from './wire.ts';

/**
 * A block that only this wire has: text for all others, if it holds text. Providers of this wire get the block itself, which is noted as `.block`.
 * https://platform.claude.com/docs/en/build-with-claude/search-results
 */
export function carriedBlock(value: JsonObject): TextPart | ForeignPart {
  switch (value['type']) {
    case 'search_result':
      return textOfBlock(value, [value['title'], value['source']], value['content']);
    case 'tool_reference':
      return textOfBlock(value, [`Tool: ${textOf(value['tool_name'])}`], []);
    case 'document':
      return textOfBlock(value, [value['title'], value['context']], isObject(value['source']) ? value['source']['content'] : undefined);
    default:
      return { type: 'foreign', dialect, value };
  }
}

/** The heading and the texts of a block; what else it holds is carried by name, so that other wires report it. */
function textOfBlock(value: JsonObject, heading: readonly (Json | undefined)[], content: unknown): TextPart {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [{ type: 'text', text: content }];
  const texts = blocks.map((one) => (isObject(one) ? textOf(one['text']) : ''));
  const others = { ...Object.fromEntries(blocks.flatMap(typeOfOther)), ...shownMembers(value) };
  const text = [joined(heading.map(textOf)), joined(texts)].filter((one) => one !== '').join('\n\n');
  return { type: 'text', text, ...carriedAs({ '.block': value, ...others }) };
}

/** What other wires report that they have no words for. */
export function shownMembers({ citations, cache_control }: JsonObject): JsonObject {
  return { ...(isObject(citations) && citations['enabled'] === true ? { citations: true } : {}), ...(cache_control === undefined ? {} : { cache_control }) };
}

/** The title and the context of a plain-text document, as text for other wires. */
export function headingOf({ title, context }: JsonObject): readonly TextPart[] {
  const text = joined([textOf(title), textOf(context)]);
  return text === '' ? [] : [{ type: 'text', text, ...carriedAs({ '.heading': true }) }];
}

const joined = (lines: readonly string[]) => lines.filter((one) => one !== '').join('\n');

const longestType = 64;

function typeOfOther(block: unknown): readonly (readonly [string, true])[] {
  const type = isObject(block) ? textOf(block['type']) : '';
  return type === '' || type === 'text' ? [] : [[type.slice(0, longestType), true]];
}
