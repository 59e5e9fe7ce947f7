import { isDeepStrictEqual } from 'node:util';
import type { Tool, ToolChoice } from '#core/conversation';
import type { GenerateCall } from '#core/call';
import { isObject, own } from '#core/json';
import { encodeToolChoice } from './encode-request.ts';
import { isDeveloper, isInRoleOrder } from './message-shape.ts';
import { hasOlderFunctions, isOlderTurn } from './older-functions.ts';
import { maxTokensName, type Quirks } from './quirks.ts';
import { hasFitThoughts } from './returned-thoughts.ts';
import { hasLongId, hasUnboundedId } from './short-ids.ts';
import { dialect, type ChatMessage, type ChatRequest, type ChatTool } from './wire.ts';

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

/** Does a model with these quirks accept the bytes of a client of this wire? What it refuses whatever the spelling is between the two. */
export function acceptsAsItCame(call: GenerateCall, quirks: Quirks): boolean {
  const {
    maxTokensField: only,
    seedField,
    developer,
    refusals,
    shortIds,
    boundedIds,
    allowedTools,
    schemas,
    jsonObjects,
    thoughts,
    usage,
    olderFunctions,
  } = quirks;
  const { turns, toolChoice, output, sampling } = call;
  if (only !== undefined && sampling.maxTokens !== undefined && maxTokensName(call, { maxTokensDefault: only }) !== only) return false;
  if (!olderFunctions && (hasOlderFunctions(call) || turns.some(isOlderTurn))) return false;
  if (seedField !== undefined && sampling.seed !== undefined) return false;
  if (developer === false && turns.some(isDeveloper)) return false;
  if (!refusals && turns.some(({ parts }) => parts.some(({ type }) => type === 'refusal'))) return false;
  if ((shortIds && hasLongId(turns)) || (boundedIds && hasUnboundedId(turns))) return false;
  if (!isInRoleOrder(turns, quirks)) return false;
  if (!hasFitThoughts(turns, thoughts)) return false;
  if (usage === false && own(call.extra, dialect)['.stream_options']) return false;
  if (allowedTools === false && toolChoice?.type === 'allowed') return false;
  return !(output.type === 'schema' && schemas === false) && !(output.type === 'json' && jsonObjects === false);
}

/** Only the content may be null, and only that of an assistant message. The gateway's own answers have empty annotations, which mean none. */
function isPlainMessage(message: ChatMessage): boolean {
  for (const name in message) {
    const value: unknown = message[name as keyof ChatMessage];
    if (value === null && name !== 'content') return false;
    if (name === 'annotations' && Array.isArray(value) && value.length === 0) return false;
  }
  if ('provider_specific_fields' in message) return false;
  const { content, tool_calls: calls } = message;
  if (content === null && message.role !== 'assistant') return false;
  if (calls?.some((call) => hasNull(call) || 'index' in call)) return false; // assembled from stream fragments, whose `index` is not allowed in requests
  return !Array.isArray(content) || content.every((part) => part.type !== 'refusal' && !('role' in part) && !('annotations' in part) && isPlain(part));
}

const isPlainTool = (tool: ChatTool): boolean => (tool.type !== 'function' && tool.type !== 'custom') || isPlain(tool);

/** Has neither the object nor its inner objects a null? JSON Schemas are nested deeper and may have some. */
const isPlain = (value: object): boolean => !hasNull(value) && !Object.values(value).some((inner: unknown) => isObject(inner) && hasNull(inner));

function hasNull(value: object): boolean {
  for (const name in value) if ((value as Readonly<Record<string, unknown>>)[name] === null) return true;
  return false;
}
