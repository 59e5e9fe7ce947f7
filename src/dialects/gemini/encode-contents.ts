import type { MediaPart, Part, TextPart, ToolCallPart, ToolResultPart, Turn } from '#core/conversation';
import { isEmpty, isObject, own, textOf, type Json, type JsonObject } from '#core/json';
import { dialect } from './wire.ts';

interface ContentOptions {
  /** Function calls and their results are sent with ids. */
  readonly ids: boolean;
  /** Function calls need a signature. */
  readonly signed: boolean;
}

/**
 * Turns → the system instruction and `contents`. System turns are collected in their order; consecutive function results are one content, as the wire
 * requires.
 *
 * @param ignored collects what this wire does not support, as `field: reason`
 */
export function encodeConversation(
  turns: readonly Turn[],
  options: ContentOptions,
  ignored: Set<string>,
): { readonly system?: readonly JsonObject[]; readonly contents: readonly JsonObject[] } {
  const system: JsonObject[] = [];
  const contents: Draft[] = [];
  const names = new Map<string, string>(); // names of the called functions, by call id
  for (const [at, turn] of turns.entries()) {
    if (turn.role === 'system') {
      for (const part of turn.parts)
        if (part.type !== 'text') ignored.add(`${part.type === 'media' ? part.kind : part.type}: the provider's API accepts none in a system message.`);
      system.push(...turn.parts.flatMap((part) => (part.type === 'text' ? textParts(part) : [])));
      if (turns.slice(0, at).some(({ role }) => role !== 'system')) ignored.add('system: later system messages are moved to the front.');
      continue;
    }
    for (const part of turn.parts) if (part.type === 'tool-call') names.set(part.id, part.name);
    const parts = turn.parts.flatMap((part) => partsOf(part, names, options, ignored));
    if (parts.length === 0) continue; // no part of it can be sent
    const role = turn.role === 'model' ? 'model' : 'user';
    const carried = own(turn.extra, dialect);
    const results = isEmpty(carried) && parts.every((part) => part['functionResponse'] !== undefined);
    const last = contents.at(-1);
    if (results && last?.results && last.role === role) last.parts.push(...parts);
    else contents.push({ role, parts, results, carried });
  }
  return { ...(system.length > 0 ? { system } : {}), contents: contents.map(({ role, parts, carried }) => ({ ...carried, role, parts })) };
}

interface Draft {
  readonly role: string;
  readonly parts: JsonObject[];
  readonly results: boolean;
  readonly carried: JsonObject;
}

function partsOf(part: Part, names: ReadonlyMap<string, string>, options: ContentOptions, ignored: Set<string>): readonly JsonObject[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return textParts(part);
    case 'thought':
      return [{ text: part.text, thought: true, ...own(part.extra, dialect) }];
    case 'media':
      return mediaParts(part, ignored);
    case 'tool-call':
      return [callPart(part, options, ignored)];
    case 'tool-result':
      return [resultPart(part, names, options, ignored)];
    case 'search':
      return []; // results of earlier searches are not sent
    case 'foreign':
      if (part.dialect === dialect) return [part.value];
      ignored.add(`${textOf(part.value['type']) || 'content'}: only ${part.dialect} supports it.`);
      return [];
    default:
      return part satisfies never;
  }
}

/** The wire refuses empty text, unless it carries a signature. */
function textParts({ text, ...part }: Pick<TextPart, 'text' | 'extra'>): readonly JsonObject[] {
  const carried = own(part.extra, dialect);
  return text === '' && carried['thoughtSignature'] === undefined ? [] : [{ text, ...carried }];
}

function mediaParts(part: MediaPart, ignored: Set<string>): readonly JsonObject[] {
  const { '.inner': inner, ...carried } = own(part.extra, dialect);
  const { kind, base64, url, name, detail = 'auto' } = part;
  if (name !== undefined && !inner) ignored.add('filename: the provider does not accept file names.');
  if (detail !== 'auto') ignored.add('detail: the provider chooses the level of detail itself.');
  const mimeType = part.mediaType ?? guessedType(kind, url ?? name ?? '');
  const named = { ...(name === undefined ? {} : { displayName: name }), ...(inner as JsonObject | undefined) };
  if (base64 !== undefined) return [{ inlineData: { mimeType, data: base64, ...(inner ? named : {}) }, ...carried }];
  if (url !== undefined) return [{ fileData: { mimeType, fileUri: url, ...(inner ? named : {}) }, ...carried }];
  ignored.add(`${kind}: the provider cannot access files uploaded to another API.`);
  return [];
}

const typeByExtension: Readonly<Record<string, string>> = {
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  mp4: 'video/mp4',
  txt: 'text/plain',
};
const defaultType = { image: 'image/jpeg', audio: 'audio/mp3', video: 'video/mp4', file: 'application/pdf' } as const;

/** The wire requires a MIME type: from the file extension, else the usual one of the kind. */
function guessedType(kind: MediaPart['kind'], name: string): string {
  const [path] = name.split(/[?#]/, 1);
  const extension = (/\.(\w{2,5})$/.exec(path!) ?? /\.(\w{2,5})$/.exec(name))?.[1]?.toLowerCase() ?? '';
  return Object.hasOwn(typeByExtension, extension) ? typeByExtension[extension]! : defaultType[kind];
}

/** Google's placeholder signature for function calls that none of its models has signed. https://ai.google.dev/gemini-api/docs/thought-signatures */
const unsigned = 'skip_thought_signature_validator';

function callPart({ id, name, json, custom, extra }: ToolCallPart, { ids, signed }: ContentOptions, ignored: Set<string>): JsonObject {
  const { '.unnamed': unnamed, thoughtSignature, ...carried } = own(extra, dialect);
  const args = custom ? undefined : argsOf(json);
  if (!args) ignored.add('tool call: arguments that are not a JSON object are wrapped in one as text.');
  const signature = thoughtSignature ?? (signed ? unsigned : undefined);
  return {
    functionCall: { ...(ids && !unnamed ? { id } : {}), name, args: args ?? { arguments: json } },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
    ...carried,
  };
}

/** The arguments of a function call as the object that this wire requires. @returns undefined where the text is not a JSON object */
export function argsOf(json: string): JsonObject | undefined {
  if (json.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

function resultPart(
  { id, parts, failed, extra }: ToolResultPart,
  names: ReadonlyMap<string, string>,
  { ids }: ContentOptions,
  ignored: Set<string>,
): JsonObject {
  const { '.unnamed': unnamed, '.name': ownName, ...carried } = own(extra, dialect);
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const media = parts.flatMap((part) => (part.type === 'media' ? mediaParts(part, ignored) : []));
  const text = texts.join('');
  const given = texts.length === 1 ? argsOf(text) : undefined;
  const isPlain = !given || text.trim() === '';
  const isErrorObject = !failed || (given && 'error' in given && Object.keys(given).length === 1);
  const response: Json = isPlain ? { [failed ? 'error' : 'output']: text } : isErrorObject ? given : { error: given };
  const functionResponse = {
    ...(ids && !unnamed ? { id } : {}),
    name: textOf(ownName) || (names.get(id) ?? id),
    response,
    ...(media.length > 0 ? { parts: media } : {}),
  };
  return { functionResponse: { ...carried, ...functionResponse } };
}
