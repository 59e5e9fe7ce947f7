import { randomText } from '#kit/crypto/ids';
import type { Citation } from '#core/conversation';
import type { FinishReason, GenerateEvent, Usage } from '#core/event';
import { isEmpty, isObject, rest, textOf, type JsonObject } from '#core/json';
import { writtenOfArguments } from '../shared/arguments.ts';
import { DistinctIds } from '../shared/distinct-ids.ts';
import type { Reader } from '../shared/decoder.ts';
import { mostQuotable } from '../shared/text-ends.ts';
import { kindOf } from './decode-contents.ts';
import { faultOfError, malformed, withoutContent } from './faults.ts';
import { citationsFrom, citedSources, searchesIn } from './grounding.ts';
import { logprobsOf } from './logprobs.ts';
import { partialArgs, type PartialArgs } from './partial-args.ts';
import { usageOf } from './usage.ts';
import { blockedPrompt, carriedAs, dialect, type Loose } from './wire.ts';

/** The finish reasons of this wire; any other is a `stop`, with its raw value kept. */
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
  ESCALATION: 'refused',
  CONTINUATION: 'length', // the limit of a request: clients of this wire go on with the `continuationToken`
  // The model failed: what it had said is not all of its answer. https://ai.google.dev/api/generate-content#FinishReason
  MALFORMED_FUNCTION_CALL: 'length',
  UNEXPECTED_TOOL_CALL: 'length',
  MALFORMED_RESPONSE: 'length',
  MISSING_THOUGHT_SIGNATURE: 'length',
  TOO_MANY_TOOL_CALLS: 'length',
  OTHER: 'length',
  NO_IMAGE: 'length',
  IMAGE_OTHER: 'length',
  PUP_LIMITED_DISABLED: 'length', // the provider has limited or disabled the account
};
/** With these an answer without content is one all the same; with any other the model failed. */
const emptyEndings: ReadonlySet<string> = new Set(['STOP', ...Object.keys(reasons).filter((raw) => reasons[raw] === 'refused'), 'MAX_TOKENS', 'CONTINUATION']);

interface CandidateState {
  /** It has content: thoughts are none. */
  spoke: boolean;
  calls: number;
  readonly ids: DistinctIds;
  /** The kind of its last part while it is open: the next of its kind would be appended to it. */
  plain?: 'text' | 'thought' | undefined;
  /** A function call whose arguments are incomplete. */
  open?: { readonly call: number; readonly id: string; readonly args: PartialArgs } | undefined;
  raw?: string;
  carried: JsonObject;
  /** The text of the open part, the bytes of it that are not kept behind that, and the bytes of text in the parts before it. */
  text: string;
  unkept: number;
  before: number;
}

/** Far more than any real answer has: a limit against misbehaving upstreams. */
const mostCandidates = 128;
const mostCalls = 10_000;

interface Reading {
  /** Consecutive parts of one kind are separate parts, and not fragments of one. */
  readonly whole?: boolean;
  /** Characters of text that are kept for the citations that may follow, of all candidates together. */
  readonly quotable?: number;
  /** How many candidates were asked for. */
  readonly asked?: number | undefined;
}

/**
 * Decodes the chunks of a stream in their order; a whole answer is one chunk. It is finished when every candidate has a finish reason, which is emitted after
 * all other events: some models send it with each chunk.
 */
export const reader = (model: string, ignored: readonly string[], reading: Reading = {}): Reader => new ContentReader(model, ignored, reading);

class ContentReader implements Reader {
  readonly #model: string;
  readonly #ignored: readonly string[];
  readonly #whole: boolean;
  #quotable: number;
  readonly #asked: number;
  readonly #candidates = new Map<number, CandidateState>();
  #id = ''; // of the answer
  #started = false;
  #usage: JsonObject = {};
  #failure: CandidateState | undefined; // one whose model failed

  constructor(model: string, ignored: readonly string[], { whole = false, quotable = mostQuotable, asked = 1 }: Reading) {
    this.#model = model;
    this.#ignored = ignored;
    this.#whole = whole;
    this.#quotable = quotable;
    this.#asked = asked;
  }

