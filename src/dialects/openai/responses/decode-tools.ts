import {
  webSearchName,
  type CustomTool,
  type FunctionTool,
  type Namespace,
  type Tool,
  type ToolChoice,
  type UnnamedTool,
  type WebSearch,
} from '#core/conversation';
import { isObject, rest, textOf, type Json, type JsonObject } from '#core/json';
import { invalid, missing } from '#core/fault';
import { bounded, isGiven } from '../../shared/read-fields.ts';
import { toolsIn } from '../../shared/lone-items.ts';
import { flatName } from '../../shared/tool-names.ts';
import { termsOf } from '../../shared/web-search.ts';
import { wantedServer } from './mcp-tools.ts';
import { nestedGrammar } from '../grammar.ts';
import { dialect, type ResponsesRequest, type WireTool, carriedAs } from './wire.ts';

/** A flat tool of this wire → a tool, and what of its namespace cannot be read. */
export function toolsOf(tool: WireTool, at: number): readonly Tool[] {
  const field = `tools[${at}]`;
  return [toolOf(tool, field), ...(tool.type === 'namespace' ? unreadMembers(rest(tool, new Set()), field) : [])];
}

function toolOf(tool: WireTool, field: string): Tool {
  const { type, name, description, parameters, strict, format } = tool;
  if (type !== 'function' && type !== 'custom') {
    const value = bounded(rest(tool, new Set()), field);
    const namespace = type === 'namespace' ? namespaceOf(value) : undefined;
    return {
      type: 'foreign',
      ...(kindOf(type) === webSearchName ? { search: searchOf(value) } : {}),
      ...(namespace ? { namespace } : {}),
      ...(type === 'mcp' ? { server: wantedServer(value, field) } : {}),
      dialect,
      value,
    };
  }
  if (!isGiven(name)) throw missing(`${field}.name`);
  const described = isGiven(description) ? { description } : {};
  const carried = carriedAs(rest(tool, callableMembers));
  if (type === 'custom')
    return { type, name, ...described, ...(isGiven(format) ? { format: nestedGrammar(bounded(format, `${field}.format`)) } : {}), ...carried };
  const kind = parameters?.['type'];
  if (isGiven(kind) && kind !== 'object') throw invalid(`${field}.parameters.type`, 'must be "object"');
  return {
    type,
    name,
    ...described,
    ...(isGiven(parameters) ? { parameters: bounded(parameters, `${field}.parameters`) } : {}),
    ...(isGiven(strict) ? { strict } : {}),
    ...carried,
  };
}

const callableMembers = new Set(['type', 'name', 'description', 'parameters', 'strict', 'format']);

/** https://developers.openai.com/api/docs/guides/function-calling#defining-namespaces */
function namespaceOf({ name, description, tools }: JsonObject): Namespace | undefined {
  const callable = Array.isArray(tools) ? (tools as readonly Json[]).map(memberOf).filter((one) => one !== undefined) : [];
  if (typeof name !== 'string' || callable.length === 0) return undefined;
  return { name, ...(textOf(description) === '' ? {} : { description: textOf(description) }), tools: callable };
}

/** @returns undefined where it cannot be read */
function memberOf(value: Json): FunctionTool | CustomTool | undefined {
  if (!isObject(value)) return undefined;
  const { type, name, description, parameters, strict, format } = value;
  if (typeof name !== 'string' || name === '' || (isGiven(description) && typeof description !== 'string')) return undefined;
  const described = isGiven(description) ? { description } : {};
  if (type === 'custom') {
    if (isGiven(format) && !isObject(format)) return undefined;
    return { type, name, ...described, ...(isGiven(format) ? { format: nestedGrammar(format) } : {}) };
  }
  if (type !== 'function' || (isGiven(parameters) && !isObject(parameters)) || (isGiven(strict) && typeof strict !== 'boolean')) return undefined;
  if (isGiven(parameters?.['type']) && parameters['type'] !== 'object') return undefined;
  return { type, name, ...described, ...(isGiven(parameters) ? { parameters } : {}), ...(isGiven(strict) ? { strict } : {}) };
}

