import type { GenerateCall } from '#core/call';
import type { CustomTool, ForeignTool, FunctionTool } from '#core/conversation';
import { Fault } from '#core/fault';
import type { Extra } from '#core/json';
import { flatName } from '#dialects/shared/tool-names';
import { findingsIn, flattened } from './findings.ts';
import { toRepeat } from './repeat.ts';
import { namesOf } from './schema/conforms.ts';
import { schemaValue, stepsOfAnswer } from './schema/value.ts';
import { Work } from './schema/work.ts';

export interface Use {
  readonly name: string;
  /** JSON of the arguments, or the free text of a custom tool. */
  readonly json: string;
  readonly custom: boolean;
  /** Says in which namespace the tool is, if in any. */
  readonly extra?: Extra;
}

/** A tool, and the namespace that it is in, if in any. */
type Usable = (FunctionTool | CustomTool) & { readonly of?: ForeignTool };

/** Most tools that are searched for in a message, and most that are called at once. */
const mostTools = 10_000;
const mostUses = 32;
/** Most UTF-16 units that tools look through of which the message says nothing, in sum. */
const mostShared = 1 << 16;

/** The tools that a call must use: the named one, or at least one if the call requires that. @throws Fault `invalid` for an unknown tool */
export function demandedUses(call: GenerateCall, message: string): Use[] {
  const choice = call.toolChoice;
  if (choice?.type === 'tool') {
    const tools = toolsOf(call);
    const tool = tools.find((one) => chosenName(one) === choice.name);
    if (!tool) throw new Fault('invalid', `tool_choice names ${choice.name.slice(0, 100)}, which is not among the tools.`, { field: 'tool_choice' });
    const part = partsOf(tools, message, (one) => one === tool).get(tool);
    return [use(tool, part ?? message, call, new Work(stepsOfAnswer))];
  }
  if (choice?.type !== 'required' && !(choice?.type === 'allowed' && choice.mode === 'required')) return [];
  const first = toolsOf(call).find(mayBeCalled(call));
  if (!first) throw new Fault('invalid', 'tool_choice asks for a tool, and there is none that the built-in model can call.', { field: 'tool_choice' });
  const named = namedUses(call, message);
  return named.length > 0 ? named : [use(first, message, call, new Work(stepsOfAnswer))];
}

/** The tools named in a message, in the order of their mention. */
export function namedUses(call: GenerateCall, message: string): Use[] {
  if (call.toolChoice?.type === 'none') return [];
  const parts = [...partsOf(toolsOf(call), message, mayBeCalled(call))];
  const work = new Work(stepsOfAnswer);
  return parts.slice(0, call.parallelToolCalls === false ? 1 : mostUses).map(([tool, part]) => use(tool, part, call, work));
}

const toolsOf = (call: GenerateCall): readonly Usable[] =>
  call.tools.flatMap((tool): readonly Usable[] => (tool.type === 'foreign' ? (tool.namespace?.tools.map((one) => ({ ...one, of: tool })) ?? []) : [tool]));

function mayBeCalled({ toolChoice: choice }: GenerateCall): (tool: Usable) => boolean {
  if (choice?.type !== 'allowed') return () => true;
  const allowed = new Set(choice.names);
  return (tool) => allowed.has(chosenName(tool));
}

/** What a tool is called where the client chooses one. */
const chosenName = ({ name, of }: Usable): string => flatName({ name, namespace: of?.namespace?.name });

/**
 * The part of a message that belongs to each tool that it names, from its name to that of another one; the whole message if it says nothing of the tool there.
 * @param isMeant whether a tool's part is wanted. The names of the others end a part too
 */
function partsOf(tools: readonly Usable[], message: string, isMeant: (tool: Usable) => boolean): Map<Usable, string> {
  const searched = [...tools.filter(isMeant), ...tools.filter((tool) => !isMeant(tool))].slice(0, mostTools);
  const parts = new Map<Usable, string>();
  for (const naming of namings) {
    const mentions = mentioned(naming(searched), message);
    const pieces = mentions.map(({ from }, at) => message.slice(at === 0 ? 0 : from, mentions[at + 1]?.from));
    const described = new Set<Usable>();
    for (const [at, { tool, from, to }] of mentions.entries()) {
      if (!isMeant(tool)) continue;
      const before = parts.get(tool);
      parts.set(tool, `${before === undefined ? '' : `${before}\n`}${pieces[at]!}`);
      if (says.test(message.slice(at === 0 ? 0 : from, from)) || says.test(message.slice(to, mentions[at + 1]?.from))) described.add(tool);
    }
    const others = [...parts.keys()].filter((tool) => !described.has(tool));
    const all = pieces.join('\n').slice(-Math.ceil(mostShared / others.length)); // no value goes on over a name
    for (const tool of others) parts.set(tool, all);
    if (parts.size > 0) break;
  }
  return parts;
}

/** A word that says something of a tool. */
const says =
  /(?<![\p{L}\p{N}_])(?!(?:please|now|first|next|call|use|run|try|and|or|then|also|both|again|the|tools?|functions?)(?![\p{L}\p{N}_]))[\p{L}\p{N}_]/iu;

/** `isVerb`: the name may be a mere verb of the message (`read`, `write`), and counts only where the message calls it a tool. */
type Naming = readonly (readonly [name: string, tool: Usable, isVerb?: boolean])[];

