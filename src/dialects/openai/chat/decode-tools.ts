import type { GenerateCall } from '#core/call';
import type { ForeignTool, Tool, ToolChoice } from '#core/conversation';
import { isObject, rest, type Json, type JsonObject } from '#core/json';
import { invalid, missing } from '#core/fault';
import { otherServer } from '../../shared/other-server.ts';
import { bounded, isGiven, nested } from '../../shared/read-fields.ts';
import { termsOf } from '../../shared/web-search.ts';
import { carriedAs, dialect, type ChatRequest, type ChatTool } from './wire.ts';

export function toolOf(tool: ChatTool, at: number): Tool {
  const field = `tools[${at}]`;
  switch (tool.type) {
    case 'function': {
      if (!tool.function) throw missing(`${field}.function`);
      const { name, description, parameters, strict } = tool.function;
      const kind = parameters?.['type'];
      if (isGiven(kind) && kind !== 'object') throw invalid(`${field}.function.parameters.type`, 'must be "object"');
      const { cache_control, ...inner } = rest(tool.function, functionMembers); // there, too: https://docs.litellm.ai/docs/providers/anthropic#prompt-caching
      const breakpoint = cache_control === undefined ? {} : { cache_control, '.innerBreakpoint': true };
      const carried = { ...rest(tool, toolMembers), ...nested('function', inner), ...breakpoint };
      return {
        type: 'function',
        name,
        ...(isGiven(description) && { description }),
        ...(isGiven(parameters) && { parameters: bounded(parameters, `${field}.function.parameters`) }),
        ...(isGiven(strict) && { strict }),
        ...carriedAs(carried),
      };
    }
    case 'custom': {
      if (!tool.custom) throw missing(`${field}.custom`);
      const { name, description, format } = tool.custom;
      return {
        type: 'custom',
        name,
        ...(isGiven(description) && { description }),
        ...(isGiven(format) && { format: bounded(format, `${field}.custom.format`) }),
      };
    }
    default:
      return { type: 'foreign', dialect, value: bounded(tool, field) };
  }
}

/** Some providers take the type `mcp` of the responses interface here, or with its members in `mcp`: https://docs.z.ai/api-reference/llm/chat-completion */
export function otherServersOf(tools: readonly Tool[]): Pick<GenerateCall, 'otherServers'> | undefined {
  if (!tools.some(isServer)) return undefined;
  const otherServers = tools.flatMap((tool, at) => {
    if (!isServer(tool)) return [];
    const { mcp, server_url: url } = tool.value;
    const within = isObject(mcp) ? [otherServer(mcp, `tools[${at}].mcp`, 'server_url')] : [];
    return isGiven(url) || within.length === 0 ? [otherServer(tool.value, `tools[${at}]`, 'server_url'), ...within] : within;
  });
  return { otherServers };
}

const isServer = (tool: Tool): tool is ForeignTool => tool.type === 'foreign' && tool.value['type'] === 'mcp';

/** The search of a chat completion, which is a field and no tool: https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat */
export function searchTool(options: JsonObject): ForeignTool {
  const value = bounded(options, searchField);
  return {
    type: 'foreign',
    search: termsOf(value, { user_location: 'near', search_context_size: 'contextSize' }),
    field: searchField,
    dialect,
    value: { [searchField]: value },
  };
}

/** What a call's search of this wire was sent as. */
export const searchOptions = (tool: Tool): Json | undefined =>
  tool.type === 'foreign' && tool.dialect === dialect && tool.search ? tool.value[searchField] : undefined;

const searchField = 'web_search_options';

const toolMembers = new Set(['type', 'function', 'custom']);
const functionMembers = new Set(['name', 'description', 'parameters', 'strict']);

/** Accepts all documented forms, and the bare name of a declared tool. */
export function toolChoiceOf(choice: ChatRequest['tool_choice'], tools: readonly Tool[]): ToolChoice | undefined {
  if (!isGiven(choice)) return undefined;
  if (choice === 'none' || choice === 'auto') return { type: choice };
  if (tools.length === 0) throw invalid('tool_choice', 'must be "none" or "auto" when there are no tools');
  if (choice === 'required') return { type: 'required' };
  if (typeof choice === 'string') return { type: 'tool', name: declared(choice, tools) };
  const { type, function: named, custom, allowed_tools: allowed } = choice as Readonly<Record<string, unknown>> & { readonly type: string };
  switch (type) {
    case 'function':
      return { type: 'tool', name: declared(nameIn(named, 'tool_choice.function'), tools) };
    case 'custom':
      return { type: 'tool', name: declared(nameIn(custom, 'tool_choice.custom'), tools) };
    case 'allowed_tools':
      return allowedOf(allowed, tools);
    default:
      throw invalid('tool_choice.type', 'must be "function", "custom" or "allowed_tools"');
  }
}

function allowedOf(allowed: unknown, tools: readonly Tool[]): ToolChoice {
  const field = 'tool_choice.allowed_tools';
  if (!isObject(allowed)) throw missing(field);
  const { mode, tools: list } = allowed;
  if (mode !== 'auto' && mode !== 'required') throw mode === undefined ? missing(`${field}.mode`) : invalid(`${field}.mode`, 'must be "auto" or "required"');
  if (!Array.isArray(list) || list.length === 0) throw invalid(`${field}.tools`, 'must be an array of at least one tool');
  const names = list.map((one: unknown, at) => {
    if (!isObject(one)) throw invalid(`${field}.tools[${at}]`, 'must be an object');
    return declared(
      nameIn(one['type'] === 'custom' ? one['custom'] : one['function'], `${field}.tools[${at}].${one['type'] === 'custom' ? 'custom' : 'function'}`),
      tools,
    );
  });
  return { type: 'allowed', names, mode };
}

function nameIn(value: unknown, field: string): string {
  if (!isObject(value)) throw missing(field);
  if (typeof value['name'] !== 'string') throw value['name'] === undefined ? missing(`${field}.name`) : invalid(`${field}.name`, 'must be a string');
  return value['name'];
}

function declared(name: string, tools: readonly Tool[]): string {
  if (tools.some((tool) => tool.type !== 'foreign' && tool.name === name)) return name;
  throw invalid('tool_choice', 'names a tool that is not among the tools');
}
