import type { ForeignPart, MediaPart, Part, TextPart, ThoughtPart, ToolCallPart, ToolResultPart, Turn } from '#core/conversation';
import { isEmpty, withoutNotes, own, textOf, type JsonObject } from '#core/json';
import { isLoss } from '../shared/lost-thoughts.ts';
import { withAllResults } from '../shared/answered-calls.ts';
import { writtenArguments } from '../shared/arguments.ts';
import { Contents, nothing, type ContentsOptions } from './contents.ts';
import { foreignName } from '../shared/foreign-name.ts';
import { typeIn } from '../shared/media-type.ts';
import { dataOf } from '../shared/read-fields.ts';
import { typeInName } from './type-in-name.ts';
import { dialect } from './wire.ts';

interface ContentOptions extends ContentsOptions {
  /** Function calls and their results are sent with ids. */
  readonly ids: boolean;
  /** Media of results are sent beside them. */
  readonly mediaBeside: boolean;
}

/**
 * Turns → the system instruction and `contents`. System turns at the front are collected in their order, later ones are text of the user; consecutive function
 * results are one content, as the wire requires.
 * @param ignored collects what this wire does not support, as `field: reason`
 * @throws Fault `invalid` for a message whose content cannot be sent at all
 */
export function encodeConversation(
  turns: readonly Turn[],
  options: ContentOptions,
  ignored: Set<string>,
): { readonly system?: readonly JsonObject[]; readonly contents: readonly JsonObject[] } {
  const system: JsonObject[] = [];
  const contents = new Contents(options);
  const names = new Map<string, string>(); // names of the called functions, by call id
  for (const turn of options.isTranslated ? withAllResults(turns, ignored) : turns) {
    if (turn.role === 'system') {
      for (const part of turn.parts)
        if (part.type !== 'text') ignored.add(`${part.type === 'media' ? part.kind : part.type}: the provider's API accepts none in a system message.`);
      const texts = turn.parts.flatMap((part) => (part.type === 'text' ? textParts(part) : []));
      if (contents.isEmpty || !options.isTranslated) system.push(...texts);
      else if (texts.length > 0) {
        contents.user(texts);
        ignored.add('system: a system message in the middle is sent as text of the user.');
      }
      continue;
    }
    for (const part of turn.parts) if (part.type === 'tool-call') names.set(part.id, part.name);
    const parts = turn.parts.map((part) => ({ part, sent: partsOf(part, names, options, ignored) }));
    contents.turn(turn, parts);
  }
  return contents.isEmpty
    ? { contents: [{ role: 'user', parts: system.length > 0 ? system : [nothing] }] } // the wire requires a content
    : { ...(system.length > 0 ? { system } : {}), contents: contents.written() };
}

function partsOf(part: Part, names: ReadonlyMap<string, string>, options: ContentOptions, ignored: Set<string>): readonly JsonObject[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return textParts(part);
    case 'thought':
      return thoughtParts(part, options, ignored);
    case 'media':
      return mediaParts(part, options, ignored);
    case 'tool-call':
      return [callPart(part, options, ignored)];
    case 'tool-result':
      return resultParts(part, names, options, ignored);
    case 'search':
      return []; // results of earlier searches are not sent
    case 'foreign':
      if (part.dialect === dialect) return [part.value];
      ignored.add(unsupportedPart(part));
      return [];
    default:
      return part satisfies never;
  }
}

/** Thoughts of another provider are not shown to this one, and it wants none of its own back that it did not sign. */
function thoughtParts(part: ThoughtPart, { isTranslated }: ContentOptions, ignored: Set<string>): readonly JsonObject[] {
  const { text, extra } = part;
  const members = own(extra, dialect);
  if (!isTranslated || !isEmpty(members)) return [{ text, thought: true, ...members }];
  if (extra?.[dialect] !== undefined) return [];
  if (isLoss(part)) ignored.add("thoughts: the provider's interface does not take back those of another.");
  return [];
}

