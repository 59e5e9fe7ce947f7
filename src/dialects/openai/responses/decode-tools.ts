import { webSearchName, type CustomTool, type FunctionTool, type Namespace, type Tool, type ToolChoice, type WebSearch } from '#core/conversation';
import { isObject, rest, textOf, type Json, type JsonObject } from '#core/json';
import { bounded, invalid, isGiven, missing } from '../../shared/read-fields.ts';
import { toolsIn } from '../../shared/lone-items.ts';
import { flatName } from '../../shared/tool-names.ts';
import { contextSizeOf, hosts, nearOf, termsOf } from '../../shared/web-search.ts';
import { dialect, type ResponsesRequest, type WireTool, carriedAs } from './wire.ts';

/** The flat tools of this wire → tools. */
export function toolOf(tool: WireTool, at: number): Tool {
  const field = `tools[${at}]`;
  const { type, name, description, parameters, strict, format } = tool;
  if (type !== 'function' && type !== 'custom') {
    const value = bounded(rest(tool, new Set()), field);
    const namespace = type === 'namespace' ? namespaceOf(value) : undefined;
    return { type: 'foreign', ...(kindOf(type) === webSearchName ? { search: searchOf(value) } : {}), ...(namespace ? { namespace } : {}), dialect, value };
  }
  if (!isGiven(name)) throw missing(`${field}.name`);
  const described = isGiven(description) ? { description } : {};
  if (type === 'custom') return { type, name, ...described, ...(isGiven(format) ? { format: nestedGrammar(bounded(format, `${field}.format`)) } : {}) };
  const kind = parameters?.['type'];
  if (isGiven(kind) && kind !== 'object') throw invalid(`${field}.parameters.type`, 'must be "object"');
  return {
    type,
    name,
    ...described,
    ...(isGiven(parameters) ? { parameters: bounded(parameters, `${field}.parameters`) } : {}),
    ...(isGiven(strict) ? { strict } : {}),
    ...carriedAs(rest(tool, functionMembers)),
  };
}

const functionMembers = new Set(['type', 'name', 'description', 'parameters', 'strict', 'format']);

/** https://developers.openai.com/api/docs/guides/function-calling#defining-namespaces */
function namespaceOf({ name, tools }: JsonObject): Namespace | undefined {
  const callable = Array.isArray(tools) ? (tools as readonly Json[]).flatMap(memberOf) : [];
  return typeof name === 'string' && callable.length > 0 ? { name, tools: callable } : undefined;
}

function memberOf(value: Json): readonly (FunctionTool | CustomTool)[] {
  if (!isObject(value) || typeof value['name'] !== 'string' || value['name'] === '') return [];
  const { type, name, description, parameters, strict, format } = value;
  const described = typeof description === 'string' ? { description } : {};
  if (type === 'custom') return [{ type, name, ...described, ...(isObject(format) ? { format: nestedGrammar(format) } : {}) }];
  if (type !== 'function') return [];
  const schema = isObject(parameters) ? { parameters } : {};
  return [{ type, name, ...described, ...schema, ...(typeof strict === 'boolean' ? { strict } : {}) }];
}

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
    const [tool] = memberOf(value);
    return [tool ? { ...tool, inItem: true } : unread(value, field)];
  }
  const namespace = type === 'namespace' ? namespaceOf(value) : undefined;
  const search = kindOf(type) === webSearchName ? searchOf(value) : undefined;
  return [{ type: 'foreign', ...(search ? { search } : {}), ...(namespace ? { namespace } : {}), dialect, value, inItem: true }];
}

/** A declaration for the warnings of other wires. */
const unread = (value: Json | undefined, field: string): Tool => ({ type: 'foreign', field, dialect, value: isObject(value) ? value : {}, inItem: true });

const longestType = 100;

/** As many as a request may have beside the conversation. */
const mostTools = 1024;

/** https://platform.openai.com/docs/guides/tools-web-search */
function searchOf(value: JsonObject): WebSearch {
  const { filters, external_web_access: live } = value;
  const bounds: JsonObject = isObject(filters) ? filters : {};
  const others = termsOf(bounds, new Set(['allowed_domains', 'blocked_domains']), {}).others.map((name) => `filters.${name}`);
  const terms = { allowed: hosts(bounds['allowed_domains']), blocked: hosts(bounds['blocked_domains']), unopened: live === false ? true : undefined };
  const more = { near: nearOf(value['user_location']), contextSize: contextSizeOf(value['search_context_size']) };
  const search = termsOf(value, new Set(['type', 'filters', 'external_web_access', 'user_location', 'search_context_size']), { ...terms, ...more });
  return { ...search, others: [...search.others, ...others] };
}

/** A grammar in an object of its own, as on the chat wire and in core. */
function nestedGrammar(format: JsonObject): JsonObject {
  const { type, ...grammar } = format;
  return type === 'grammar' && !isObject(format['grammar']) ? { type, grammar } : format;
}

export function flatGrammar(format: JsonObject): JsonObject {
  const { grammar, ...others } = format;
  return isObject(grammar) ? { ...others, ...grammar } : format;
}

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
      const kind = kindOf(type);
      if (!tools.some((tool) => tool.type === 'foreign' && kindOf(tool.value['type']) === kind))
        throw invalid('tool_choice.type', 'names a tool that is not among the tools');
      // Where a function has the same name, the choice is ambiguous.
      const isSearch = kind === webSearchName && !tools.some((tool) => tool.type !== 'foreign' && tool.name === webSearchName);
      return isSearch ? { toolChoice: { type: 'tool', name: webSearchName } } : { carried: bounded(choice, 'tool_choice') };
    }
  }
}

/** `web_search_preview_2025_03_11` is a `web_search`. */
const kindOf = (type: unknown) =>
  textOf(type)
    .split('_preview', 1)[0]!
    .replace(/_\d{4}_\d\d_\d\d$/, '');

function allowedOf(mode: unknown, allowed: unknown, tools: readonly Tool[]): ToolChoice {
  if (mode !== 'auto' && mode !== 'required')
    throw mode === undefined ? missing('tool_choice.mode') : invalid('tool_choice.mode', 'must be "auto" or "required"');
  if (!Array.isArray(allowed) || allowed.length === 0) throw invalid('tool_choice.tools', 'must be an array of at least one tool');
  const names = allowed.flatMap((one: unknown, at) => {
    const field = `tool_choice.tools[${at}]`;
    if (!isObject(one)) throw invalid(field, 'must be an object');
    const { type, name, namespace } = one;
    if (type !== 'function' && type !== 'custom') return [];
    if (typeof name !== 'string') throw missing(`${field}.name`);
    return [declared({ name, namespace }, tools, `${field}.name`)];
  });
  return { type: 'allowed', names, mode };
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
