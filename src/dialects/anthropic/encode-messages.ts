import type { MediaPart, Part, TextPart, ThoughtPart, ToolCallPart, Turn } from '#core/conversation';
import { own, textOf, type Json, type JsonObject } from '#core/json';
import { writtenArguments } from '../shared/arguments.ts';
import { dialect } from './wire.ts';

/**
 * Turns → `system` and `messages`. System turns of other wires are moved to the front; consecutive turns of one role become one message, with tool results
 * first, as the wire requires.
 *
 * @param ignored collects what this wire does not support, as `field: reason`
 */
export function encodeConversation(turns: readonly Turn[], ignored: Set<string>): { readonly system?: Json; readonly messages: readonly JsonObject[] } {
  const system: JsonObject[] = [];
  const messages: Draft[] = [];
  for (const turn of turns) {
    const { '.message': inside, ...carried } = own(turn.extra, dialect);
    if (turn.role === 'system' && !inside) {
      for (const part of turn.parts)
        if (part.type !== 'text') ignored.add(`${part.type === 'media' ? part.kind : part.type}: the provider's API accepts none in a system message.`);
      system.push(...turn.parts.flatMap((part) => (part.type === 'text' ? textBlocks(part) : [])));
      if (messages.length > 0) ignored.add('system: later system messages are moved to the front.');
      continue;
    }
    const role = turn.role === 'model' ? 'assistant' : turn.role;
    const content = turn.role === 'model' ? modelBlocks(turn.parts, ignored) : blocksOf(turn.parts, ignored);
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ ...carried, role, content });
  }
  return { ...(system.length > 0 ? { system: shortened(system) } : {}), messages: messages.flatMap(finished) };
}

interface Draft {
  readonly role: string;
  readonly content: JsonObject[];
}

function finished({ content, ...message }: Draft): readonly JsonObject[] {
  const results = content.filter((block) => block['type'] === 'tool_result');
  const blocks = results.length === 0 ? content : [...results, ...content.filter((block) => block['type'] !== 'tool_result')];
  if (blocks.length === 0 && message.role === 'assistant') return []; // no part of it can be sent
  return [{ ...message, content: shortened(blocks) }];
}

/** A single plain text block is shortened to a string. */
function shortened(blocks: readonly JsonObject[]): Json {
  const [only] = blocks;
  if (only === undefined) return '';
  return blocks.length === 1 && only['type'] === 'text' && Object.keys(only).length === 2 ? only['text']! : blocks;
}

function blocksOf(parts: readonly Part[], ignored: Set<string>): JsonObject[] {
  return parts.flatMap((part): readonly JsonObject[] => {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return textBlocks(part);
      case 'media':
        return mediaBlocks(part, ignored);
      case 'search':
        return []; // results of earlier searches are not sent
      case 'foreign':
        if (part.dialect === dialect) return [part.value];
        ignored.add(`${textOf(part.value['type']) || 'content'}: only ${part.dialect} supports it.`);
        return [];
      case 'tool-result': {
        const content = shortened(blocksOf(part.parts, ignored));
        return [
          {
            ...own(part.extra, dialect),
            type: 'tool_result',
            tool_use_id: idOf(part.id),
            ...(content === '' ? {} : { content }),
            ...(part.failed ? { is_error: true } : {}),
          },
        ];
      }
      case 'tool-call':
        return [callBlock(part, ignored)];
      case 'thought': {
        const carried = own(part.extra, dialect);
        if (isSigned(part)) return [{ ...carried, type: 'thinking', thinking: part.text }];
        ignored.add('thoughts: the provider accepts only those that it signed.');
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

function modelBlocks(parts: readonly Part[], ignored: Set<string>): JsonObject[] {
  const media = parts.filter((part) => part.type === 'media');
  for (const part of media) ignored.add(`${part.kind}: the provider's API accepts none in an assistant message.`);
  return blocksOf(
    parts.filter((part) => part.type !== 'media'),
    ignored,
  );
}

/** The wire refuses empty text. */
function textBlocks({ text, ...part }: Pick<TextPart, 'text' | 'extra'>): readonly JsonObject[] {
  const { document, ...carried } = own(part.extra, dialect);
  if (document !== undefined) return [{ ...(document as JsonObject), type: 'document', source: { type: 'text', media_type: 'text/plain', data: text } }];
  return text === '' ? [] : [{ ...carried, type: 'text', text }];
}

function mediaBlocks(part: MediaPart, ignored: Set<string>): readonly JsonObject[] {
  const source = part.kind === 'image' || part.kind === 'file' ? sourceOf(part) : undefined;
  if (!source) {
    ignored.add(`${part.kind}: the provider's API does not support it.`);
    return [];
  }
  const carried = own(part.extra, dialect);
  if (part.detail !== undefined && part.detail !== 'auto') ignored.add('detail: the provider chooses the level of detail itself.');
  if (part.kind === 'image') return [{ ...carried, type: 'image', source }];
  return [{ ...carried, type: 'document', source, ...(part.name === undefined ? {} : { title: part.name }) }];
}

function sourceOf({ kind, base64, mediaType, url, fileId }: MediaPart): JsonObject | undefined {
  if (fileId !== undefined) return { type: 'file', file_id: fileId };
  if (url !== undefined) return /^https?:/i.test(url) ? { type: 'url', url } : undefined;
  if (base64 === undefined) return undefined;
  if (kind === 'file' && mediaType?.startsWith('text/'))
    return { type: 'text', media_type: 'text/plain', data: Buffer.from(base64, 'base64').toString('utf8') };
  return { type: 'base64', media_type: mediaType ?? (kind === 'image' ? 'image/png' : 'application/pdf'), data: base64 };
}

function callBlock({ id, name, json, custom, extra }: ToolCallPart, ignored: Set<string>): JsonObject {
  const input = custom ? undefined : writtenArguments(json);
  if (!input) ignored.add('tool call: arguments that are not a JSON object are wrapped in one as text.');
  return { ...own(extra, dialect), type: 'tool_use', id: idOf(id), name, input: input ?? { arguments: json } };
}

/** The wire allows letters, digits, `_` and `-` in an id. */
const idOf = (id: string): string => id.replaceAll(/[^\w-]/g, '_') || '_';
