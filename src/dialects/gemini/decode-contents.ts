import type { ForeignPart, MediaPart, Part, TextPart, ThoughtPart, ToolCallPart, ToolResultPart, Turn } from '#core/conversation';
import { textAsWritten } from '#kit/json/numbers';
import { isEmpty, rest, type Json, type JsonObject } from '#core/json';
import { carryUnknown } from '../shared/nested-members.ts';
import { isToken, tokenExtra, tokenOf } from '#core/thoughts';
import { goesOn, joinedTurns } from '#core/whole-answers';
import { invalid } from '#core/fault';
import { base64At, bounded, isGiven, mediaAt } from '../shared/read-fields.ts';
import { typeInName } from './type-in-name.ts';
import { carriedAs, dialect, type WireContent, type WirePart } from './wire.ts';

/**
 * Contents → turns. System turns come first: the system instruction, then the contents with the role `system` in their order. Members of a part that are not
 * understood are carried on it.
 */
export function turnsOf(contents: readonly WireContent[], instruction: WireContent | null | undefined): readonly Turn[] {
  const calls = new Calls(contents);
  const system: Part[] = isGiven(instruction) ? instruction.parts.map((part, at) => systemPart(part, `systemInstruction.parts[${at}]`)) : [];
  const turns: Turn[] = [];
  for (const [at, content] of contents.entries()) {
    const { parts } = content;
    const role = content.role?.toLowerCase(); // Google's older examples have USER and MODEL
    const field = `contents[${at}]`;
    if (role === 'system') {
      system.push(...parts.map((part, place) => systemPart(part, `${field}.parts[${place}]`)));
      continue;
    }
    const carried = carriedAs(rest(content, turnMembers));
    const own = parts.map((part, place) => partOf(part, `${field}.parts[${place}]`, calls));
    turns.push({ role: roleOf(role, `${field}.role`), parts: withoutEmptyTexts(withWholeThoughts(own)), ...carried });
  }
  const whole = withThoughtsOfChunks(turns);
  return system.length > 0 ? [{ role: 'system', parts: system }, ...whole] : whole;
}

/** Are there answers in pieces, as chats of Google's SDKs return those that were streamed? */
export const hasPieces = (turns: readonly Turn[]): boolean =>
  turns.some(
    (turn, at) =>
      goesOn(turns[at - 1], turn) || (turn.role === 'model' && turn.parts.some(({ type }, place) => type === 'text' && turn.parts[place - 1]?.type === 'text')),
  );

/** A thought with the gateway's own token is one part of one turn, although its pieces may be contents of their own. Other answers stay as they are. */
function withThoughtsOfChunks(turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some(({ parts }) => parts.some(isMarked))) return turns;
  const whole: Turn[] = [];
  for (let at = 0; at < turns.length;) {
    let end = at + 1;
    while (end < turns.length && goesOn(turns[end - 1], turns[end]!)) end++;
    const answer = turns.slice(at, end);
    const isOne = answer.length > 1 && answer.some(({ parts }) => parts.some(isMarked));
    whole.push(...(isOne ? joinedTurns(answer).map((turn) => ({ ...turn, parts: withoutEmptyTexts(withWholeThoughts(turn.parts)) })) : answer));
    at = end;
  }
  return whole;
}

const isMarked = (part: Part): boolean => part.type === 'thought' && tokenOf(part.extra) !== undefined;

const turnMembers = new Set(['role', 'parts']);

/** Older clients use the role `function` for function results. */
function roleOf(role: string | null | undefined, field: string): 'user' | 'model' {
  switch (role) {
    case undefined:
    case null:
    case '':
    case 'user':
    case 'function':
      return 'user';
    case 'model':
    case 'assistant':
      return 'model';
    default:
      throw invalid(field, 'must be user, model, assistant or system');
  }
}

function systemPart(part: WirePart, field: string): TextPart {
  if (!isGiven(part.text)) throw invalid(field, 'must have text');
  return { type: 'text', text: part.text, ...carriedAs(rest(part, known)) };
}

const contentMembers = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode', 'codeExecutionResult'] as const;
const known = new Set<string>([...contentMembers, 'thought']);

