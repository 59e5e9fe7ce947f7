import { type GenerateCall, isTranslated } from '#core/call';
import type { CustomTool, FunctionTool, Namespace, Part, Tool, ToolCallPart, ToolChoice, Turn } from '#core/conversation';
import { type Extra, isObject, type JsonObject, textOf } from '#core/json';
import type { Fitted } from './fitting.ts';
import { type SchemaBudget, schemaBudget } from './schema-budget.ts';
import { flatName, isFitName, type NameRule, ToolNames, type ToolRef } from './tool-names.ts';
import { ToolRestore } from './tool-restore.ts';

/** What a wire, or a model, takes of tools. */
export interface ToolRules {
  readonly dialect: string;
  readonly names: NameRule;
  /** Does it have tools that take free text? */
  readonly custom: boolean;
  readonly namespaces: boolean;
  /** Characters of a description at most; absent: any number. */
  readonly longestDescription?: number;
  /** A function as it takes it: the same object where nothing has to change. The budget is that of all tools of a call. */
  fitted(tool: FunctionTool, ignored: Set<string>, budget: SchemaBudget): FunctionTool;
}

/**
 * Fits the tools of a call, and those named in its history, to a wire: names that it takes, functions in place of tools of free text and of namespaces. What a
 * client of the wire itself wrote keeps its names and schemas.
 * @returns undefined where everything can go as it is
 */
export function fittedTools(call: GenerateCall, rules: ToolRules): Fitted | undefined {
  const translated = isTranslated(call, rules.dialect);
  if (!isUnfit(call, rules, translated)) return undefined;
  const fitting = new ToolFitting(rules, translated);
  return fitting.fitted(call);
}

function isUnfit({ tools, turns }: GenerateCall, rules: ToolRules, translated: boolean): boolean {
  if (translated && hasRepeated(tools)) return true;
  const { names, custom, namespaces } = rules;
  const budget = schemaBudget();
  const unheard = new Set<string>();
  const isLong = (name: string) => translated && !isFitName(name, names);
  for (const tool of tools) {
    if (tool.type === 'foreign' ? tool.namespace !== undefined && !namespaces : isLong(tool.name) || (tool.type === 'custom' && !custom)) return true;
    if (tool.type === 'function' && translated && rules.fitted(tool, unheard, budget) !== tool) return true;
  }
  for (const { role, parts } of turns) {
    if (role !== 'model') continue;
    for (const part of parts) {
      if (part.type !== 'tool-call') continue;
      if ((part.custom && !custom) || isLong(part.name) || (!namespaces && namespaceOf(part.extra))) return true;
    }
  }
  return false;
}

/** Is a tool declared more than once? Claude and Gemini refuse that: anthropics/claude-code#10687 */
function hasRepeated(tools: readonly Tool[]): boolean {
  const names = tools.flatMap((tool) => (tool.type === 'foreign' ? [] : [tool.name]));
  return new Set(names).size < names.length;
}

/** The tools with the last declaration of each name. */
function withoutRepeated(tools: readonly Tool[]): readonly Tool[] {
  const last = new Map(tools.flatMap((tool) => (tool.type === 'foreign' ? [] : [[tool.name, tool] as const])));
  return tools.filter((tool) => tool.type === 'foreign' || last.get(tool.name) === tool);
}

class ToolFitting {
  readonly #rules: ToolRules;
  readonly #translated: boolean;
  readonly #budget = schemaBudget();
  readonly #names: ToolNames;
  readonly #ignored = new Set<string>();
  /** The tools of namespaces, by what they are called where there are none. */
  readonly #members = new Map<string, ToolRef>();
  /** Names on the wire of functions that stand for tools of free text. */
  readonly #standIns = new Set<string>();
  /** Whose notes name a namespace. */
  #notes = '';
  #renamed = false;

  constructor(rules: ToolRules, translated: boolean) {
    this.#rules = rules;
    this.#translated = translated;
    this.#names = new ToolNames(rules.names);
  }