/** The members of a namespace that cannot be read, each by its place, and those of a long list as one. */
function unreadMembers({ name, tools }: JsonObject, field: string): readonly Tool[] {
  if (typeof name !== 'string' || !Array.isArray(tools)) return [];
  const all = (tools as readonly Json[]).flatMap((value, at) => (memberOf(value) ? [] : [{ value, at }]));
  const more = all.length - mostNamed;
  const rest = more > 0 ? [unread(all[mostNamed]!.value, `${field}.tools[${all[mostNamed]!.at}] and ${more - 1} others`)] : [];
  return [...all.slice(0, mostNamed).map(({ value, at }) => unread(value, `${field}.tools[${at}]`)), ...rest];
}

const mostNamed = 20;

/** The tools of an item such as codex' `additional_tools`: clients of other wires declare theirs beside the conversation. https://github.com/SaladDay/cc-switch-cli/issues/466 */
export function toolsInItem(item: JsonObject): readonly Tool[] {
  const declared = toolsIn(item) ?? [];
  const field = `${textOf(item['type']).slice(0, longestType)}.tools`;
  const more = declared.length > mostTools ? [unread(declared[mostTools], `${field}[${mostTools}-${declared.length - 1}]`)] : [];
  return [...declared.slice(0, mostTools).flatMap((value, at) => toolsInEntry(value, `${field}[${at}]`)), ...more];
}

function toolsInEntry(value: Json, field: string): readonly Tool[] {
  if (!isObject(value) || typeof value['type'] !== 'string') return [unread(value, field)];
  const { type } = value;
  if (type === 'function' || type === 'custom') {
    const tool = memberOf(value);
    return [tool ? { ...tool, inItem: true } : unread(value, field)];
  }
  const namespace = type === 'namespace' ? namespaceOf(value) : undefined;
  const search = kindOf(type) === webSearchName ? searchOf(value) : undefined;
  const tool: Tool = { type: 'foreign', ...(search ? { search } : {}), ...(namespace ? { namespace } : {}), dialect, value, inItem: true };
  return [tool, ...(namespace ? unreadMembers(value, field) : [])];
}

/** A declaration for the warnings of other wires: providers of this one get it where the client wrote it. */
const unread = (value: Json | undefined, field: string): Tool => ({ type: 'foreign', field, dialect, value: isObject(value) ? value : {}, inItem: true });

const longestType = 100;

/** As many as a request may have beside the conversation. */
const mostTools = 1024;

/** https://platform.openai.com/docs/guides/tools-web-search */
function searchOf(value: JsonObject): WebSearch {
  const { others, ...terms } = termsOf(value, searchMembers);
  const { filters } = value;
  const isRead = isObject(filters) || !isGiven(filters);
  const bounds = termsOf(isObject(filters) ? filters : {}, { allowed_domains: 'allowed', blocked_domains: 'blocked' });
  return { ...terms, ...bounds, others: [...others, ...(isRead ? [] : ['filters']), ...bounds.others.map((name) => `filters.${name}`)] };
}

const searchMembers = { type: null, filters: null, external_web_access: 'unopened', user_location: 'near', search_context_size: 'contextSize' } as const;

export interface Chosen {
  readonly toolChoice?: ToolChoice;
  /** The choice of a tool that only providers of this wire have. */
  readonly carried?: Json;
  /** A choice that names tools of a namespace, for providers that are sent namespaces. */
  readonly asWritten?: Json;
}

export function toolChoiceOf(choice: ResponsesRequest['tool_choice'], tools: readonly Tool[]): Chosen {
  if (!isGiven(choice)) return {};
  if (choice === 'none' || choice === 'auto') return { toolChoice: { type: choice } };
  if (tools.length === 0) throw invalid('tool_choice', 'must be "none" or "auto" when there are no tools');
  if (choice === 'required') return { toolChoice: { type: choice } };
  if (typeof choice === 'string') throw invalid('tool_choice', 'must be "none", "auto", "required" or an object');
  const { type, name, namespace, mode, tools: allowed } = choice as Readonly<Record<string, unknown>> & { readonly type: string };
  switch (type) {
    case 'function':
    case 'custom':
      if (typeof name !== 'string') throw name === undefined ? missing('tool_choice.name') : invalid('tool_choice.name', 'must be a string');
      return {
        toolChoice: { type: 'tool', name: declared({ name, namespace }, tools, 'tool_choice.name') },
        ...(namespace === undefined ? {} : { asWritten: bounded(choice, 'tool_choice') }),
      };
    case 'allowed_tools':
      return { toolChoice: allowedOf(mode, allowed, tools), ...(namesNamespace(allowed) ? { asWritten: bounded(choice, 'tool_choice') } : {}) };
    default: {
      const chosen = hostedOf(choice, hostedIn(tools), 'tool_choice');
      if (chosen === webSearchName) return { toolChoice: { type: 'tool', name: chosen } };
      return chosen.server ? { toolChoice: { type: 'allowed', names: [], mode: 'required', unnamed: [chosen], isDemand: true } } : { carried: chosen.value };
    }
  }
}

