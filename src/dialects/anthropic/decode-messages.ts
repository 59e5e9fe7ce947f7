import type { ForeignPart, MediaPart, Part, TextPart, ThoughtPart, Turn } from '#core/conversation';
import { textAsWritten } from '#kit/json/numbers';
import { isObject, rest, type Json, type JsonObject } from '#core/json';
import { isToken, tokenExtra } from '#core/thoughts';
import { invalid, missing } from '#core/fault';
import { base64At, bounded, isGiven } from '../shared/read-fields.ts';
import { carriedBlock, headingOf, shownMembers } from './carried-block.ts';
import { isOurSearch } from './encode-answer.ts';
import { dialect, type WireBlock, type WireMessage, carriedAs } from './wire.ts';

/** Messages → turns. Members of a message or a block that are not understood are carried on its turn or part. */
export function turnsOf(messages: readonly WireMessage[]): readonly Turn[] {
  const calls = new Set<string>(); // ids of the tool calls so far
  return messages.map(({ content, ...others }, at): Turn => {
    const field = `messages[${at}].content`;
    const carried = carriedAs(rest(others, messageMembers));
    // A system message may do no more than change the configuration of the output.
    const mayBeEmpty = others.role === 'system' && carried.extra !== undefined;
    if (content === undefined && !mayBeEmpty) throw missing(field);
    if (content?.length === 0 && Array.isArray(content) && !mayBeEmpty) throw invalid(field, 'must not be empty');
    const message = { ...others, content: content ?? [] };
    switch (message.role) {
      case 'system':
        return {
          role: 'system',
          parts: partsOf(message, (block, place) => systemPart(block, place), field),
          ...carriedAs({ '.message': content === undefined ? 'bare' : true, ...carried.extra?.[dialect] }),
        };
      case 'user':
        return { role: 'user', parts: partsOf(message, (block, place) => userPart(block, place, calls), field), ...carried };
      case 'assistant':
        return { role: 'model', parts: partsOf(message, (block, place) => modelPart(block, place, calls), field), ...carried };
      default:
        return message.role satisfies never;
    }
  });
}

const messageMembers = new Set(['role', 'content']);

function partsOf(
  { content }: { readonly content: NonNullable<WireMessage['content']> },
  part: (block: WireBlock, place: string) => Part | readonly Part[],
  field: string,
): readonly Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.flatMap((block, at) => part(block, `${field}[${at}]`));
}

function systemPart(block: WireBlock, place: string): Part | readonly Part[] {
  switch (block.type) {
    case 'text':
      return textPartOf(block);
    case 'image':
    case 'document':
    case 'tool_result':
    case 'tool_use':
    case 'thinking':
      throw invalid(`${place}.type`, 'must be "text"');
    default:
      return contentPart(block, place);
  }
}

function userPart(block: WireBlock, place: string, calls: ReadonlySet<string>): Part | readonly Part[] {
  switch (block.type) {
    case 'tool_result': {
      const { tool_use_id: id, content, is_error: failed } = block;
      if (!calls.has(id)) throw invalid(`${place}.tool_use_id`, 'must be the id of a tool_use block of an earlier assistant message');
      const parts =
        typeof content === 'string'
          ? [{ type: 'text' as const, text: content }]
          : (content ?? []).flatMap((one, at) => contentPart(one, `${place}.content[${at}]`));
      return { type: 'tool-result', id, parts, ...(failed ? { failed } : {}), ...carriedAs(rest(block, resultMembers)) };
    }
    case 'tool_use':
    case 'thinking':
      throw invalid(`${place}.type`, 'is only allowed in an assistant message');
    default:
      return contentPart(block, place);
  }
}

const resultMembers = new Set(['type', 'tool_use_id', 'content', 'is_error']);

