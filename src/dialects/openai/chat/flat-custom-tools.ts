import { isObject, rest, type JsonObject } from '#core/json';
import { nestedGrammar } from '../grammar.ts';

/**
 * Cursor writes its tools of free text flat, as the Responses API has them, and its functions nested. https://github.com/BerriAI/litellm/pull/34029
 * @returns the body itself where nothing is flat
 */
export function withNestedTools(body: unknown): unknown {
  if (!isObject(body)) return body;
  const { tools, tool_choice: choice } = body;
  const flat = Array.isArray(tools) && tools.some(isFlat);
  if (!flat && !isFlat(choice)) return body;
  return { ...body, ...(flat ? { tools: tools.map(nested) } : {}), tool_choice: nested(choice) };
}

const isFlat = (tool: unknown): tool is JsonObject =>
  isObject(tool) && tool['type'] === 'custom' && tool['custom'] === undefined && typeof tool['name'] === 'string';

function nested(tool: unknown): unknown {
  if (!isFlat(tool)) return tool;
  const { format } = tool;
  const custom = rest(tool, withoutType);
  return { type: 'custom', custom: isObject(format) ? { ...custom, format: nestedGrammar(format) } : custom };
}

const withoutType = new Set(['type']);
