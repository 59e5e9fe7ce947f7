import { checked } from '#kit/json/check';
import type { GenerateCall, OtherModel, Reasoning } from '#core/call';
import type { Sampling } from '#core/sampling';
import { webSearchName, type Tool, type ToolChoice, type Turn, type WebSearch } from '#core/conversation';
import { Fault, invalid, missing } from '#core/fault';
import { isEmpty, isObject, rest, type Extra, type Json, type JsonObject } from '#core/json';
import { askedRate } from '../shared/asked-rate.ts';
import { carriedOf, carryUnknown } from '../shared/nested-members.ts';
import { otherServer } from '../shared/other-server.ts';
import { bodyFault, bounded, isGiven } from '../shared/read-fields.ts';
import { termsOf } from '../shared/web-search.ts';
import { textPartOf, turnsOf } from './decode-messages.ts';
import { effortOf } from './thinking.ts';
import { rateOf } from './usage.ts';
import { carriedAs, CountRequest, dialect, MessagesRequest, type WireTool } from './wire.ts';

const check = checked(MessagesRequest, bodyFault);
const checkCount = checked(CountRequest, bodyFault);

/** Fields that the call has a member for. All others are carried. */
const understood: ReadonlySet<string> = new Set(
  'model messages system tools tool_choice thinking output_config output_format max_tokens temperature top_p top_k stop_sequences stream'.split(' '),
);

/** A message request → call. @param body parsed JSON. @throws Fault `invalid`, naming the field as the client spelled it */
export function decodeRequest(body: unknown): GenerateCall {
  refuseThread(body);
  const request = check(body);
  const sampling: { -readonly [Key in keyof Sampling]: Sampling[Key] } = { maxTokens: request.max_tokens };
  if (isGiven(request.temperature)) sampling.temperature = request.temperature;
  if (isGiven(request.top_p)) sampling.topP = request.top_p;
  if (isGiven(request.top_k)) sampling.topK = request.top_k;
  if (isGiven(request.stop_sequences) && request.stop_sequences.length > 0) sampling.stop = request.stop_sequences;
  const endUser = request.metadata?.user_id;
  return {
    ...conversationOf(request),
    sampling,
    stream: request.stream ?? false,
    ...(endUser ? { endUser } : {}),
    ...askedRate(() => rateOf(request)),
    ...otherModelsOf(request),
    extra: extraOf(request),
  };
}

/**
 * Advisors, and the models that answer where the first one refuses.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback
 */
function otherModelsOf(request: MessagesRequest): Pick<GenerateCall, 'otherModels'> {
  const { fallbacks } = request as { readonly fallbacks?: unknown };
  const otherModels = [...namedIn('tools', request.tools), ...namedIn('fallbacks', fallbacks)];
  return otherModels.length === 0 ? {} : { otherModels };
}

function namedIn(field: string, list: unknown): readonly OtherModel[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((one: unknown, at) =>
    isObject(one) && typeof one['model'] === 'string' ? [{ model: one['model'], field: `${field}[${at}].model` }] : [],
  );
}

/** A conversation that the server holds. The SDK's tool runner asks for one, and goes on with whole conversations where the refusal says that there are none. */
function refuseThread(body: unknown): void {
  if (!isObject(body) || !isGiven(body['thread'])) return;
  throw new Fault('invalid', 'thread is not supported: send all messages of the conversation.', { field: 'thread', reason: 'thread' });
}

/** A token count request → call. @throws Fault `invalid` */
export function decodeCount(body: unknown): GenerateCall {
  const request = checkCount(body);
  return { ...conversationOf(request), sampling: {}, stream: false, extra: extraOf(request) };
}

function conversationOf(request: CountRequest): Omit<GenerateCall, 'sampling' | 'stream' | 'extra'> {
  if (!/^[\x20-\x7e]+$/.test(request.model)) throw invalid('model', 'must be printable ASCII');
  const tools = request.tools?.map(toolOf) ?? [];
  const { tool_choice: choice } = request;
  const reasoning = reasoningOf(request);
  const { format, field } = formatOf(request);
  const parallel = choice && 'disable_parallel_tool_use' in choice ? choice.disable_parallel_tool_use : undefined;
  const toolChoice = choice && toolChoiceOf(choice, tools);
  return {
    dialect,
    model: request.model,
    turns: [...systemTurn(request.system), ...turnsOf(request.messages)],
    tools,
    ...(toolChoice ? { toolChoice } : {}),
    ...(isGiven(parallel) ? { parallelToolCalls: !parallel } : {}),
    output: format ? { type: 'schema', schema: bounded(format.schema, `${field}.schema`) } : { type: 'text' },
    ...(reasoning ? { reasoning } : {}),
    ...otherServersOf(request),
  };
}