function modelPart(block: WireBlock, place: string, calls: Set<string>): Part | readonly Part[] {
  switch (block.type) {
    case 'tool_use': {
      const { id, name, input } = block;
      calls.add(id);
      return { type: 'tool-call', id, name, json: textAsWritten(input), ...carriedAs(rest(block, callMembers)) };
    }
    case 'thinking':
      return thoughtOf(block);
    case 'tool_result':
    case 'image':
    case 'document':
      throw invalid(`${place}.type`, 'is only allowed in a user message');
    case 'text':
      return textPartOf({ ...block, ...ownCitations(block) });
    default:
      if (isOurSearch((block as { id?: unknown }).id) || isOurSearch((block as { tool_use_id?: unknown }).tool_use_id))
        return { type: 'search', id: '', query: '', state: 'completed', sources: [] };
      return contentPart(block, place);
  }
}

/** Citations made by the gateway are dropped: they lack the index that a provider encrypts. */
function ownCitations(block: object): { readonly citations?: Json } {
  const { citations } = block as { readonly citations?: unknown };
  if (!Array.isArray(citations)) return {};
  const own = (citations as readonly Json[]).filter((one) => !isObject(one) || one['encrypted_index'] !== '');
  return { citations: own.length > 0 ? own : null };
}

const callMembers = new Set(['type', 'id', 'name', 'input']);
const thoughtMembers = new Set(['type', 'thinking']);

/** The gateway's own token is in the place of a signature where another wire's thoughts were shown. */
function thoughtOf(block: Extract<WireBlock, { type: 'thinking' }>): ThoughtPart {
  const { signature, ...carried } = rest(block, thoughtMembers);
  const token = typeof signature === 'string' && isToken(signature) ? signature : undefined;
  if (token === undefined) return { type: 'thought', text: block.thinking, ...carriedAs(signature === undefined ? carried : { ...carried, signature }) };
  return { type: 'thought', text: block.thinking, extra: { ...carriedAs(carried).extra, ...tokenExtra(token) } };
}

type ContentBlock = Exclude<WireBlock, { type: 'tool_use' | 'tool_result' | 'thinking' }>;
type ContentPart = TextPart | MediaPart | ForeignPart;

/** A block that messages and tool results share. */
function contentPart(block: ContentBlock, place: string): ContentPart | readonly ContentPart[] {
  switch (block.type) {
    case 'text':
      return textPartOf(block);
    case 'image': {
      const carried = carriedAs(rest(block, mediaMembers));
      return { type: 'media', kind: 'image', ...sourceOf(block.source, `${place}.source`), ...carried };
    }
    case 'document':
      return documentPart(block, place);
    default:
      return carriedBlock(bounded(rest(block, none), place));
  }
}

const none = new Set<string>();
const mediaMembers = new Set(['type', 'source', 'title']);

/** A plain-text document becomes its heading and its text, which wires without documents support. */
function documentPart(block: Extract<WireBlock, { type: 'document' }>, place: string): ContentPart | readonly ContentPart[] {
  const { source, title } = block;
  switch (source.type) {
    case 'text': {
      const document = rest(block, textDocumentMembers);
      return [...headingOf(document), { type: 'text', text: source.data, ...carriedAs({ '.document': document, ...shownMembers(document) }) }];
    }
    case 'content':
      return carriedBlock(bounded(rest(block, none), place));
    default:
      return {
        type: 'media',
        kind: 'file',
        ...sourceOf(source, `${place}.source`),
        ...(isGiven(title) ? { name: title } : {}),
        ...carriedAs(rest(block, mediaMembers)),
      };
  }
}

const textDocumentMembers = new Set(['type', 'source']);

type Source = Extract<WireBlock, { type: 'image' }>['source'];

function sourceOf(source: Source, field: string): Pick<MediaPart, 'base64' | 'mediaType' | 'url' | 'fileId'> {
  switch (source.type) {
    case 'base64':
      return { mediaType: source.media_type, ...base64At(source.data, `${field}.data`) };
    case 'url':
      return { url: source.url };
    case 'file':
      return { fileId: source.file_id };
    default:
      return source satisfies never;
  }
}

/** A text block; its cache control and its citations are carried. */
export const textPartOf = (block: { readonly type: 'text'; readonly text: string }): TextPart => ({
  type: 'text',
  text: block.text,
  ...carriedAs(rest(block, textMembers) satisfies JsonObject),
});
const textMembers = new Set(['type', 'text']);
