import { rest, type Json, type JsonObject } from '#core/json';
import { isGiven } from '../../shared/read-fields.ts';
import type { ResponsesRequest, WireTool } from './wire.ts';

/** The response object around its output: every member is present, null where it has no value. */

export interface Identity {
  /** `resp_…`; the ids of its items are made from it. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
}

export type Status = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** The response object before it runs, from its request alone. @param stored will it be stored? */
export function queued(request: ResponsesRequest, { id, created }: Identity, stored: boolean): JsonObject {
  const { conversation } = request;
  const response: JsonObject = {
    id,
    object: 'response',
    created_at: created,
    completed_at: null,
    status: 'queued',
    background: request.background ?? false,
    error: null,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    model: request.model,
    output: [],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: request.reasoning?.summary ?? null },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: request.service_tier ?? 'default',
    store: stored,
    temperature: request.temperature ?? 1,
    text: textOf(request),
    tool_choice: (request.tool_choice as Json | undefined) ?? 'auto',
    tools: (request.tools ?? []).map(shownTool),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? 1,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    truncation: request.truncation ?? 'disabled',
    usage: null,
    user: request.user ?? null,
    metadata: request.metadata ?? {},
  };
  return isGiven(conversation) ? { ...response, conversation: { id: typeof conversation === 'string' ? conversation : conversation.id } } : response;
}

function textOf({ text }: ResponsesRequest): JsonObject {
  const { format, verbosity } = text ?? {};
  const shown: Json =
    format?.type === 'json_schema'
      ? { type: format.type, name: format.name, description: format.description ?? null, schema: format.schema, strict: format.strict ?? false }
      : { type: format?.type ?? 'text' };
  return { format: shown, ...(isGiven(verbosity) ? { verbosity } : {}) };
}

function shownTool(tool: WireTool): JsonObject {
  const shown = rest(tool, new Set());
  if (tool.type === 'mcp') return { ...shown, ...Object.fromEntries(['authorization', 'headers'].flatMap((name) => (name in shown ? [[name, null]] : []))) };
  if (tool.type !== 'function') return shown;
  return { ...shown, description: tool.description ?? null, parameters: tool.parameters ?? null, strict: tool.strict ?? null };
}
