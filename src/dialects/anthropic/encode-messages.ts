import type { MediaPart, Part, TextPart, ThoughtPart, ToolCallPart, Turn } from '#core/conversation';
import { own, textOf, type Extra, type Json, type JsonObject } from '#core/json';
import { isTextType } from '#core/text-types';
import { foreignName } from '../shared/foreign-name.ts';
import { isLoss } from '../shared/lost-thoughts.ts';
import { writtenArguments } from '../shared/arguments.ts';
import { idOf } from './call-ids.ts';
import { typeIn } from '../shared/media-type.ts';
import { textIn } from '../shared/text-files.ts';
import { dialect } from './wire.ts';

/** What is noted while a conversation is encoded. */
export interface Notes {
  /** Collects what this wire does not support, as `field: reason`. */
  readonly ignored: Set<string>;
  /** The client spoke another wire. */
  readonly isTranslated: boolean;
  /** The first thing of the current message that could not be sent, as a sentence. */
  lost: string | undefined;
  /** Does any part of the request have a cache breakpoint? */
  hasBreakpoint: boolean;
}

export function encodeParts({ role, parts }: Turn, notes: Notes): JsonObject[] {
  switch (role) {
    case 'system':
      return systemBlocks(parts, notes);
    case 'user':
      return blocksOf(parts, notes);
    case 'model':
      return modelBlocks(parts, notes);
    default:
      return role satisfies never;
  }
}

/** A single plain text block is shortened to a string. */
export function shortened(blocks: readonly JsonObject[]): Json {
  const [only] = blocks;
  if (only === undefined) return '';
  return blocks.length === 1 && only['type'] === 'text' && Object.keys(only).length === 2 ? only['text']! : blocks;
}

/** The cache breakpoint of a message, a part or a tool, as this wire and clients of others write it. https://openrouter.ai/docs/features/prompt-caching */
export function cacheBreakpoint(extra: Extra | undefined, notes: Pick<Notes, 'hasBreakpoint'>): JsonObject {
  for (const name in extra) {
    const { cache_control } = extra[name]!;
    if (cache_control === undefined) continue;
    notes.hasBreakpoint = true;
    return { cache_control };
  }
  return {};
}

const uncacheable: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking']);

/** The blocks with the breakpoint of the message as a whole: on the last one that may have it. */
export function withBreakpoint(blocks: JsonObject[], breakpoint: JsonObject): JsonObject[] {
  const at = breakpoint['cache_control'] === undefined ? -1 : blocks.findLastIndex(({ type }) => !uncacheable.has(type));
  if (at >= 0) blocks[at] = { ...breakpoint, ...blocks[at] };
  return blocks;
}

function systemBlocks(parts: readonly Part[], notes: Notes): JsonObject[] {
  return parts.flatMap((part) => {
    if (part.type === 'text') return textBlocks(part, notes);
    if (part.type === 'foreign' && part.dialect === dialect) return [part.value];
    notes.ignored.add(`${part.type === 'media' ? part.kind : part.type}: the provider's API accepts none in a system message.`);
    return [];
  });
}

function blocksOf(parts: readonly Part[], notes: Notes): JsonObject[] {
  const { ignored } = notes;
  return parts.flatMap((part): readonly JsonObject[] => {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return textBlocks(part, notes);
      case 'media':
        return mediaBlocks(part, notes);
      case 'search':
        return []; // results of earlier searches are not sent
      case 'foreign':
        if (part.dialect === dialect) return [part.value];
        return leftOut(`${foreignName(part)}: only ${part.dialect} supports it.`, notes);
      case 'tool-result': {
        const content = shortened(blocksOf(part.parts, notes));
        return [
          {
            ...own(part.extra, dialect),
            ...cacheBreakpoint(part.extra, notes),
            type: 'tool_result',
            tool_use_id: idOf(part.id),
            ...(content === '' ? {} : { content }),
            ...(part.failed ? { is_error: true } : {}),
          },
        ];
      }
      case 'tool-call':
        return [{ ...cacheBreakpoint(part.extra, notes), ...callBlock(part, ignored) }];
      case 'thought': {
        const carried = own(part.extra, dialect);
        if (isSigned(part)) return [{ ...carried, type: 'thinking', thinking: part.text }];
        if (isLoss(part)) ignored.add('thoughts: the provider accepts only those that it signed.');
        return [];
      }
      default:
        return part satisfies never;
    }
  });
}

/** Has the provider signed the thought? The gateway writes an empty signature when it shows thoughts of another wire. */
const isSigned = ({ extra }: ThoughtPart): boolean => textOf(own(extra, dialect)['signature']) !== '';

