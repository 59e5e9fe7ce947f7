import { isConversation, type Call } from './routed-call.ts';
import type { MediaPart, Part, Tool } from './conversation.ts';
import type { Caller } from './context.ts';
import { tokensOfCounts } from './price.ts';
import { isTextType } from './text-types.ts';

/** What a prompt costs beside its text, in tokens: the marks around each turn, the opening of the answer, and what is neither text nor counted by anybody here. */
const fixed = { call: 3, turn: 4, tool: 4, media: { image: 765, audio: 1000, video: 5000, file: 2000 } } as const satisfies Record<
  string,
  number | Record<MediaPart['kind'], number>
>;

/** The sum of the tokens of some texts. What counts serves its users in turn: it is told for whom, and ends when the signal is aborted. */
export type CountTokens = (texts: readonly string[], asking: { readonly owner: string; readonly signal: AbortSignal }) => Promise<number>;

/** Of a context, whom the work is for and until when. */
interface Asking {
  readonly caller: Pick<Caller, 'userId'>;
  readonly signal: AbortSignal;
}

/** The tokens of a call's prompt. One function for the built-in model's usage and for the ledger near the edge of a balance, so that the two agree. */
export async function promptTokens(call: Call, count: CountTokens, { caller, signal }: Asking): Promise<number> {
  return fixedTokens(call) + (await count(callTexts(call), { owner: String(caller.userId), signal }));
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
  eachText(call, (text) => (bytes += Buffer.byteLength(text)));
  return bytes;
}

/** Everything of a call that a model reads as text: what was said, the tools and the schema of the answer, as JSON. */
export function callTexts(call: Call): readonly string[] {
  const texts: string[] = [];
  eachText(call, (text) => texts.push(text));
  return texts;
}

type Take = (text: string) => void;

/** Calls back, and is no generator: each call has its bytes counted, and generators in generators took 4 µs for it. */
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

/** Characters of base64 that make a token of text: three bytes are four characters, and a token has about four bytes. */
const base64PerToken = 5;

/** Nobody counts what a model makes of media. A text file that comes in base64 costs by its length. */
function mediaTokens({ kind, mediaType = '', base64 = '' }: MediaPart): number {
  const least = fixed.media[kind];
  return kind === 'file' && isTextType(mediaType.split(';', 1)[0]!.trim().toLowerCase()) ? Math.max(least, Math.ceil(base64.length / base64PerToken)) : least;
}