function partOf(part: WirePart, field: string, calls: Calls): Part {
  if (isTextAlone(part)) return { type: 'text', text: part.text };
  const given = contentMembers.filter((name) => isGiven(part[name]));
  if (given.length > 1) throw invalid(field, `must have one of ${given.join(' and ')}, not both`);
  const others = rest(part, known);
  const carried = carriedAs(others);
  const { text, inlineData, fileData, functionCall, functionResponse, thought } = part;
  if (isGiven(text)) return thought ? thoughtOf(text, others) : { type: 'text', text, ...carried };
  if (isGiven(inlineData) || isGiven(fileData)) return mediaOf(part, others, field);
  if (isGiven(functionCall)) return callOf(functionCall, others, calls);
  if (isGiven(functionResponse)) return resultOf(functionResponse, others, calls, field);
  if (given.length === 1) return foreignOf(part, field);
  const { thoughtSignature, ...unknown } = others;
  if (thoughtSignature !== undefined && isEmpty(unknown)) return { type: 'text', text: '', ...carried };
  if (isEmpty(unknown)) throw invalid(field, `must have one of ${contentMembers.join(', ')}`);
  return foreignOf(part, field); // a newer kind of content
}

function isTextAlone(part: WirePart): part is WirePart & { readonly text: string } {
  for (const name in part) if (name !== 'text') return false;
  return typeof part.text === 'string';
}

/** The gateway's own token is in the place of a signature where another wire's thoughts were shown. */
function thoughtOf(text: string, others: JsonObject): ThoughtPart {
  const { thoughtSignature: token, ...carried } = others;
  if (typeof token !== 'string' || !isToken(token)) return { type: 'thought', text, ...carriedAs(others) };
  return { type: 'thought', text, extra: { ...carriedAs(carried).extra, ...tokenExtra(token) } };
}

/** A streamed thought comes back in the pieces in which it was sent, the token on the last one: they are one thought. */
function withWholeThoughts(parts: readonly Part[]): readonly Part[] {
  if (!parts.some(isMarked)) return parts;
  const whole: Part[] = [];
  let texts: string[] = []; // of the pieces since the last other part
  for (const part of parts) {
    const isEnd = part.type === 'thought' && isMarked(part);
    if (isEnd) whole.splice(whole.length - texts.length);
    whole.push(isEnd ? { ...part, text: texts.join('') + part.text } : part);
    if (part.type === 'thought' && !part.extra) texts.push(part.text);
    else texts = [];
  }
  return whole;
}

/** Streamed answers end in an empty text, which comes back with the parts that mean something. */
function withoutEmptyTexts(parts: readonly Part[]): readonly Part[] {
  const isEmptyText = (part: Part) => part.type === 'text' && part.text === '' && !part.extra;
  return parts.some(isEmptyText) && !parts.every(isEmptyText) ? parts.filter((part) => !isEmptyText(part)) : parts;
}

const foreignOf = (part: WirePart, field: string): ForeignPart => ({ type: 'foreign', dialect, value: bounded(rest(part, new Set()), field) });

const blobMembers = new Set(['mimeType', 'data', 'fileUri', 'displayName']);

function mediaOf({ inlineData, fileData }: Pick<WirePart, 'inlineData' | 'fileData'>, others: JsonObject, field: string): MediaPart {
  const blob = isGiven(inlineData) ? inlineData : undefined;
  const file = isGiven(fileData) ? fileData : undefined;
  const isUploaded = uploaded.test(file?.fileUri ?? '');
  const mediaType = blob?.mimeType ?? file?.mimeType ?? (file ? typeInName(file.fileUri) : undefined);
  const inner = rest(blob ?? file ?? {}, blobMembers);
  const carried: Record<string, Json> = { ...others };
  carryUnknown(carried, blob ? 'inlineData' : 'fileData', blob ?? file, blobMembers);
  const name = (blob ?? file) as { readonly displayName?: unknown };
  return {
    type: 'media',
    kind: kindOf(mediaType),
    ...(mediaType === undefined ? {} : { mediaType }),
    ...(blob
      ? base64At(inStandardBase64(blob.data), `${field}.inlineData.data`)
      : isUploaded
        ? { fileId: file!.fileUri }
        : mediaAt(file!.fileUri, `${field}.fileData.fileUri`)),
    ...(typeof name.displayName === 'string' ? { name: name.displayName } : {}),
    ...carriedAs({
      ...carried,
      ...(isUploaded ? { '.uploaded': true } : {}),
      ...(isEmpty(inner) && typeof name.displayName !== 'string' ? {} : { '.inner': inner }),
    }),
  };
}

/**
 * Bytes may come as base64 or base64url, padded or not (https://protobuf.dev/programming-guides/json/), and Google's SDK for Python sends base64url. Other wires accept
 * base64 alone.
 */
function inStandardBase64(data: string): string {
  const isForUrls = data.includes('-') || data.includes('_');
  if (!isForUrls && data.length % 4 === 0) return data;
  const length = data.endsWith('=') ? data.indexOf('=', data.length - 2) : data.length;
  if (length < data.length && length % 4 === 0) return data; // padding where none belongs
  const decoded = Buffer.from(data, isForUrls ? 'base64url' : 'base64'); // both take either alphabet, and are fast with their own
  const isWhole = length % 4 !== 1 && decoded.length === Math.floor((length * 3) / 4); // other characters are passed over
  if (!isWhole) return data;
  return isForUrls ? decoded.toString('base64') : data.slice(0, length).padEnd(Math.ceil(length / 4) * 4, '=');
}