/** The wire refuses empty text, unless it carries a signature. */
function textParts({ text, ...part }: Pick<TextPart, 'text' | 'extra'>): readonly JsonObject[] {
  const carried = own(part.extra, dialect);
  return text === '' && carried['thoughtSignature'] === undefined ? [] : [{ text, ...carried }];
}

function mediaParts(part: MediaPart, { isTranslated }: ContentOptions, ignored: Set<string>): readonly JsonObject[] {
  const { '.inner': inner, '.uploaded': isUploaded, ...others } = own(part.extra, dialect);
  const carried = withoutNotes(others);
  const { kind, base64, name, detail = 'auto' } = part;
  const url = isUploaded ? part.fileId : part.url;
  if (name !== undefined && !inner) ignored.add('filename: the provider does not accept file names.');
  if (detail !== 'auto') ignored.add('detail: the provider chooses the level of detail itself.');
  const usual = typeInName(url ?? name ?? '') ?? usualType[kind];
  const mimeType = isTranslated ? (typeIn(part) ?? usual) : part.mediaType;
  const named = { ...(name === undefined ? {} : { displayName: name }), ...(inner as JsonObject | undefined) };
  if (base64 !== undefined) {
    const data = isTranslated ? (dataOf(base64)?.base64 ?? base64) : base64; // other interfaces take a sound as a data URL, too
    return [{ inlineData: { mimeType: mimeType ?? usual, data, ...(inner ? named : {}) }, ...carried }];
  }
  if (isTranslated && url !== undefined && /^data:/i.test(url)) {
    ignored.add(`${kind}: the provider's API does not support this address.`);
    return [];
  }
  if (url !== undefined) return [{ fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: url, ...(inner ? named : {}) }, ...carried }];
  ignored.add(`${kind}: the provider cannot access files uploaded to another API.`);
  return [];
}

/** The wire requires a MIME type, which media of other wires may lack. A file of its own clients that has none may be known to the provider. */
const usualType = { image: 'image/jpeg', audio: 'audio/mp3', video: 'video/mp4', file: 'application/pdf' } as const;

function callPart({ id, name, json, custom, extra }: ToolCallPart, { ids, isTranslated }: ContentOptions, ignored: Set<string>): JsonObject {
  const { '.unnamed': unnamed, thoughtSignature, ...carried } = own(extra, dialect);
  const args = custom ? undefined : writtenArguments(json);
  if (!args) ignored.add('tool call: arguments that are not a JSON object are wrapped in one as text.');
  return {
    functionCall: { ...(ids && (isTranslated || !unnamed) ? { id } : {}), name, args: args ?? { arguments: json } },
    ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
    ...carried,
  };
}

/** A result, and its media where they are sent beside it. */
function resultParts(
  { id, parts, failed, extra }: ToolResultPart,
  names: ReadonlyMap<string, string>,
  options: ContentOptions,
  ignored: Set<string>,
): readonly JsonObject[] {
  const { ids, isTranslated, mediaBeside } = options;
  const { '.unnamed': unnamed, '.name': ownName, ...carried } = own(extra, dialect);
  for (const part of parts) if (part.type === 'foreign') ignored.add(unsupportedPart(part));
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const media = parts.flatMap((part) => (part.type === 'media' ? mediaParts(part, options, ignored) : []));
  // The wire has one text, and for others only media. Each was one of its own: gemini-cli joins them with line ends.
  const text = texts.join(parts.some((part) => part.type === 'text' && part.extra !== undefined) ? '\n\n' : '\n');
  // Only a value that came as an object is sent as one: the wire reads `$ref` in it. https://github.com/vercel/ai/issues/14369
  const response = (ownName !== undefined && writtenArguments(text)) || { [failed ? 'error' : 'output']: text };
  const functionResponse = {
    ...(ids && (isTranslated || !unnamed) ? { id } : {}),
    name: textOf(ownName) || (names.get(id) ?? id),
    response,
    ...(media.length > 0 && !mediaBeside ? { parts: media } : {}),
  };
  return [{ functionResponse: { ...carried, ...functionResponse } }, ...(mediaBeside ? media : [])];
}

const unsupportedPart = (part: ForeignPart) => `${foreignName(part)}: only ${part.dialect} supports it.`;
