import type { Quirks } from './quirks.ts';
import type { GenerateCall } from '#core/call';
import { isWebSearch, webSearchName, type Tool, type ToolChoice } from '#core/conversation';
import { absent, ignoredIn, noteOn } from '#core/capabilities';
import { isEmpty, own, type Json, type JsonObject } from '#core/json';
import { droppedExtra } from '#core/dropped-extra';
import type { EncodedRequest } from '../dialect.ts';
import { leftOut, unsupportedTerms } from '../shared/web-search.ts';
import { possibleChoice } from '../shared/tool-choice.ts';
import { describedSchema } from '../shared/read-fields.ts';
import { encodeConversation } from './encode-messages.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { support, supports } from './capabilities.ts';
import { dialect } from './wire.ts';

/** Output tokens where neither the client nor the settings have a limit: every current model accepts this value. */
const defaultTokens = 8192;

/** Output tokens left for the answer above a thinking budget. */
const answerTokens = 4096;

export interface RequestOptions {
  /** The model's output token limit, where it is known. */
  readonly mostTokens?: number | undefined;
}

/**
 * Call → a message request. A field that the client did not send is not sent, except `max_tokens`, which this wire requires.
 *
 * @param model the model's upstream name
 * @returns `ignored`: what this wire does not support, as `field: reason`
 */
export function encodeRequest(call: GenerateCall, model: string, quirks: Quirks = {}, { mostTokens }: RequestOptions = {}): EncodedRequest {
  const ignored = new Set([...droppedExtra(call, dialect).map((name) => `${name}: ${absent}`), ...ignoredIn(call, supports(quirks))]);
  const carried = Object.entries(own(call.extra, dialect)).filter(([name]) => !name.startsWith('.') && name !== 'output_config');
  const tools = call.tools.flatMap((tool) => encodeTool(tool, call, ignored));
  const choice = call.toolChoice && possibleChoice(call, { dialect, custom: false, search: true }, ignored);
  const { system, messages } = encodeConversation(call.turns, ignored);
  const limit = call.sampling.maxTokens;
  const { thinking, effort, budget } = encodeReasoning(call, limit ?? mostTokens, quirks, ignored);
  const body: Record<string, Json> = {
    ...Object.fromEntries(carried),
    model,
    max_tokens: limit ?? mostTokens ?? Math.max(defaultTokens, budget + answerTokens),
    messages,
    ...(system === undefined ? {} : { system }),
    ...encodeSampling(call, thinking, quirks, ignored),
    ...(tools.length > 0 ? { tools, ...encodeToolChoice(choice, call) } : {}),
    ...(thinking ? { thinking } : {}),
  };
  const config = { ...(own(call.extra, dialect)['output_config'] as JsonObject | undefined), ...(effort ? { effort } : {}), ...encodeOutput(call, ignored) };
  if (!isEmpty(config)) body['output_config'] = config;
  if (call.stream) body['stream'] = true;
  return { body, ignored: [...ignored] };
}

/** With thinking enabled, the wire accepts no temperature but 1 and no top_k. */
function encodeSampling({ sampling, extra }: GenerateCall, thinking: JsonObject | undefined, { without = [] }: Quirks, ignored: Set<string>): JsonObject {
  const { temperature, topP, topK, stop } = sampling;
  const fields: Record<string, Json> = {};
  const thinks = thinking !== undefined && thinking['type'] !== 'disabled' && own(extra, dialect)['.thinking'] === undefined;
  const set = (name: 'temperature' | 'top_p' | 'top_k', value: number | undefined) => {
    if (value === undefined || without.includes(name)) return;
    if (thinks && value !== 1) ignored.add(`${name}: the provider does not accept it for a model that thinks.`);
    else fields[name] = value;
  };
  if (temperature !== undefined && temperature > 1) ignored.add(noteOn('temperature', support));
  set('temperature', temperature === undefined ? undefined : Math.min(1, temperature));
  set('top_p', topP);
  set('top_k', topK);
  const stops = stop?.filter((one) => one.trim() !== '') ?? [];
  if (stop && stops.length < stop.length) ignored.add(noteOn('stop', support));
  if (stops.length > 0) fields['stop_sequences'] = stops;
  return fields;
}

function encodeOutput({ output, extra }: GenerateCall, ignored: Set<string>): JsonObject {
  switch (output.type) {
    case 'text':
      return {};
    case 'json':
      ignored.add(noteOn('response_format', support));
      return {};
    case 'schema':
      return {
        format: {
          ...(own(extra, dialect)['.format'] as JsonObject | undefined),
          type: 'json_schema',
          schema: describedSchema(output.schema, output.description),
        },
      };
    default:
      return output satisfies never;
  }
}

function encodeTool(tool: Tool, { toolChoice }: GenerateCall, ignored: Set<string>): readonly JsonObject[] {
  switch (tool.type) {
    case 'function': {
      if (toolChoice?.type === 'allowed' && !toolChoice.names.includes(tool.name)) return [];
      const { name, description, parameters = {}, strict } = tool;
      return [
        {
          ...own(tool.extra, dialect),
          name,
          ...(description === undefined ? {} : { description }),
          input_schema: { ...parameters, type: 'object' },
          ...(strict === undefined ? {} : { strict }),
        },
      ];
    }
    case 'custom':
      ignored.add(noteOn('tools', support));
      return [];
    case 'foreign':
      if (tool.dialect === dialect) return [tool.value];
      if (isWebSearch(tool)) {
        const { allowed, blocked, most } = tool.search; // the wire accepts only one of the two lists
        for (const one of unsupportedTerms(tool.search, allowed ? ['allowed', 'most'] : ['blocked', 'most'])) ignored.add(one);
        const bound = allowed ? { allowed_domains: allowed } : blocked ? { blocked_domains: blocked } : {};
        return [{ type: 'web_search_20250305', name: webSearchName, ...bound, ...(most === undefined ? {} : { max_uses: most }) }];
      }
      ignored.add(leftOut(tool));
      return [];
    default:
      return tool satisfies never;
  }
}

/** The API has no choice among a subset of the tools: only that subset is declared. */
function encodeToolChoice(choice: ToolChoice | undefined, { parallelToolCalls }: GenerateCall): { readonly tool_choice?: JsonObject } {
  const alone = parallelToolCalls === undefined ? {} : { disable_parallel_tool_use: !parallelToolCalls };
  if (!choice) return parallelToolCalls === false ? { tool_choice: { type: 'auto', ...alone } } : {};
  switch (choice.type) {
    case 'none':
      return { tool_choice: { type: 'none' } };
    case 'auto':
      return { tool_choice: { type: 'auto', ...alone } };
    case 'required':
      return { tool_choice: { type: 'any', ...alone } };
    case 'tool':
      return { tool_choice: { type: 'tool', name: choice.name, ...alone } };
    case 'allowed':
      return { tool_choice: { type: choice.mode === 'auto' ? 'auto' : 'any', ...alone } };
    default:
      return choice satisfies never;
  }
}