/** Files of the API, and of the cloud's storage, which only its own account can read; a path like theirs at another host is anybody's. https://ai.google.dev/api/files */
const uploaded = /^(?:gs:\/\/|(?:https?:\/\/generativelanguage\.googleapis\.com\/v\d\w{0,20}\/)?files\/)/i;

/** The media kind of a MIME type. */
export function kindOf(mediaType: string | undefined): MediaPart['kind'] {
  const kind = mediaType?.slice(0, mediaType.indexOf('/')).toLowerCase();
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file';
}

type WireCall = NonNullable<WirePart['functionCall']>;
type WireResponse = NonNullable<WirePart['functionResponse']>;

function callOf(call: WireCall, others: JsonObject, calls: Calls): ToolCallPart {
  const { id, name, args } = call;
  const carried: Record<string, Json> = { ...others, ...rest(call, new Set(['id', 'name', 'args'])) };
  if (!isGiven(id) || id === '') carried['.unnamed'] = true;
  return { type: 'tool-call', id: calls.called(name, id), name, json: textAsWritten(args ?? {}), ...carriedAs(carried) };
}

/** A response whose only member is `error` means that the function failed. */
function resultOf(result: WireResponse, others: JsonObject, calls: Calls, field: string): ToolResultPart {
  const { id, name, response, parts } = result;
  const carried: Record<string, Json> = { ...others, ...rest(result, new Set(['id', 'name', 'response', 'parts'])), '.name': name };
  if (!isGiven(id) || id === '') carried['.unnamed'] = true;
  const output = response ?? {};
  const failed = Object.keys(output).length === 1 && isGiven(output['error']);
  const media = (parts ?? []).filter((one) => isGiven(one.inlineData) || isGiven(one.fileData));
  return {
    type: 'tool-result',
    id: calls.answered(name, id),
    parts: [{ type: 'text', text: textAsWritten(output) }, ...media.map((one) => mediaOf(one, {}, `${field}.functionResponse.parts`))],
    ...(failed ? { failed } : {}),
    ...carriedAs(carried),
  };
}

interface Queue {
  readonly ids: string[];
  at: number;
}

/** The calls of one function. */
interface OpenCalls {
  /** Those that some result names by their ids, and the others; both with the place of the first that may be unanswered. */
  readonly named: Queue;
  readonly others: Queue;
  /** By id: how many calls wait for their results, and how many have had theirs and are not yet passed over in `named`. */
  readonly counts: Map<string, { waiting: number; answered: number }>;
}

/** Matches function results to calls: a result without an id belongs to the first unanswered call of its name, one that no result names if there is any. */
class Calls {
  readonly #open = new Map<string, OpenCalls>();
  readonly #contents: readonly WireContent[];
  /** The ids of all results. */
  #named: ReadonlySet<string> | undefined;
  #count = 0;

  constructor(contents: readonly WireContent[]) {
    this.#contents = contents;
  }

  called(name: string, given: string | null | undefined): string {
    const id = given ? given : this.#next();
    let open = this.#open.get(name);
    if (!open) this.#open.set(name, (open = { named: { ids: [], at: 0 }, others: { ids: [], at: 0 }, counts: new Map() }));
    this.#named ??= new Set(this.#contents.flatMap(({ parts }) => parts.flatMap(({ functionResponse }) => functionResponse?.id || [])));
    (this.#named.has(id) ? open.named : open.others).ids.push(id);
    const count = open.counts.get(id);
    if (count) count.waiting++;
    else open.counts.set(id, { waiting: 1, answered: 0 });
    return id;
  }

  answered(name: string, given: string | null | undefined): string {
    const open = this.#open.get(name);
    if (!given) return (open && (next(open.others) ?? firstNamed(open))) ?? this.#next();
    const count = open?.counts.get(given);
    if (count && count.waiting > 0) {
      count.waiting--;
      count.answered++;
    }
    return given;
  }

  /** Deterministic for a conversation, so that its prefix stays the same for the prompt caches of providers. */
  #next(): string {
    return `call_${++this.#count}`;
  }
}

const next = (queue: Queue): string | undefined => (queue.at < queue.ids.length ? queue.ids[queue.at++] : undefined);

function firstNamed({ named, counts }: OpenCalls): string | undefined {
  for (let id = next(named); id !== undefined; id = next(named)) {
    const count = counts.get(id)!;
    if (count.answered === 0) {
      count.waiting--;
      return id;
    }
    count.answered--;
  }
  return undefined;
}
