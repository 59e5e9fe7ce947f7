import { withJsonTexts, withStrings } from '#kit/json/texts';
import type { GenerateCall } from '#core/call';
import type { Citation, Part, Tool, Turn } from '#core/conversation';
import { Fault } from '#core/fault';
import { isObject, type Extra } from '#core/json';

import { mostCharacters, tooLarge, withFileText } from './files.ts';

type Each = (text: string) => string;

/**
 * All texts of a call that a model reads: messages, text files, tool calls and results, thoughts, the tools and the schema of the answer, and the strings of
 * fields that only one dialect knows.
 */
export function textsOf(call: GenerateCall): readonly string[] {
  let characters = 0;
  return collected((each) => {
    const counted: Each = (text) => {
      if ((characters += text.length) > mostCharacters) throw tooLarge();
      return each(text);
    };
    withEach(call, counted);
  });
}

/** The call with its texts replaced, in the order of `textsOf`. */
export const withTexts = (call: GenerateCall, texts: readonly string[]): GenerateCall => withEach(call, inTurn(texts));

/** Most texts per check: extracting this number from JSON and copying them to a thread takes 20 ms. */
const mostTexts = 30_000;

/** The texts that a traversal visits. @throws Fault `too-large` for too many */
export function collected(goThrough: (each: Each) => void): readonly string[] {
  const texts: string[] = [];
  goThrough((text) => {
    if (texts.push(text) > mostTexts) throw new Fault('too-large', `A check applies to this request, and there are more than ${mostTexts} texts to check.`);
    return text;
  });
  return texts;
}

/** Replaces each visited text by the next of these. */
export function inTurn(texts: readonly string[]): Each {
  let at = 0;
  return () => texts[at++]!;
}

/**
 * The adjacent text parts of each turn joined, since a model reads a split text as one; and the names that a model reads, which are checked but not masked:
 * another name would be another tool.
 */
export function runsOf({ turns, tools, output }: GenerateCall): readonly string[] {
  const runs = turns.flatMap(({ parts }) =>
    [runOf(parts), ...parts.map((part) => (part.type === 'tool-result' ? runOf(part.parts) : ''))].filter((run) => run !== ''),
  );
  const names = new Set<string>();
  for (const { parts } of turns) for (const part of parts) if (part.type === 'tool-call') names.add(part.name);
  for (const tool of tools) {
    if (tool.type !== 'foreign') names.add(tool.name);
    addProperties(tool, names);
  }
  if (output.type === 'schema') {
    if (output.name !== undefined) names.add(output.name);
    addProperties(output.schema, names);
  }
  return [...runs, ...names];
}

/** Adds the names of the properties and definitions of all schemas in a value. */
function addProperties(value: unknown, names: Set<string>): void {
  if (value === null || typeof value !== 'object') return;
  for (const [name, inner] of Object.entries(value)) {
    if (naming.has(name) && isObject(inner)) for (const named of Object.keys(inner)) names.add(named);
    addProperties(inner, names);
  }
}

const naming = new Set(['properties', 'patternProperties', '$defs', 'definitions']);

function runOf(parts: readonly Part[]): string {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length > 1 ? texts.join('') : '';
}

/** Treats the text as JSON if it is valid JSON, else as plain text. */
export const withJson = (json: string, each: Each): string => withJsonTexts(json, each) ?? each(json);

function withEach(call: GenerateCall, each: Each): GenerateCall {
  const turns = call.turns.map((turn): Turn => carriedWith({ ...turn, parts: turn.parts.map((part) => partWith(part, each)) }, each));
  const tools = call.tools.map((tool) => toolWith(tool, each));
  const extra = withStrings(call.extra, each);
  const { output } = call;
  if (output.type !== 'schema') return { ...call, turns, tools, extra };
  const { description, schema } = output;
  return {
    ...call,
    turns,
    tools,
    extra,
    output: { ...output, ...(description === undefined ? {} : { description: each(description) }), schema: withStrings(schema, each) },
  };
}

/** Replaces the strings of carried fields and of citations. */
export function carriedWith<Kind extends Carrying>(one: Kind, each: Each): Kind {
  const { extra, citations } = one;
  const carried = extra && withStrings(extra, (text) => (marks.has(text) ? text : each(text)));
  const cited = citations && withStrings(citations, each);
  if (carried === extra && cited === citations) return one;
  return { ...one, ...(carried ? { extra: carried } : {}), ...(cited ? { citations: cited } : {}) };
}

/** Constant values of carried fields, which are not checked: roles, kinds and service tiers. */
const marks: ReadonlySet<string> = new Set([
  'developer',
  'tool',
  'function',
  'reasoning',
  'reasoning_content',
  'ephemeral',
  'default',
  'priority',
  'flex',
  'scale',
  'on_demand',
]);

interface Carrying {
  readonly extra?: Extra | undefined;
  readonly citations?: readonly Citation[] | undefined;
}

/** A part with its texts replaced. A changed text loses its citations, whose offsets no longer match. */
function partWith<Kind extends Part>(part: Kind, each: Each): Kind;
function partWith(part: Part, each: Each): Part {
  switch (part.type) {
    case 'text': {
      const text = each(part.text);
      const { citations, ...rest } = carriedWith(part, each);
      return { ...rest, text, ...(citations && text === part.text ? { citations } : {}) };
    }
    case 'refusal':
      return { ...part, text: each(part.text) };
    case 'thought': {
      const text = each(part.text);
      const carried = carriedWith(part, each);
      return text === part.text ? carried : { type: 'thought', text }; // the signature is that of the old text
    }
    case 'media': {
      const read = withFileText(part, each);
      return carriedWith(read.name === undefined ? read : { ...read, name: each(read.name) }, each);
    }
    case 'tool-call':
      return carriedWith({ ...part, json: part.custom ? each(part.json) : withJson(part.json, each) }, each);
    case 'tool-result':
      return carriedWith({ ...part, parts: part.parts.map((inner) => partWith(inner, each)) }, each);
    case 'foreign':
      return { ...part, value: withStrings(part.value, each) };
    case 'search':
      return { ...part, query: each(part.query), sources: withStrings(part.sources, each) };
    default:
      return part satisfies never;
  }
}

function toolWith(tool: Tool, each: Each): Tool {
  switch (tool.type) {
    case 'function': {
      const { description, parameters } = tool;
      const read = {
        ...tool,
        ...(description === undefined ? {} : { description: each(description) }),
        ...(parameters ? { parameters: withStrings(parameters, each) } : {}),
      };
      return carriedWith(read, each);
    }
    case 'custom': {
      const { description, format } = tool;
      return { ...tool, ...(description === undefined ? {} : { description: each(description) }), ...(format ? { format: withStrings(format, each) } : {}) };
    }
    case 'foreign':
      return { ...tool, value: withStrings(tool.value, each) };
    default:
      return tool satisfies never;
  }
}