  take(chunk: unknown): readonly GenerateEvent[] {
    if (!isObject(chunk)) throw malformed();
    if (isObject(chunk['error'])) throw faultOfError(chunk['error']);
    const chunkId = textOf(chunk['responseId']);
    if (this.#id !== '' && chunkId !== '' && chunkId !== this.#id) throw malformed();
    this.#id ||= chunkId;
    const events: GenerateEvent[] = [];
    const isFirst = !this.#started;
    if (isObject(chunk['usageMetadata'])) this.#usage = { ...this.#usage, ...rest(chunk['usageMetadata'], none) };
    if (!this.#started) {
      this.#started = true;
      const counted = this.counted();
      const members = { model: textOf(chunk['modelVersion']) || this.#model, ignored: this.#ignored, ...(counted ? { usage: counted } : {}) };
      events.push({ type: 'started', ...members, ...carriedAs(rest(chunk, chunkMembers)) });
    }
    const candidates: unknown = chunk['candidates'] ?? [];
    if (!Array.isArray(candidates)) throw malformed();
    for (const [at, one] of candidates.entries()) this.#takeCandidate(one, at, events);
    const feedback = chunk['promptFeedback'];
    const blocked = isObject(feedback) ? textOf(feedback['blockReason']) : '';
    if (blocked !== '') {
      if (this.#candidates.size === 0) this.#stateOf(0).carried = { [blockedPrompt]: rest(feedback as JsonObject, none) };
      for (const state of this.#candidates.values()) state.raw ??= reasons[blocked] === 'refused' ? blocked : 'SAFETY'; // also in the middle of an answer
    }
    if (this.#failure && this.#isWithoutContent()) throw withoutContent(this.#failure.raw, this.#failure.carried['finishMessage'], isFirst);
    return events;
  }

  isFinished(): boolean {
    return this.#candidates.size > 0 && [...this.#candidates.values()].every(({ raw }) => raw !== undefined);
  }

  hasAll(): boolean {
    return this.#candidates.size >= this.#asked;
  }

  close(): readonly GenerateEvent[] {
    const events: GenerateEvent[] = [];
    let searches = 0;
    for (const [candidate, state] of this.#candidates) {
      const { raw = '', calls, carried } = state;
      const reason = Object.hasOwn(reasons, raw) ? reasons[raw]! : calls > 0 ? 'tool' : 'stop';
      if (state.open && reason === 'tool') throw malformed(); // only an answer that was cut short may have an incomplete call
      this.#closeCall(candidate, state, events, 'cut');
      const cited = citedIn(state);
      if (cited.citations) events.push({ type: 'text', candidate, text: '', ...cited });
      for (const part of searchesIn(carried)) {
        events.push({ type: 'part', candidate, part });
        searches++;
      }
      events.push({ type: 'finished', candidate, reason, raw, ...carriedAs(carried) });
    }
    const last = usageOf(this.#usage);
    if (last) events.push({ type: 'usage', usage: searches > 0 ? { ...last, searches } : last });
    return events;
  }

  /** Each chunk has cumulative counts: output tokens without a thought count mean that there were no thoughts. */
  counted(): Usage | undefined {
    const sums = usageOf(this.#usage);
    return sums && sums.output > 0 ? { thought: 0, ...sums } : sums;
  }

  /** Has the answer ended without anything to show? Then another target may answer. */
  #isWithoutContent(): boolean {
    return this.isFinished() && [...this.#candidates.values()].every(({ spoke }) => !spoke);
  }

  #stateOf(candidate: number): CandidateState {
    let state = this.#candidates.get(candidate);
    if (!state) this.#candidates.set(candidate, (state = { spoke: false, calls: 0, ids: new DistinctIds(), carried: {}, text: '', unkept: 0, before: 0 }));
    return state;
  }

  #takeCandidate(value: unknown, at: number, events: GenerateEvent[]): void {
    if (!isObject(value)) throw malformed();
    const index = value['index'] ?? at;
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= mostCandidates) throw malformed();
    const candidate = index as number;
    const state = this.#stateOf(candidate);
    const content = value['content'];
    const parts: unknown = isObject(content) ? (content['parts'] ?? []) : [];
    if (!Array.isArray(parts)) throw malformed();
    state.carried = merged(state.carried, rest(value, candidateMembers));
    let logprobs = logprobsOf(value['logprobsResult']);
    for (const part of parts as readonly unknown[]) {
      if (!isObject(part)) throw malformed();
      const before = events.length;
      this.#takePart(part, candidate, state, events);
      const event = events[before];
      if (!logprobs || event?.type !== 'text') continue;
      events[before] = { ...event, logprobs };
      logprobs = undefined;
    }
    const raw = textOf(value['finishReason']);
    if (raw !== '' && raw !== 'FINISH_REASON_UNSPECIFIED') state.raw = raw;
    if (state.raw !== undefined && !emptyEndings.has(state.raw)) this.#failure = state;
  }

  #takePart(part: Loose, candidate: number, state: CandidateState, events: GenerateEvent[]): void {
    const { text, thought, functionCall, inlineData } = part;
    if (typeof text === 'string') {
      const type = thought === true ? 'thought' : 'text';
      const extra = carriedAs(rest(part, textMembers));
      state.spoke ||= type === 'text' && text !== '';
      if (this.#whole && state.plain === type) events.push({ type, candidate, text: '', ...(type === 'text' ? citedIn(state) : {}), extra: { [dialect]: {} } });
      if (type === 'text') this.#quote(state, text);
      const cited = type === 'text' && extra.extra ? citedIn(state) : {};
      if (text !== '' || extra.extra) events.push({ type, candidate, text, ...cited, ...extra });
      state.plain = extra.extra ? undefined : type;
      return;
    }
    state.plain = undefined;
    state.spoke ||= !isEmpty(part);
    if (isObject(functionCall)) this.#takeCall(functionCall, rest(part, callMembers), candidate, state, events);
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

  /** Text is kept until its part ends, while there is room. */
  #quote(state: CandidateState, text: string): void {
    if (state.unkept === 0 && text.length <= this.#quotable) {
      this.#quotable -= text.length;
      state.text += text;
    } else state.unkept += Buffer.byteLength(text);
  }

  /** A call comes whole, or its arguments stream until a fragment without `willContinue`. */
  #takeCall(call: Loose, carried: JsonObject, candidate: number, state: CandidateState, events: GenerateEvent[]): void {
    const name = textOf(call['name']);
    if (name !== '') {
      if (state.open) throw malformed(); // the call before was never completed
      if (state.calls >= mostCalls) throw malformed();
      const given = textOf(call['id']);
      const id = given === '' ? `call_${randomText(24)}` : state.ids.take(given);
      const extra = carriedAs({ ...carried, ...rest(call, wholeCallMembers), ...(given === '' ? { '.unnamed': true } : {}) });
      const number = state.calls++;
      const willContinue = call['willContinue'] === true;
      const { args } = call;
      events.push({ type: 'tool-call', candidate, call: number, id, name, json: willContinue ? '' : writtenOfArguments(args), ...extra });
      if (willContinue) state.open = { call: number, id, args: partialArgs() };
      else return;
    }
    if (!state.open && isObject(call['args']) && !isEmpty(call['args'])) throw malformed(); // of what?
    state.open?.args.take(call['partialArgs']);
    if (call['willContinue'] !== true) this.#closeCall(candidate, state, events);
  }

  /** @param end `cut`: its arguments break off, and so does their text. */
  #closeCall(candidate: number, state: CandidateState, events: GenerateEvent[], end: 'whole' | 'cut' = 'whole'): void {
    if (!state.open) return;
    const { call, id, args } = state.open;
    events.push({ type: 'tool-call', candidate, call, id, json: end === 'cut' ? args.json().slice(0, -1) : args.json() });
    state.open = undefined;
  }
}

/** The citations of the open part that are known when it ends; resets its text. */
function citedIn(state: CandidateState): { readonly citations?: readonly Citation[] } {
  const citations = citationsFrom(state.carried, state.text, state.before);
  state.before += Buffer.byteLength(state.text) + state.unkept;
  state.text = '';
  state.unkept = 0;
  return citations.length > 0 ? { citations } : {};
}

/** Merges the carried members of a candidate's chunks: the last value counts, and citations are concatenated, under the name that the provider's API has for them. */
function merged(before: JsonObject, now: JsonObject): JsonObject {
  const lists = [before, now].map(({ citationMetadata: one }) => citedSources(one));
  const citations = lists.flatMap(({ list }) => list);
  const { name } = lists.findLast(({ list }) => list.length > 0) ?? { name: 'citations' };
  return { ...before, ...now, ...(citations.length > 0 ? { citationMetadata: { [name]: citations } } : {}) };
}

const none = new Set<string>();
const chunkMembers = new Set(['candidates', 'usageMetadata', 'modelVersion']);
const candidateMembers = new Set(['content', 'finishReason', 'index', 'logprobsResult']);
const textMembers = new Set(['text', 'thought']);
const callMembers = new Set(['functionCall']);
const wholeCallMembers = new Set(['id', 'name', 'args', 'partialArgs', 'willContinue']);
const mediaMembers = new Set(['inlineData']);
