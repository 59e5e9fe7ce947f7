import { isConversation, type Call } from './routed-call.ts';
import type { MediaPart, Part, Tool } from './conversation.ts';
import type { Caller } from './context.ts';
import { tokensOfCounts } from './price.ts';
import { isTextType } from './text-types.ts';

/** The tokens of a prompt beside its text: the marks around each turn, the opening of the answer, and media, which we do not count exactly. */
const fixed = { call: 3, turn: 4, tool: 4, media: { image: 765, audio: 1000, video: 5000, file: 2000 } } as const satisfies Record<
  string,
  number | Record<MediaPart['kind'], number>
>;

/** The sum of the tokens of some texts. The counter serves its users in turn, so it takes the owner, and stops when the signal is aborted. */
export type CountTokens = (texts: readonly string[], asking: { readonly owner: string; readonly signal: AbortSignal }) => Promise<number>;

/** The part of a context that counting needs: the owner and the signal. */
interface Asking {
  readonly caller: Pick<Caller, 'userId'>;
  readonly signal: AbortSignal;
}

/** The tokens of a call's prompt. The built-in model's usage and the ledger near the end of a balance share this function, so the two agree. */
export async function promptTokens(call: Call, count: CountTokens, { caller, signal }: Asking): Promise<number> {
  return fixedTokens(call) + (await count(callTexts(call), { owner: String(caller.userId), signal }));
}

/** The same, estimated at once. @param estimate of the tokens of some texts */
export const estimatedPrompt = (call: Call, estimate: (texts: readonly string[]) => number): number => fixedTokens(call) + estimate(callTexts(call));

/**
 * The size of a prompt as known without counting tokens: the tokens beside the text, and the text's bytes of UTF-8. A token has at least one byte, so the sum
 * is never less than `promptTokens`.
 */
export const promptSize = (call: Call): { readonly fixed: number; readonly bytes: number } => ({ fixed: fixedTokens(call), bytes: textBytes(call) });

function textBytes(call: Call): number {
  let bytes = 0;
  eachText(call, (text) => (bytes += Buffer.byteLength(text)));
  return bytes;
}

/** All texts of a call that a model reads: the turns, the tools, and the schema of the answer as JSON. */
export function callTexts(call: Call): readonly string[] {
  const texts: string[] = [];
  eachText(call, (text) => texts.push(text));
  return texts;
}

type Take = (text: string) => void;

/** Uses a callback instead of a generator: the bytes of every call are counted, and nested generators took 4 µs for it. */
function eachText(call: Call, take: Take): void {
  if (!isConversation(call)) return call.texts.forEach((text) => take(text));
  for (const turn of call.turns) eachOfParts(turn.parts, take);
  for (const tool of call.tools) eachOfTool(tool, take);
  if (call.output.type !== 'schema') return;
  take(call.output.name ?? '');
  take(call.output.description ?? '');
  take(JSON.stringify(call.output.schema));
}

function eachOfParts(parts: readonly Part[], take: Take): void {
  for (const part of parts) {
    switch (part.type) {
      case 'text':
      case 'refusal':
      case 'thought':
        take(part.text);
        break;
      case 'media':
        take(part.name ?? '');
        break;
      case 'tool-call':
        take(part.name);
        take(part.json);
        break;
      case 'tool-result':
        eachOfParts(part.parts, take);
        break;
      case 'search':
        break;
      case 'foreign':
        take(JSON.stringify(part.value));
        break;
      default:
        part satisfies never;
    }
  }
}

function eachOfTool(tool: Tool, take: Take): void {
  switch (tool.type) {
    case 'function':
    case 'custom': {
      take(tool.name);
      take(tool.description ?? '');
      const form = tool.type === 'function' ? tool.parameters : tool.format;
      if (form) take(JSON.stringify(form));
      break;
    }
    case 'foreign':
      take(JSON.stringify(tool.value));
      break;
    default:
      tool satisfies never;
  }
}

function fixedTokens(call: Call): number {
  if (!isConversation(call)) return call.tokens + (call.counts ? tokensOfCounts(call.counts).input : 0);
  let tokens = fixed.call + call.turns.length * fixed.turn + call.tools.length * fixed.tool;
  for (const { parts } of call.turns)
    for (const part of parts) {
      if (part.type === 'media') tokens += mediaTokens(part);
      else if (part.type === 'tool-result') for (const inner of part.parts) if (inner.type === 'media') tokens += mediaTokens(inner);
    }
  return tokens;
}

/** Characters of base64 per token of text: three bytes are four characters, and a token has about four bytes. */
const base64PerToken = 5;

/** Fixed estimates, since we cannot count a model's tokens of media. A text file in base64 counts by its length. */
function mediaTokens({ kind, mediaType = '', base64 = '' }: MediaPart): number {
  const least = fixed.media[kind];
  return kind === 'file' && isTextType(mediaType.split(';', 1)[0]!.trim().toLowerCase()) ? Math.max(least, Math.ceil(base64.length / base64PerToken)) : least;
}
