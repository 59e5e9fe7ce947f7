import { isConversation, type Call, type GenerateCall } from './call.ts';
import type { MediaPart, Part, Tool } from './conversation.ts';

/** What a prompt costs beside its text, in tokens: the marks around each turn, the opening of the answer, and what is neither text nor counted by anybody here. */
const fixed = { call: 3, turn: 4, tool: 4, media: { image: 765, audio: 1000, video: 5000, file: 2000 } } as const satisfies Record<
  string,
  number | Record<MediaPart['kind'], number>
>;

/**
 * The tokens of a call's prompt. One function for the built-in model's usage and for the ledger near the edge of a balance, so that the two agree.
 *
 * @param count the sum of the tokens of some texts
 */
export async function promptTokens(call: Call, count: (texts: Iterable<string>) => Promise<number>): Promise<number> {
  return fixedTokens(call) + (await count(callTexts(call)));
}

/**
 * What is known of a prompt without counting its tokens: those beside the text, and the text's bytes of UTF-8. A token has at least one byte, so that
 * the sum is never less than `promptTokens`.
 */
export function promptSize(call: Call): { readonly fixed: number; readonly bytes: number } {
  return { fixed: fixedTokens(call), bytes: textBytes(call) };
}

function textBytes(call: Call): number {
  let bytes = 0;
  for (const text of callTexts(call)) bytes += Buffer.byteLength(text);
  return bytes;
}

/** Everything of a call that a model reads as text: what was said, the tools and the schema of the answer, as JSON. */
export function* callTexts(call: Call): Generator<string> {
  if (isConversation(call)) yield* conversationTexts(call);
  else yield* call.texts;
}

function* conversationTexts(call: GenerateCall): Generator<string> {
  for (const turn of call.turns) yield* partTexts(turn.parts);
  for (const tool of call.tools) yield* toolTexts(tool);
  if (call.output.type !== 'schema') return;
  yield call.output.name ?? '';
  yield call.output.description ?? '';
  yield JSON.stringify(call.output.schema);
}

function* partTexts(parts: readonly Part[]): Generator<string> {
  for (const part of parts) {
    switch (part.type) {
      case 'text':
      case 'refusal':
      case 'thought':
        yield part.text;
        break;
      case 'media':
        yield part.name ?? '';
        break;
      case 'tool-call':
        yield part.name;
        yield part.json;
        break;
      case 'tool-result':
        yield* partTexts(part.parts);
        break;
      case 'search':
        break;
      case 'foreign':
        yield JSON.stringify(part.value);
        break;
      default:
        part satisfies never;
    }
  }
}

function* toolTexts(tool: Tool): Generator<string> {
  switch (tool.type) {
    case 'function':
    case 'custom': {
      yield tool.name;
      yield tool.description ?? '';
      const form = tool.type === 'function' ? tool.parameters : tool.format;
      if (form) yield JSON.stringify(form);
      break;
    }
    case 'foreign':
      yield JSON.stringify(tool.value);
      break;
    default:
      tool satisfies never;
  }
}

function fixedTokens(call: Call): number {
  if (!isConversation(call)) return call.tokens;
  let tokens = fixed.call + call.turns.length * fixed.turn + call.tools.length * fixed.tool;
  for (const { parts } of call.turns)
    for (const part of parts) {
      if (part.type === 'media') tokens += fixed.media[part.kind];
      else if (part.type === 'tool-result') for (const inner of part.parts) if (inner.type === 'media') tokens += fixed.media[inner.kind];
    }
  return tokens;
}
