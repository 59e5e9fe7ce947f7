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

/** The tools that a call must use: the named one, or at least one if the call requires that. @throws Fault `invalid` for an unknown tool */
export function demandedUses(call: GenerateCall, message: string): Use[] {
  const choice = call.toolChoice;
  const usable = usableTools(call);
  if (choice?.type === 'tool') {
    const tool = usable.find((one) => chosenName(one) === choice.name);
    if (!tool) throw new Fault('invalid', `tool_choice names ${choice.name.slice(0, 100)}, which is not among the tools.`, { field: 'tool_choice' });
    return [use(tool, message, call, new Work(stepsOfAnswer))];
  }
  if (choice?.type !== 'required' && !(choice?.type === 'allowed' && choice.mode === 'required')) return [];
  if (usable.length === 0)
    throw new Fault('invalid', 'tool_choice asks for a tool, and there is none that the built-in model can call.', { field: 'tool_choice' });
  const named = namedUses(call, message);
  return named.length > 0 ? named : [use(usable[0]!, message, call, new Work(stepsOfAnswer))];
}

/** The tools named in a message, in the order of their mention. */
export function namedUses(call: GenerateCall, message: string): Use[] {
  if (call.toolChoice?.type === 'none') return [];
  const tools = usableTools(call).slice(0, mostTools);
  const named = mentioned(tools, message, (tool) => flattened(tool.name.slice(0, 200)));
  const mentions = named.length > 0 ? named : mentioned(tools, message, subjectOf);
  const chosen = mentions.slice(0, call.parallelToolCalls === false ? 1 : mostUses);
  const work = new Work(stepsOfAnswer);
  return chosen.map(({ tool, from }, at) => {
    const own = chosen.length === 1 ? message : message.slice(at === 0 ? 0 : from, chosen[at + 1]?.from);
    return use(tool, own, call, work);
  });
}

function usableTools(call: GenerateCall): Usable[] {
  const usable = call.tools.flatMap((tool): readonly Usable[] =>
    tool.type === 'foreign' ? (tool.namespace?.tools.map((one) => ({ ...one, of: tool })) ?? []) : [tool],
  );
  const choice = call.toolChoice;
  if (choice?.type !== 'allowed') return usable;
  const allowed = new Set(choice.names);
  return usable.filter((tool) => allowed.has(chosenName(tool)));
}

/** What a tool is called where the client chooses one. */
const chosenName = ({ name, of }: Usable): string => flatName({ name, namespace: of?.namespace?.name });

interface Mention {
  readonly tool: Usable;
  readonly from: number;
  readonly to: number;
}

/** The subject of a tool: that of `get_weather` is the weather, and a message about the weather names it if no tool is named in full. */
function subjectOf(tool: Usable): string {
  const name = flattened(tool.name.slice(0, 200));
  const subject = name.replace(/^(?:get|fetch|find|show|check|query|look ?up|retrieve)(?: (?:current|the))? /, '');
  return subject === name ? '' : subject;
}

/** A tool's name counts in one word (`get_weather`, `getWeather`) or in several (`get weather`). A longer name hides a shorter one within it. */
function mentioned(tools: readonly Usable[], message: string, nameOf: (tool: Usable) => string): Mention[] {
  const byName = new Map<string, Usable>();
  let longest = 1;
  for (const tool of tools) {
    const name = nameOf(tool);
    if (name === '' || byName.has(name)) continue;
    byName.set(name, tool);
    longest = Math.max(longest, Math.min(8, name.split(' ').length));
  }
  const words = [...message.slice(-(1 << 14)).matchAll(/[\p{L}\p{N}_]+(?:[-.][\p{L}\p{N}_]+)*/gu)];
  const start = Math.max(0, message.length - (1 << 14));
  const flat = words.map(([word]) => flattened(word));
  const found = new Map<Usable, Mention>();
  for (let at = 0; at < words.length; at++) {
    for (let count = Math.min(longest, words.length - at); count > 0; count--) {
      const tool = byName.get(flat.slice(at, at + count).join(' '));
      if (!tool) continue;
      const last = words[at + count - 1]!;
      if (!found.has(tool)) found.set(tool, { tool, from: start + words[at]!.index, to: start + last.index + last[0].length });
      at += count - 1;
      break;
    }
  }
  return [...found.values()].toSorted((a, b) => a.from - b.from);
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