/** The declared tools that are no functions. */
interface Hosted {
  /** By their kind, the labels of those that are MCP servers. */
  readonly kinds: ReadonlyMap<string, ReadonlySet<string>>;
  /** A function has the name of the web search. */
  readonly isSearchTaken: boolean;
}

function hostedIn(tools: readonly Tool[]): Hosted {
  const kinds = new Map<string, Set<string>>();
  for (const tool of tools) {
    if (tool.type !== 'foreign') continue;
    const kind = kindOf(tool.value['type']);
    const labels = kinds.get(kind) ?? new Set();
    kinds.set(kind, tool.server ? labels.add(tool.server.label) : labels);
  }
  return { kinds, isSearchTaken: tools.some((tool) => tool.type !== 'foreign' && tool.name === webSearchName) };
}

/** The web search, or another tool that is no function. @throws Fault `invalid` where it is not among the tools */
function hostedOf(choice: JsonObject, { kinds, isSearchTaken }: Hosted, field: string): typeof webSearchName | UnnamedTool {
  const kind = kindOf(choice['type']);
  const labels = kinds.get(kind);
  if (!labels) throw invalid(`${field}.type`, 'names a tool that is not among the tools');
  if (kind === webSearchName && !isSearchTaken) return webSearchName; // where a function has the same name, the choice is ambiguous
  const value = bounded(choice, field);
  const { server_label: label, name } = choice;
  if (kind !== 'mcp' || typeof label !== 'string') return { dialect, value };
  if (!labels.has(label)) throw invalid(`${field}.server_label`, 'names an MCP server that is not among the tools');
  return { dialect, value, server: { label, ...(typeof name === 'string' ? { tool: name } : {}) } };
}

/** `web_search_preview_2025_03_11` is a `web_search`. */
const kindOf = (type: unknown) =>
  textOf(type)
    .split('_preview', 1)[0]!
    .replace(/_\d{4}_\d\d_\d\d$/, '');

/** As many as a request may declare. */
const mostAllowed = 1024;

function allowedOf(mode: unknown, allowed: unknown, tools: readonly Tool[]): ToolChoice {
  if (mode !== 'auto' && mode !== 'required')
    throw mode === undefined ? missing('tool_choice.mode') : invalid('tool_choice.mode', 'must be "auto" or "required"');
  if (!Array.isArray(allowed) || allowed.length === 0 || allowed.length > mostAllowed)
    throw invalid('tool_choice.tools', `must be an array of 1 to ${mostAllowed} tools`);
  const hosted = hostedIn(tools);
  const unnamed: UnnamedTool[] = [];
  const names = (allowed as readonly Json[]).flatMap((one, at) => {
    const field = `tool_choice.tools[${at}]`;
    if (!isObject(one)) throw invalid(field, 'must be an object');
    const { type, name, namespace } = one;
    if (type === 'function' || type === 'custom') {
      if (typeof name !== 'string') throw missing(`${field}.name`);
      return [declared({ name, namespace }, tools, `${field}.name`)];
    }
    const chosen = hostedOf(one, hosted, field);
    if (chosen === webSearchName) return [chosen];
    unnamed.push(chosen);
    return [];
  });
  return { type: 'allowed', names, mode, ...(unnamed.length > 0 ? { unnamed } : {}) };
}

const namesNamespace = (allowed: unknown): boolean => Array.isArray(allowed) && allowed.some((one: unknown) => isObject(one) && one['namespace'] !== undefined);

/** The name of a declared tool; that of a namespace has both names in one. */
function declared({ name, namespace }: { readonly name: string; readonly namespace: unknown }, tools: readonly Tool[], field: string): string {
  for (const tool of tools) {
    if (tool.type !== 'foreign' && tool.name === name && namespace === undefined) return name;
    if (tool.type !== 'foreign' || tool.namespace?.name !== namespace || !tool.namespace) continue;
    if (tool.namespace.tools.some((one) => one.name === name)) return flatName({ name, namespace: tool.namespace.name });
  }
  throw invalid(field, 'names a tool that is not among the tools');
}