  fitted(call: GenerateCall): Fitted {
    for (const tool of call.tools) if (tool.type !== 'foreign' && isFitName(tool.name, this.#rules.names)) this.#names.of(tool);
    const isRepeated = this.#translated && hasRepeated(call.tools);
    if (isRepeated) this.#ignored.add('tools: several tools have the same name; only the last of them was sent.');
    const tools = (isRepeated ? withoutRepeated(call.tools) : call.tools).flatMap((tool) => this.#tool(tool));
    const turns = call.turns.map((turn) => this.#turn(turn));
    const { toolChoice: choice } = call;
    const toolChoice = choice && this.#choice(choice);
    const restorer = this.#renamed ? new ToolRestore({ names: this.#names, standIns: this.#standIns, notes: this.#notes }) : undefined;
    return {
      call: { ...call, tools, turns, ...(toolChoice ? { toolChoice } : {}) },
      ...(this.#ignored.size > 0 ? { ignored: [...this.#ignored] } : {}),
      ...(restorer ? { restore: (events) => restorer.take(events) } : {}),
    };
  }

  #name(ref: ToolRef): string {
    const name = this.#names.of(ref);
    this.#renamed ||= name !== ref.name;
    return name;
  }

  #tool(tool: Tool): readonly Tool[] {
    if (tool.type !== 'foreign') return [this.#callable(tool)];
    if (!tool.namespace || this.#rules.namespaces) return [tool];
    const { namespace } = tool;
    this.#notes = tool.dialect;
    return namespace.tools.map((one) => {
      const ref = { namespace: namespace.name, name: one.name };
      this.#members.set(flatName(ref), ref);
      return this.#described(this.#callable(one, namespace.name), namespace);
    });
  }

  #described(one: FunctionTool | CustomTool, namespace: Namespace): FunctionTool | CustomTool {
    const { tool, isCut } = described(one, namespace, this.#rules.longestDescription);
    if (isCut)
      this.#ignored.add(`tools: the description of the namespace ${namespace.name.slice(0, 100)} is too long to be told whole with each of its tools.`);
    return tool;
  }

  #callable(tool: FunctionTool | CustomTool, namespace?: string): FunctionTool | CustomTool {
    const name = this.#name(namespace === undefined ? { name: tool.name } : { name: tool.name, namespace });
    if (tool.type === 'custom' && this.#rules.custom) return { ...tool, name };
    if (tool.type === 'custom') {
      this.#standIns.add(name);
      this.#renamed = true;
    }
    const one: FunctionTool = tool.type === 'custom' ? standIn(tool, name) : name === tool.name ? tool : { ...tool, name };
    return this.#translated ? this.#rules.fitted(one, this.#ignored, this.#budget) : one;
  }

  #choice(choice: ToolChoice): ToolChoice {
    const named = (name: string) => this.#name(this.#members.get(name) ?? { name });
    switch (choice.type) {
      case 'auto':
      case 'none':
      case 'required':
        return choice;
      case 'tool':
        return { ...choice, name: named(choice.name) };
      case 'allowed':
        return { ...choice, names: choice.names.map(named) };
      default:
        return choice satisfies never;
    }
  }

  #turn(turn: Turn): Turn {
    const parts = turn.parts.map((part) => this.#part(part));
    return parts.every((part, at) => part === turn.parts[at]) ? turn : { ...turn, parts };
  }

  #part(part: Part): Part {
    return part.type === 'tool-call' ? this.#call(part) : part;
  }

  #call(part: ToolCallPart): ToolCallPart {
    const namespace = this.#rules.namespaces ? undefined : namespaceOf(part.extra);
    const { custom, extra, ...call } = part;
    const name = this.#name(namespace === undefined ? { name: part.name } : { name: part.name, namespace });
    const isStandIn = custom === true && !this.#rules.custom;
    if (name === part.name && namespace === undefined && !isStandIn) return part;
    const others = namespace === undefined ? extra : withoutNamespace(extra);
    return {
      ...call,
      name,
      ...(isStandIn ? { json: JSON.stringify({ [inputName]: part.json }) } : custom ? { custom } : {}),
      ...(others ? { extra: others } : {}),
    };
  }
}

/** The only argument of a function that stands for a tool of free text. */
const inputName = 'input';

function standIn({ description, format, extra }: CustomTool, name: string): FunctionTool {
  const told = [description ?? '', grammarOf(format)].filter((one) => one !== '').join('\n\n');
  const input = { type: 'string', description: 'All of the input of the tool, as plain text.' };
  return {
    type: 'function',
    name,
    ...(told === '' ? {} : { description: told }),
    parameters: { type: 'object', properties: { [inputName]: input }, required: [inputName], additionalProperties: false },
    ...(extra === undefined ? {} : { extra }),
  };
}

function grammarOf(format: JsonObject | undefined): string {
  if (format?.['type'] !== 'grammar') return '';
  const { syntax, definition } = isObject(format['grammar']) ? format['grammar'] : format;
  return `The input has to match this ${textOf(syntax)} grammar:\n${textOf(definition)}`;
}

/** The namespace of a call's tool, as a dialect notes it. */
function namespaceOf(extra: Extra | undefined): string | undefined {
  for (const dialect in extra) {
    const namespace = extra[dialect]!['namespace'];
    if (typeof namespace === 'string') return namespace;
  }
  return undefined;
}

function withoutNamespace(extra: Extra | undefined): Extra | undefined {
  const left = Object.entries(extra ?? {}).map(([dialect, { namespace: _, ...others }]) => [dialect, others] as const);
  return Object.fromEntries(left);
}

/** Most characters of a namespace's description that each of its tools has: there may be many tools. */
const mostTold = 1024;
/** Fewer characters say nothing. */
const fewestTold = 20;

interface Described<Any> {
  readonly tool: Any;
  readonly isCut: boolean;
}

/**
 * A tool of a namespace with the namespace's description before its own, for a wire on which nothing else would tell the model of it.
 * @param longest characters that the wire accepts in a description; one that is longer already is the client's own affair
 */
function described<Any extends FunctionTool | CustomTool>(tool: Any, { description: whole = '' }: Namespace, longest = Infinity): Described<Any> {
  if (whole === '') return { tool, isCut: false };
  const { description: own = '' } = tool;
  const between = own === '' ? '' : '\n\n';
  const room = own.length > longest ? mostTold : Math.min(mostTold, longest - own.length - between.length);
  const told = whole.length <= room ? whole : room < fewestTold ? '' : `${whole.slice(0, room - 1).toWellFormed()}…`;
  return { tool: told === '' ? tool : { ...tool, description: told + between + own }, isCut: told !== whole };
}