/** The names that tools have in messages. Only where a message has none of one kind, the next kind counts. */
const namings: readonly ((tools: readonly Usable[]) => Naming)[] = [
  (tools) => tools.flatMap((tool) => [nameFor(tool, tool.name), nameFor(tool, chosenName(tool))]),
  namesAtServers,
  (tools) => tools.map((tool) => nameFor(tool, subjectOf(tool))),
];

const nameFor = (tool: Usable, name: string) => [flattened(name.slice(0, 200)), tool] as const;

/** What a tool is called at its server: `lookup` for `files__lookup`. It counts if only one tool is called so, and not as a mere number. */
function namesAtServers(tools: readonly Usable[]): Naming {
  const names = tools.flatMap((tool) => {
    const [, name = ''] = /^.+?__(.+)/.exec(tool.name.slice(0, 200)) ?? [];
    return /\p{L}/u.test(name) ? [nameFor(tool, name)] : [];
  });
  const unique = [...Map.groupBy(names, ([name]) => name).values()].filter(({ length }) => length === 1).flat();
  return unique.map(([name, tool]) => [name, tool, !name.includes(' ')]);
}

/** Whether the message calls the word from `from` to `to` a tool: `call lookup`, `use the lookup`, `the tool lookup`, `the lookup tool`. */
function isCalledTool(message: string, from: number, to: number): boolean {
  const before = message.slice(Math.max(0, from - 30), from);
  if (/(?<![\p{L}\p{N}_])(?:call|use|run|tool:?)\s{1,4}(?:(?:an?|the)\s{1,4})?["'`“]?$/iu.test(before)) return true;
  return /(?<![\p{L}\p{N}_])the\s{1,4}["'`“]?$/iu.test(before) && /^["'`”]?\s{1,4}tool(?![\p{L}\p{N}_])/iu.test(message.slice(to, to + 12));
}

/** The subject of a tool: that of `get_weather` is the weather, and a message about the weather names it if no tool is named in full. */
function subjectOf(tool: Usable): string {
  const name = flattened(tool.name.slice(0, 200));
  const subject = name.replace(/^(?:get|fetch|find|show|check|query|look ?up|retrieve)(?: (?:current|the))? /, '');
  return subject === name ? '' : subject;
}

interface Mention {
  readonly tool: Usable;
  readonly from: number;
  readonly to: number;
}

/**
 * A tool's name counts in one word (`get_weather`, `getWeather`) or in several (`get weather`), and in one also behind a number (`6_get_weather`, as lists of MCP
 * tools have it). A longer name hides a shorter one within it. A mere verb counts behind a number, or where it is called a tool.
 */
function mentioned(naming: Naming, message: string): Mention[] {
  const byName = new Map<string, { readonly tool: Usable; readonly isVerb: boolean }>();
  let longest = 1;
  for (const [name, tool, isVerb = false] of naming) {
    if (name === '' || byName.has(name)) continue;
    byName.set(name, { tool, isVerb });
    longest = Math.max(longest, Math.min(8, name.split(' ').length));
  }
  const start = Math.max(0, message.length - (1 << 14));
  const words = [...message.slice(start).matchAll(/[\p{L}\p{N}_]+(?:[-.][\p{L}\p{N}_]+)*/gu)];
  const flat = words.map(([word]) => flattened(word));
  const found: Mention[] = [];
  for (let at = 0; at < words.length; at++) {
    for (let count = Math.min(longest, words.length - at); count > 0; count--) {
      const name = flat.slice(at, at + count).join(' ');
      const bare = byName.get(name);
      const named = bare ?? (count === 1 ? byName.get(name.replace(/^\d{1,15} /, '')) : undefined);
      if (!named) continue;
      const last = words[at + count - 1]!;
      const [from, to] = [start + words[at]!.index, start + last.index + last[0].length];
      if (bare?.isVerb && !isCalledTool(message, from, to)) continue;
      if (found.at(-1)?.tool !== named.tool) found.push({ tool: named.tool, from, to });
      at += count - 1;
      break;
    }
  }
  return found;
}

function use(tool: Usable, message: string, call: GenerateCall, work: Work): Use {
  const { name, of } = tool;
  const used = { name, ...(of?.namespace ? { extra: { [of.dialect]: { namespace: of.namespace.name } } } : {}) };
  if (tool.type === 'custom') return { ...used, json: freeText(name, message), custom: true };
  const { parameters } = tool;
  if (!parameters) return { ...used, json: '{}', custom: false };
  const field = of ? `tools[${call.tools.indexOf(of)}]` : `tools[${call.tools.indexOf(tool)}].parameters`;
  const schema = 'type' in parameters ? parameters : { type: 'object', ...parameters };
  return {
    ...used,
    json: JSON.stringify(schemaValue(schema, { findings: findingsIn(message, namesOf(schema)), question: message, prose: () => message }, field, work)),
    custom: false,
  };
}

/**
 * The input that a message gives for a tool: the text it asks to repeat, else the text after the tool's name and a colon or in quotation marks, else the
 * message.
 */
function freeText(name: string, message: string): string {
  const repeated = toRepeat(message);
  if (repeated !== undefined) return repeated;
  const at = message.toLowerCase().indexOf(name.toLowerCase());
  const behind = at < 0 ? '' : message.slice(at + name.length);
  const marked = /^[^\n:]{0,40}:\s{0,8}(?=\S)/.exec(behind);
  if (marked) return behind.slice(marked[0].length).trim();
  return findingsIn(behind).text(false, () => true) ?? message.trim();
}
