import { isDeepStrictEqual } from 'node:util';
import type { Tool, ToolChoice } from '#core/conversation';
import { isObject } from '#core/json';
import { encodeToolChoice } from './encode-request.ts';
import type { ChatMessage, ChatRequest, ChatTool } from './wire.ts';

/**
 * May the client's own bytes be forwarded to a provider? Not where the request has what the gateway accepts and a provider may refuse: null for absent, the
 * gateway's own forms, fields without effect beside the others. The provider is then sent the decoded request, encoded again.
 */
export function isAsItCame(request: ChatRequest, tools: readonly Tool[], toolChoice: ToolChoice | undefined): boolean {
  if (hasNull(request)) return false;
  if (toolChoice && (tools.length === 0 || !isDeepStrictEqual(encodeToolChoice(toolChoice, tools), request.tool_choice))) return false;
  if (tools.length === 0 && (request.tools !== undefined || request.parallel_tool_calls !== undefined)) return false;
  if (request.max_tokens !== undefined && request.max_completion_tokens !== undefined) return false;
  if (request.top_logprobs === 0) return false;
  if (request.stop !== undefined && (request.stop === '' || request.stop?.length === 0 || request.stop?.includes(''))) return false;
  return request.messages.every(isPlainMessage) && (request.tools ?? []).every(isPlainTool);
}

/** Only the content may be null, and only that of an assistant message. */
function isPlainMessage(message: ChatMessage): boolean {
  for (const [name, value] of Object.entries(message)) if (value === null && name !== 'content') return false;
  const { content, tool_calls: calls } = message;
  if (content === null && message.role !== 'assistant') return false;
  if (calls?.some((call) => hasNull(call) || 'index' in call)) return false; // assembled from stream fragments, whose `index` is not allowed in requests
  return !Array.isArray(content) || content.every((part) => part.type !== 'refusal' && isPlain(part));
}

const isPlainTool = (tool: ChatTool): boolean => (tool.type !== 'function' && tool.type !== 'custom') || isPlain(tool);

/** Has neither the object nor its inner objects a null? JSON Schemas are nested deeper and may have some. */
const isPlain = (value: object): boolean => !hasNull(value) && !Object.values(value).some((inner: unknown) => isObject(inner) && hasNull(inner));

function hasNull(value: object): boolean {
  for (const name in value) if ((value as Readonly<Record<string, unknown>>)[name] === null) return true;
  return false;
}