/** Is it a thought that the provider takes back? */
export const isSignedThought = (part: Part): boolean =>
  part.type === 'thought' ? isSigned(part) : part.type === 'foreign' && part.dialect === dialect && part.value['type'] === 'redacted_thinking';

function modelBlocks(parts: readonly Part[], notes: Notes): JsonObject[] {
  const media = parts.filter((part) => part.type === 'media');
  for (const part of media) notes.ignored.add(`${part.kind}: the provider's API accepts none in an assistant message.`);
  return blocksOf(
    parts.filter((part) => part.type !== 'media'),
    notes,
  );
}

/** Notes what cannot be sent. */
function leftOut(reason: string, notes: Notes): readonly JsonObject[] {
  notes.ignored.add(reason);
  notes.lost ??= reason;
  return [];
}

/** The wire refuses text without anything but white space. */
function textBlocks({ text, extra }: Pick<TextPart, 'text' | 'extra'>, notes: Notes): readonly JsonObject[] {
  const { '.block': block, '.document': document, '.heading': isHeading, ...carried } = own(extra, dialect);
  if (isHeading) return []; // the document that follows has it
  if (block !== undefined) return [block as JsonObject];
  const breakpoint = cacheBreakpoint(extra, notes);
  if (document !== undefined) return [{ ...(document as JsonObject), ...breakpoint, type: 'document', source: plainText(text) }];
  return /\S/.test(text) ? [{ ...carried, ...breakpoint, type: 'text', text }] : [];
}

const plainText = (data: string): JsonObject => ({ type: 'text', media_type: 'text/plain', data });

function mediaBlocks(part: MediaPart, notes: Notes): readonly JsonObject[] {
  const { kind, base64, fileId, detail = 'auto', name } = part;
  if (kind !== 'image' && kind !== 'file') return leftOut(`${kind}: the provider's API does not support it.`, notes);
  if (fileId !== undefined && notes.isTranslated) return leftOut(`${kind}: the provider cannot access files that were uploaded to another API.`, notes);
  const source = sourceOf(part, notes);
  if (!source) return leftOut(`${kind}: the provider's API does not support ${shownType(part)}.`, notes);
  const carried = { ...own(part.extra, dialect), ...cacheBreakpoint(part.extra, notes) };
  if (detail !== 'auto') notes.ignored.add('detail: the provider chooses the level of detail itself.');
  const isImage = notes.isTranslated && base64 !== undefined ? imageTypes.has(textOf(source['media_type'])) && source['type'] === 'base64' : kind === 'image';
  if (isImage) return [{ ...carried, type: 'image', source }];
  return [{ ...carried, type: 'document', source, ...(name === undefined ? {} : { title: name }) }];
}

/** https://platform.claude.com/docs/en/build-with-claude/vision */
const imageTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const longestType = 100;

const shownType = ({ mediaType, url }: MediaPart) => (mediaType === undefined ? (url === undefined ? 'it' : 'this address') : mediaType.slice(0, longestType));

/** Files of text are sent as text, whatever their type. @returns undefined for a type that the wire does not have */
function sourceOf(part: MediaPart, { isTranslated }: Notes): JsonObject | undefined {
  const { kind, base64, mediaType, url, fileId } = part;
  if (fileId !== undefined) return { type: 'file', file_id: fileId };
  if (url !== undefined) return /^https?:/i.test(url) ? { type: 'url', url } : undefined;
  if (base64 === undefined) return undefined;
  if (!isTranslated && !(kind === 'file' && mediaType?.startsWith('text/')))
    return { type: 'base64', media_type: mediaType ?? (kind === 'image' ? 'image/png' : 'application/pdf'), data: base64 };
  const type = typeOf(part, base64);
  if (isTextType(type)) return plainText(textIn(base64, mediaType));
  return imageTypes.has(type) || type === 'application/pdf' ? { type: 'base64', media_type: type, data: base64 } : undefined;
}

/** The MIME type; a file without one is taken for a PDF, unless it begins like a ZIP archive, which documents of offices are. */
function typeOf(part: MediaPart, base64: string): string {
  const type = typeIn(part);
  if (type !== undefined) return type;
  if (part.kind === 'image') return 'image/png';
  return base64.startsWith('UEsD') ? 'application/zip' : 'application/pdf';
}

function callBlock({ id, name, json, custom, extra }: ToolCallPart, ignored: Set<string>): JsonObject {
  const input = custom ? undefined : writtenArguments(json);
  if (!input) ignored.add('tool call: arguments that are not a JSON object are wrapped in one as text.');
  return { ...own(extra, dialect), type: 'tool_use', id: idOf(id), name, input: input ?? { arguments: json } };
}