/** https://platform.claude.com/docs/en/agents-and-tools/mcp-connector */
function otherServersOf(request: CountRequest): Pick<GenerateCall, 'otherServers'> {
  const { mcp_servers: servers } = request as { readonly mcp_servers?: unknown };
  if (!isGiven(servers)) return {};
  if (!Array.isArray(servers)) return { otherServers: [{ field: 'mcp_servers' }] };
  return { otherServers: servers.map((server: unknown, at) => otherServer(server, `mcp_servers[${at}]`, 'url')) };
}

/** `output_format` is the name that the field had in its beta, which clients such as LiteLLM still use. https://platform.claude.com/docs/en/build-with-claude/structured-outputs */
function formatOf({ output_config: config, output_format: older }: CountRequest) {
  if (isGiven(config?.format)) return { format: config.format, field: 'output_config.format' };
  return { format: isGiven(older) ? older : undefined, field: 'output_format' };
}

function systemTurn(system: CountRequest['system']): readonly Turn[] {
  if (!isGiven(system) || system.length === 0) return [];
  return [{ role: 'system', parts: typeof system === 'string' ? [{ type: 'text', text: system }] : system.map(textPartOf) }];
}

function reasoningOf({ thinking, output_config: config }: CountRequest): Reasoning | undefined {
  if (thinking?.type === 'disabled') return { effort: 'none' };
  const hidden = thinking?.display === 'omitted' ? { hidden: true } : {};
  const effort = config?.effort;
  const budget = thinking?.type === 'enabled' ? { effort: effortOf(thinking.budget_tokens), budget: thinking.budget_tokens } : {};
  if (isGiven(effort)) return { ...budget, effort, ...hidden };
  return thinking ? { ...budget, ...hidden } : undefined;
}

/** Names with a leading dot keep the client's own spelling of what the call has in core terms. */
function extraOf(request: CountRequest): Extra {
  const carried: Record<string, Json> = carriedOf(request, understood);
  if (isGiven(request.thinking)) carried['.thinking'] = request.thinking;
  const { format, field } = formatOf(request);
  const { effort } = request.output_config ?? {};
  if (isGiven(effort)) carried['.effort'] = effort;
  if (isGiven(format)) carried['.format'] = rest(format, members.format);
  carryUnknown(carried, 'output_config', request.output_config, members.config);
  carryUnknown(carried, field, format, members.format);
  carryUnknown(carried, 'thinking', request.thinking, members.thinking);
  carryUnknown(carried, 'tool_choice', request.tool_choice, members.toolChoice);
  return isEmpty(carried) ? {} : { [dialect]: carried };
}

/** The members that these objects have. Others are carried by their paths. */
const members = {
  format: new Set(['type', 'schema']),
  config: new Set(['effort', 'format']),
  thinking: new Set(['type', 'budget_tokens', 'display']),
  toolChoice: new Set(['type', 'name', 'disable_parallel_tool_use']),
};

function toolOf(tool: WireTool, at: number): Tool {
  const field = `tools[${at}]`;
  if (isGiven(tool.type) && tool.type !== 'custom') {
    const value = bounded(rest(tool, new Set()), field);
    const isSearch = /^web_search_\d{8}$/.test(tool.type) && tool.name === webSearchName;
    return { type: 'foreign', ...(isSearch ? { search: searchOf(value) } : {}), dialect, value };
  }
  const { name, description, input_schema: parameters, strict } = tool;
  if (!isGiven(name)) throw missing(`${field}.name`);
  if (!isGiven(parameters)) throw missing(`${field}.input_schema`);
  const kind = parameters['type'];
  if (isGiven(kind) && kind !== 'object') throw invalid(`${field}.input_schema.type`, 'must be "object"');
  return {
    type: 'function',
    name,
    ...(isGiven(description) ? { description } : {}),
    parameters: bounded(parameters, `${field}.input_schema`),
    ...(isGiven(strict) ? { strict } : {}),
    ...carriedAs(rest(tool, toolMembers)),
  };
}

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool */
const searchOf = (value: JsonObject): WebSearch => termsOf(value, searchMembers);

const searchMembers = {
  type: null,
  name: null,
  cache_control: null,
  allowed_domains: 'allowed',
  blocked_domains: 'blocked',
  max_uses: 'most',
  user_location: 'near',
} as const;

const toolMembers = new Set(['type', 'name', 'description', 'input_schema', 'strict']);

function toolChoiceOf(choice: NonNullable<CountRequest['tool_choice']>, tools: readonly Tool[]): ToolChoice {
  if (tools.length === 0 && choice.type !== 'auto' && choice.type !== 'none') throw invalid('tool_choice', 'needs tools');
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { type: choice.type };
    case 'any':
      return { type: 'required' };
    case 'tool':
      if (!tools.some((tool) => (tool.type === 'foreign' ? tool.value['name'] : tool.name) === choice.name))
        throw invalid('tool_choice.name', 'names a tool that is not among the tools');
      return { type: 'tool', name: choice.name };
    default:
      return choice satisfies never;
  }
}
