import { randomText } from '#kit/crypto/ids';
import type { Citation } from '#core/conversation';
import type { FinishReason, GenerateEvent, Usage } from '#core/event';
import { isEmpty, isObject, rest, textOf, type Json, type JsonObject } from '#core/json';
import type { Reader } from '../shared/decoder.ts';
import { kindOf } from './decode-contents.ts';
import { faultOfError, malformed } from './faults.ts';
import { citationsFrom } from './grounding.ts';
import { logprobsOf } from './logprobs.ts';
import { partialArgs, type PartialArgs } from './partial-args.ts';
import { usageOf } from './usage.ts';
import { carriedAs, dialect, type Loose } from './wire.ts';

/** The words of this wire for the end of an answer; others are a `stop` whose word is kept. */
const reasons: Readonly<Record<string, FinishReason>> = {
  MAX_TOKENS: 'length',
  SAFETY: 'refused',
  RECITATION: 'refused',
  LANGUAGE: 'refused',
  BLOCKLIST: 'refused',
  PROHIBITED_CONTENT: 'refused',
  SPII: 'refused',
  IMAGE_SAFETY: 'refused',
  IMAGE_PROHIBITED_CONTENT: 'refused',
  IMAGE_RECITATION: 'refused',
  MODEL_ARMOR: 'refused',
};

/** A candidate so far. */
interface CandidateState {
  calls: number;
  /** The kind of its last part, where another of the kind would run on. */
  plain?: 'text' | 'thought' | undefined;
  /** A function call whose arguments still come. */
  open?: { readonly call: number; readonly id: string; readonly args: PartialArgs } | undefined;
  raw?: string;
  carried: JsonObject;
  /** The text of the open part, and the bytes of text before it. */
  text: string;
  before: number;
}

/** No answer has more: beyond, somebody wants to keep us busy. */
const mostCandidates = 128;
const mostCalls = 10_000;

/** How an answer is read. */
interface Reading {
  /** Parts that follow each other are parts of their own, and not pieces of one. */
  readonly whole?: boolean;
  /** Citations are reported, and text is kept for that. */
  readonly cites?: boolean;
}

/**
 * Reads the chunks of a stream one after the other; a whole answer is one chunk. It is finished when every candidate has said why it ended; that stands at the
 * end of all events, for some models say it with each chunk.
 *
 * @param model the upstream's name for it, for answers that do not report one
 * @param ignored goes into `started`
 */
export const reader = (model: string, ignored: readonly string[], reading: Reading = {}): Reader => new ContentReader(model, ignored, reading);

class ContentReader implements Reader {
  readonly #model: string;
  readonly #ignored: readonly string[];
  readonly #whole: boolean;
  readonly #cites: boolean;
  readonly #candidates = new Map<number, CandidateState>();
  #id = ''; // of the answer that is being read
  #started = false;
  #usage: JsonObject = {};

  constructor(model: string, ignored: readonly string[], { whole = false, cites = false }: Reading) {
    this.#model = model;
    this.#ignored = ignored;
    this.#whole = whole;
    this.#cites = cites;
  }

