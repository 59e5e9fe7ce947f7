import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';
import { isTextType } from '#core/text-types';
import { contentTypeIn, decoded } from '#kit/text/content-type';

/** A call whose text files are text, for a wire that has no files of text. The same call where there are none. */
export function textFilesAsText<Call extends Pick<GenerateCall, 'turns'>>(call: Call): Call {
  if (!call.turns.some(({ parts }) => parts.some(hasTextFile))) return call;
  return { ...call, turns: call.turns.map((turn) => (turn.parts.some(hasTextFile) ? { ...turn, parts: turn.parts.map(asText) } : turn)) };
}

const hasTextFile = (part: Part): boolean => (part.type === 'tool-result' ? part.parts.some(isTextFile) : isTextFile(part));

const isTextFile = (part: Part): boolean =>
  part.type === 'media' && part.kind === 'file' && part.base64 !== undefined && isTextType((part.mediaType ?? '').split(';', 1)[0]!.trim().toLowerCase());

/** The text of a file, by the charset that its type names. Longer texts, which fit no model, are read as UTF-8: other charsets can take much more time. */
export function textIn(base64: string, mediaType = ''): string {
  const bytes = Buffer.from(base64, 'base64');
  const { charset } = contentTypeIn(mediaType);
  return charset === undefined || bytes.length > longest ? bytes.toString('utf8') : decoded(bytes, charset);
}

/** Bytes. */
const longest = 4_194_304;

function asText<Any extends Part>(part: Any): Any | { readonly type: 'text'; readonly text: string } {
  if (part.type === 'tool-result') return { ...part, parts: part.parts.map(asText) };
  if (part.type !== 'media' || part.base64 === undefined || !isTextFile(part)) return part;
  const text = textIn(part.base64, part.mediaType);
  return { type: 'text', text: part.name === undefined ? text : `${part.name}:\n${text}` };
}
