import { withJsonTexts, withStrings } from '#kit/json-texts';
import type { GenerateCall } from '#model/call';
import type { Part, Tool, Turn } from '#model/conversation';

type Each = (text: string) => string;

/** Every text of a call that a model reads: what was said, tool calls and results, thoughts, the tools and the schema of the answer, and the strings of fields that only one dialect knows. */
export function textsOf(call: GenerateCall): readonly string[] {
  return collected((each) => void withEach(call, each));
}

/** The call with other texts, in the order of `textsOf`. */
export function withTexts(call: GenerateCall, texts: readonly string[]): GenerateCall {
  return withEach(call, inTurn(texts));
}

/** All texts that something goes through. */
export function collected(goThrough: (each: Each) => void): readonly string[] {
  const texts: string[] = [];
  goThrough((text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

/** Gives one text after the other in the place of what was there. */
export function inTurn(texts: readonly string[]): Each {
  let at = 0;
  return () => texts[at++]!;
}

/** The texts of a turn's neighbouring parts as one: what is split over parts is read as one. */
export function runsOf({ turns }: GenerateCall): readonly string[] {
  return turns.flatMap(({ parts }) =>
    [runOf(parts), ...parts.map((part) => (part.type === 'tool-result' ? runOf(part.parts) : ''))].filter((run) => run !== ''),
  );
}

function runOf(parts: readonly Part[]): string {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length > 1 ? texts.join('') : '';
}

/** JSON where it is JSON, else plain text. */
export const withJson = (json: string, each: Each): string => withJsonTexts(json, each) ?? each(json);

function withEach(call: GenerateCall, each: Each): GenerateCall {
  const turns = call.turns.map((turn): Turn => ({ ...turn, parts: turn.parts.map((part) => partWith(part, each)) }));
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

/** A part with other texts. Where a text changed, nothing says any more which of its stretches rest on what. */
export function partWith<Kind extends Part>(part: Kind, each: Each): Kind;
export function partWith(part: Part, each: Each): Part {
  switch (part.type) {
    case 'text': {
      const { citations, ...rest } = part;
      const text = each(part.text);
      const cited = citations && withStrings(citations, each);
      return { ...rest, text, ...(cited && text === part.text ? { citations: cited } : {}) };
    }
    case 'refusal':
      return { ...part, text: each(part.text) };
    case 'thought': {
      const text = each(part.text);
      return text === part.text ? part : { type: 'thought', text }; // its signature stood for other words
    }
    case 'media':
      return part.name === undefined ? part : { ...part, name: each(part.name) };
    case 'tool-call':
      return { ...part, json: part.custom ? each(part.json) : withJson(part.json, each) };
    case 'tool-result':
      return { ...part, parts: part.parts.map((inner) => partWith(inner, each)) };
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
      return {
        ...tool,
        ...(description === undefined ? {} : { description: each(description) }),
        ...(parameters ? { parameters: withStrings(parameters, each) } : {}),
      };
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