  take(chunk: unknown): readonly GenerateEvent[] {
    if (!isObject(chunk)) throw malformed();
    if (isObject(chunk['error'])) throw faultOfError(chunk['error']);
    const its = textOf(chunk['responseId']);
    if (this.#id !== '' && its !== '' && its !== this.#id) throw malformed();
    this.#id ||= its;
    const events: GenerateEvent[] = [];
    if (isObject(chunk['usageMetadata'])) this.#usage = { ...this.#usage, ...rest(chunk['usageMetadata'], none) };
    if (!this.#started) {
      this.#started = true;
      const told = this.counted();
      const begins = { model: textOf(chunk['modelVersion']) || this.#model, ignored: this.#ignored, ...(told ? { usage: told } : {}) };
      events.push({ type: 'started', ...begins, ...carriedAs(rest(chunk, chunkMembers)) });
    }
    const said: unknown = chunk['candidates'] ?? [];
    if (!Array.isArray(said)) throw malformed();
    for (const [at, one] of said.entries()) this.#takeCandidate(one, at, events);
    const feedback = chunk['promptFeedback'];
    const blocked = isObject(feedback) ? textOf(feedback['blockReason']) : '';
    if (blocked !== '' && this.#candidates.size === 0) this.#saidBy(0).raw = reasons[blocked] === 'refused' ? blocked : 'SAFETY';
    return events;
  }

  isFinished(): boolean {
    return this.#candidates.size > 0 && [...this.#candidates.values()].every(({ raw }) => raw !== undefined);
  }

  close(): readonly GenerateEvent[] {
    const events: GenerateEvent[] = [];
    for (const [candidate, said] of this.#candidates) {
      const { raw = '', calls, carried } = said;
      const reason = Object.hasOwn(reasons, raw) ? reasons[raw]! : calls > 0 ? 'tool' : 'stop';
      if (said.open && reason === 'tool') throw malformed(); // only an answer that was cut short may leave a call half said
      this.#closeCall(candidate, said, events);
      const cited = citedIn(said);
      if (cited.citations) events.push({ type: 'text', candidate, text: '', ...cited });
      events.push({ type: 'finished', candidate, reason, raw, ...carriedAs(carried) });
    }
    const last = usageOf(this.#usage);
    if (last) events.push({ type: 'usage', usage: last });
    return events;
  }

  /** Each chunk has the sums so far: where some of the answer is counted and no thoughts are, there were none. */
  counted(): Usage | undefined {
    const sums = usageOf(this.#usage);
    return sums && sums.output > 0 ? { thought: 0, ...sums } : sums;
  }

  #saidBy(candidate: number): CandidateState {
    let said = this.#candidates.get(candidate);
    if (!said) this.#candidates.set(candidate, (said = { calls: 0, carried: {}, text: '', before: 0 }));
    return said;
  }

  #takeCandidate(value: unknown, at: number, events: GenerateEvent[]): void {
    if (!isObject(value)) throw malformed();
    const index = value['index'] ?? at;
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= mostCandidates) throw malformed();
    const candidate = index as number;
    const said = this.#saidBy(candidate);
    const content = value['content'];
    const parts: unknown = isObject(content) ? (content['parts'] ?? []) : [];
    if (!Array.isArray(parts)) throw malformed();
    said.carried = together(said.carried, rest(value, candidateMembers));
    let logprobs = logprobsOf(value['logprobsResult']);
    for (const part of parts as readonly unknown[]) {
      if (!isObject(part)) throw malformed();
      const before = events.length;
      this.#takePart(part, candidate, said, events);
      const event = events[before];
      if (!logprobs || event?.type !== 'text') continue;
      events[before] = { ...event, logprobs };
      logprobs = undefined;
    }
    const raw = textOf(value['finishReason']);
    if (raw !== '' && raw !== 'FINISH_REASON_UNSPECIFIED') said.raw = raw;
  }

  #takePart(part: Loose, candidate: number, said: CandidateState, events: GenerateEvent[]): void {
    const { text, thought, functionCall, inlineData } = part;
    if (typeof text === 'string') {
      const type = thought === true ? 'thought' : 'text';
      const extra = carriedAs(rest(part, textMembers));
      if (this.#whole && said.plain === type) events.push({ type, candidate, text: '', ...(type === 'text' ? citedIn(said) : {}), extra: { [dialect]: {} } });
      if (type === 'text' && this.#cites) said.text += text;
      const cited = type === 'text' && extra.extra ? citedIn(said) : {};
      if (text !== '' || extra.extra) events.push({ type, candidate, text, ...cited, ...extra });
      said.plain = extra.extra ? undefined : type;
      return;
    }
    said.plain = undefined;
    if (isObject(functionCall)) this.#takeCall(functionCall, rest(part, callMembers), candidate, said, events);
    else if (isObject(inlineData)) {
      const mediaType = textOf(inlineData['mimeType']) || undefined;
      const media = {
        kind: kindOf(mediaType),
        ...(mediaType ? { mediaType } : {}),
        base64: textOf(inlineData['data']),
        ...carriedAs(rest(part, mediaMembers)),
      };
      events.push({ type: 'part', candidate, part: { type: 'media', ...media } });
    } else if (!isEmpty(part)) events.push({ type: 'part', candidate, part: { type: 'foreign', dialect, value: rest(part, none) } });
  }

  /** A call comes whole, or its arguments come piece by piece until one says that no other follows. */
  #takeCall(call: Loose, carried: JsonObject, candidate: number, said: CandidateState, events: GenerateEvent[]): void {
    const name = textOf(call['name']);
    if (name !== '') {
      if (said.open) throw malformed(); // nothing said that its arguments were whole
      if (said.calls >= mostCalls) throw malformed();
      const given = textOf(call['id']);
      const id = given || `call_${randomText(24)}`;
      const extra = carriedAs({ ...carried, ...rest(call, wholeCallMembers), ...(given === '' ? { '.unnamed': true } : {}) });
      const number = said.calls++;
      const goesOn = call['willContinue'] === true;
      const args = isObject(call['args']) ? call['args'] : {};
      events.push({ type: 'tool-call', candidate, call: number, id, name, json: goesOn ? '' : JSON.stringify(args), ...extra });
      if (goesOn) said.open = { call: number, id, args: partialArgs() };
      else return;
    }
    said.open?.args.take(call['partialArgs']);
    if (call['willContinue'] !== true) this.#closeCall(candidate, said, events);
  }

  #closeCall(candidate: number, said: CandidateState, events: GenerateEvent[]): void {
    if (!said.open) return;
    const { call, id, args } = said.open;
    events.push({ type: 'tool-call', candidate, call, id, json: JSON.stringify(args.value()) });
    said.open = undefined;
  }
}

/** What the open part rests on, as far as it is known when the part ends. */
function citedIn(said: CandidateState): { readonly citations?: readonly Citation[] } {
  const citations = citationsFrom(said.carried, said.text, said.before);
  said.before += Buffer.byteLength(said.text);
  said.text = '';
  return citations.length > 0 ? { citations } : {};
}

/** What a candidate says of itself, chunk after chunk: the last word counts, and citations are gathered. */
function together(before: JsonObject, now: JsonObject): JsonObject {
  const citations = [before, now].flatMap(({ citationMetadata: one }) => {
    const list: Json | undefined = isObject(one) ? (one['citations'] ?? one['citationSources']) : undefined;
    return Array.isArray(list) ? (list as readonly Json[]) : [];
  });
  return { ...before, ...now, ...(citations.length > 0 ? { citationMetadata: { citations } } : {}) };
}

const none = new Set<string>();
const chunkMembers = new Set(['candidates', 'usageMetadata', 'modelVersion']);
const candidateMembers = new Set(['content', 'finishReason', 'index', 'logprobsResult']);
const textMembers = new Set(['text', 'thought']);
const callMembers = new Set(['functionCall']);
const wholeCallMembers = new Set(['id', 'name', 'args', 'partialArgs', 'willContinue']);
const mediaMembers = new Set(['inlineData']);
