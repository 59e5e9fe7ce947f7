import type { Citation } from '#core/conversation';
import type { FinishReason, GenerateEvent, TokenLogprob, Usage } from '#core/event';
import type { Fault } from '#core/fault';
import { isEmpty, isObject, rest, textOf, type Json, type JsonObject } from '#core/json';
import { isCount } from '../../shared/read-fields.ts';
import type { Reader } from '../../shared/decoder.ts';
import { tokenLogprobsOf } from '../logprobs.ts';
import { newCalls, takeBlank, takeFunctionCall, takeHeld, takeToolCalls, type Calls } from './decode-calls.ts';
import { faultOfError, malformed } from './faults.ts';
import { mediaOfImage, soundType } from './media.ts';
import { takeDetails } from './reasoning-details.ts';
import { usageOf } from './usage.ts';
import { dialect, type Choice, type Chunk, type Delta } from './wire.ts';

/** The finish reasons of this wire. Vendors have further ones: https://docs.mistral.ai/api, https://api-docs.deepseek.com, https://github.com/vllm-project/vllm/blob/main/vllm/v1/engine/__init__.py */
const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool',
  function_call: 'tool',
  content_filter: 'refused',
  model_length: 'length',
};
const failures: ReadonlySet<string> = new Set(['error', 'abort', 'insufficient_system_resource']);

/** More candidates than a request may ask for: a larger index is malformed. */
const mostCandidates = 128;

/**
 * Decodes the chunks of a stream in their order, or a whole answer at once: a whole message is one delta with everything. It is finished when at least one
 * candidate has ended, and every candidate that began has.
 * @param names of the declared tools, where names of calls may come in pieces
 * @param asked how many candidates were asked for
 */
export const reader = (model: string, ignored: readonly string[], names?: ReadonlySet<string>, asked = 1): Reader =>
  new ChunkReader(model, ignored, names, asked);

class ChunkReader implements Reader {
  readonly #model: string;
  readonly #ignored: readonly string[];
  readonly #names: ReadonlySet<string> | undefined;
  readonly #candidates: Candidate[] = [];
  #before: Record<string, Json> = {}; // carried members of chunks before the first choice: Azure sends its filter results first
  #id = ''; // of the answer
  #started = false;
  readonly #asked: number;
  #usage: unknown;
  #isCounted = false; // the usage has come with the last finish reason or behind it
  #isMisplaced = false; // no client looks for it there
  #ofChoice: unknown; // that of one choice, which is all there is where there is no other
  #tier = ''; // the one that answers
  #served = ''; // the name of its model
  #isFlat = false; // Groq's tiers cost the same: https://console.groq.com/docs/service-tiers

  constructor(model: string, ignored: readonly string[], names: ReadonlySet<string> | undefined, asked: number) {
    this.#asked = asked;
    this.#model = model;
    this.#ignored = ignored;
    this.#names = names;
  }

  take(answer: unknown): readonly GenerateEvent[] {
    const chunk = chunkOf(answer);
    if (!this.#started) this.#before = { ...this.#before, ...carriedOf(chunk) };
    this.#tier = textOf(chunk.service_tier) || this.#tier;
    this.#served ||= textOf(chunk.model);
    this.#isFlat ||= isObject(chunk.x_groq);
    const its = usageIn(chunk);
    this.#isCounted = its !== undefined || (this.#isCounted && this.isFinished());
    if (its !== undefined) [this.#usage, this.#isMisplaced] = [its, its !== chunk.usage];
    const fault = faultIn(chunk);
    if (fault) throw fault; // its usage counts
    const choices = choicesOf(chunk);
    this.#ofChoice = usageOfChoice(choices.at(-1)) ?? this.#ofChoice;
    if (choices.length === 0) return [];
    const isOther = this.#id !== '' && textOf(chunk.id) !== '' && chunk.id !== this.#id;
    if (this.#id === '') this.#id = textOf(chunk.id);
    const events: GenerateEvent[] = [];
    if (!this.#started) this.#start(chunk, events);
    for (let at = 0; at < choices.length; at++) {
      const choice = choices[at];
      if (!isObject(choice)) throw malformed();
      const index = indexOf(choice, at);
      const candidate = (this.#candidates[index] ??= newCandidate(this.#names));
      if (isOther && candidate.hasBegun && !candidate.finished && startsMessage(choice)) throw malformed();
      takeChoice(choice, index, candidate, events);
    }
    this.#noteTier(events);
    return events;
  }

  /** Responses end with the tier that answered. */
  #noteTier(events: GenerateEvent[]): void {
    const last = events.at(-1);
    if (last?.type !== 'finished' || this.#tier === '' || this.#tier === 'auto') return;
    events[events.length - 1] = { ...last, extra: { ...last.extra, 'openai-responses': { service_tier: this.#tier } } };
  }

  isFinished(): boolean {
    return this.#started && this.#candidates.every((one) => one.finished);
  }

  /** Some servers send neither `[DONE]` nor an end. */
  isOver(): boolean {
    return this.#isCounted && this.hasAll() && this.isFinished();
  }

  hasAll(): boolean {
    return this.#candidates.length >= this.#asked;
  }

  close(): readonly GenerateEvent[] {
    const last = this.counted();
    if (!last) return [];
    const isUncounted = last.output === 0 && this.#candidates.some((one) => one.hasBegun);
    return [{ type: 'usage', usage: last, ...(this.#isMisplaced || isUncounted || this.#usage === undefined ? { misplaced: true as const } : {}) }];
  }

  counted(): Usage | undefined {
    const told = this.#usage ?? (this.#candidates.length === 1 ? this.#ofChoice : undefined);
    return usageOf(told, { tier: this.#isFlat ? '' : this.#tier, model: this.#served || this.#model });
  }

  #start(chunk: Chunk, events: GenerateEvent[]): void {
    this.#started = true;
    const model = this.#served || this.#model;
    const extra = isEmpty(this.#before) ? {} : { extra: { [dialect]: this.#before } };
    events.push({ type: 'started', model, ignored: this.#ignored, ...extra });
  }
}

/**
 * What a whole answer of one text says of itself, for those who forward it unparsed: the same events as `reader` has for it, with `passed` in place of those of its content.
 *
 * @returns undefined for any other answer, which is to be decoded
 */
export function plainAnswer(answer: unknown, model: string): readonly GenerateEvent[] | undefined {
  if (!isObject(answer) || answer['error'] || answer['x_groq'] || !Array.isArray(answer['choices']) || answer['choices'].length !== 1) return undefined;
  const { model: name, usage, service_tier: tier, choices } = answer;
  const choice: unknown = choices[0];
  if (!isObject(choice) || (choice['index'] ?? 0) !== 0 || (choice['delta'] ?? null) !== null || !isObject(choice['message'])) return undefined;
  const { content, refusal, tool_calls: calls, function_call: call } = choice['message'];
  const { finish_reason: raw } = choice;
  if (typeof content !== 'string' || content === '' || refusal || calls || call || typeof raw !== 'string' || !Object.hasOwn(reasons, raw)) return undefined;
  const served = textOf(name) || model;
  const counted = usageOf(usage, { tier: textOf(tier), model: served });
  if (!counted || counted.output === 0) return undefined;
  return [
    { type: 'started', model: served, ignored: [] },
    { type: 'passed', tokens: 0, text: content },
    { type: 'finished', candidate: 0, reason: reasonOf(raw, false), raw },
    { type: 'usage', usage: counted },
  ];
}

/** @throws Fault for what is neither an object nor an error in a list */
function chunkOf(answer: unknown): Chunk {
  const chunk: unknown = Array.isArray(answer) ? answer[0] : answer;
  if (!isObject(chunk)) throw malformed();
  if (Array.isArray(answer)) throw faultIn(chunk) ?? malformed();
  return chunk;
}

/** An error where an answer should be: `{"error": …}`, vLLM's `{"object": "error", …}` or a bare `{"message", "type", …}`; or why Groq stopped in the middle (`x_groq`). */
function faultIn(chunk: Readonly<Record<string, unknown>>): Fault | undefined {
  const { error, x_groq: groq, object, choices, message } = chunk;
  if (error) return faultOfError(error);
  if (isObject(groq) && groq['error']) return faultOfError({ code: groq['error'] });
  return object === 'error' || (choices === undefined && typeof message === 'string') ? faultOfError(chunk) : undefined;
}

/** The usage of a chunk, also where Groq has it (`x_groq`). */
function usageIn({ usage, x_groq: groq }: Chunk): unknown {
  if (usageOf(usage)) return usage;
  return isObject(groq) && usageOf(groq['usage']) ? groq['usage'] : undefined;
}

/** Moonshot has the usage with the choice. https://github.com/earendil-works/pi/issues/2017 */
const usageOfChoice = (choice: unknown): unknown => (isObject(choice) && usageOf(choice['usage']) ? choice['usage'] : undefined);

function choicesOf({ choices }: Chunk): readonly unknown[] {
  if (choices === undefined || choices === null) return [];
  if (!Array.isArray(choices) || choices.length > mostCandidates) throw malformed();
  return choices;
}

function indexOf({ index }: Choice, at: number): number {
  if (index === undefined || index === null) return at;
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= mostCandidates) throw malformed();
  return index;
}

const notCarried: ReadonlySet<string> = new Set(['choices', 'usage', 'model', 'object', 'error', 'obfuscation']);

/** The carried members of the answer: id, created, system_fingerprint, service_tier and vendor-specific ones. */
function carriedOf(chunk: Chunk): Record<string, Json> {
  const carried = rest(chunk, notCarried);
  if (typeof carried['id'] !== 'string' || carried['id'] === '') delete carried['id'];
  if (!Number.isSafeInteger(carried['created']) || (carried['created'] as number) <= 0) delete carried['created'];
  return carried;
}

/** A delta with a role begins a message. Some vendors repeat the role in each chunk, and some give each chunk an id of its own. */
const startsMessage = ({ delta }: Choice): boolean => isObject(delta) && textOf(delta['role']) !== '';

// ——— one candidate ———

interface Candidate {
  readonly calls: Calls;
  /** Fields of the message that no event has: they are emitted with `finished`. */
  readonly carried: Record<string, Json[]>;
  hasBegun: boolean;
  finished: boolean;
  /** The field of the thought that has not ended. */
  thinksIn?: string | undefined;
  /** The `reasoning_details` since the end of the last thought. */
  details: JsonObject[];
}

const newCandidate = (names: ReadonlySet<string> | undefined): Candidate => ({
  calls: newCalls(names),
  carried: {},
  hasBegun: false,
  finished: false,
  details: [],
});

function takeChoice(choice: Choice, index: number, candidate: Candidate, events: GenerateEvent[]): void {
  if (candidate.finished) return;
  const message = choice.delta ?? choice.message;
  const logprobs = choice.logprobs ? logprobsOf(choice.logprobs, candidate) : undefined;
  const before = events.length;
  if (isObject(message)) takeMessage(message, index, candidate, logprobs, events);
  else if (logprobs) events.push({ type: 'text', candidate: index, text: '', logprobs });
  candidate.hasBegun ||= events.length > before;
  const raw = choice.finish_reason;
  const whole = choice.delta === undefined && choice.message !== undefined;
  if (typeof raw === 'string' && raw !== '') finish(raw, choice, index, candidate, events);
  else if (whole) finish('', choice, index, candidate, events);
}

function finish(raw: string, choice: Choice, index: number, candidate: Candidate, events: GenerateEvent[]): void {
  if (failures.has(raw)) throw faultOfError((choice as { error?: unknown }).error ?? { type: 'server_error' });
  takeHeld(index, candidate.calls, events);
  if (candidate.calls.list.some((call) => !call.named)) throw malformed();
  candidate.finished = true;
  // Those that come behind everything else are worth something to the provider alone, beside the calls.
  if (candidate.thinksIn !== undefined || (candidate.details.length > 0 && candidate.calls.list.length > 0)) events.push(endedThought(candidate, index));
  const tools = candidate.calls.list.length > 0;
  const reason = reasonOf(raw, tools);
  // Only an answer that was cut short may have incomplete tool arguments.
  if (reason === 'stop' || reason === 'tool') {
    if (candidate.calls.list.some(({ unclosed }) => unclosed.isOpen)) throw malformed();
    takeBlank(index, candidate.calls, events);
  }
  const citations = (candidate.carried['annotations'] ?? []).flatMap(citationOf);
  // Marked as this wire's own: its encoder writes the original annotations.
  if (citations.length > 0) events.push({ type: 'text', candidate: index, text: '', citations, extra: { [dialect]: {} } });
  const extra = isEmpty(candidate.carried) ? {} : { extra: { [dialect]: candidate.carried } };
  events.push({ type: 'finished', candidate: index, reason, raw, ...extra });
}

/** Clients expect a call where an answer ends for its tools, and only there. */
function reasonOf(raw: string, hasCalls: boolean): FinishReason {
  const reason = Object.hasOwn(reasons, raw) ? reasons[raw]! : 'stop';
  return reason === 'stop' || reason === 'tool' ? (hasCalls ? 'tool' : 'stop') : reason;
}

function takeMessage(message: Delta, index: number, candidate: Candidate, logprobs: readonly TokenLogprob[] | undefined, events: GenerateEvent[]): void {
  const field = textOf(message.reasoning_content) === '' ? 'reasoning' : 'reasoning_content';
  const thought = textOf(message[field]);
  if (thought !== '') {
    candidate.thinksIn = field;
    events.push({ type: 'thought', candidate: index, text: thought });
  }
  if (message.reasoning_details) {
    carry(candidate, 'reasoning_details', message.reasoning_details);
    takeDetails(candidate.details, message.reasoning_details);
  }
  const before = events.length;
  const isThinking = candidate.thinksIn !== undefined || (candidate.details.length > 0 && candidate.calls.list.length === 0);
  takeContent(message, index, candidate, logprobs, events);
  if (isThinking && events.slice(before).some((event) => event.type !== 'text' || event.text !== '')) events.splice(before, 0, endedThought(candidate, index));
}

/** The end of a thought, with the field in which a provider of this wire takes it back, and what it has to be given back besides. */
function endedThought(candidate: Candidate, index: number): GenerateEvent {
  const { thinksIn: field = 'reasoning', details } = candidate;
  candidate.thinksIn = undefined;
  candidate.details = [];
  return { type: 'thought', candidate: index, text: '', extra: { [dialect]: { field, ...(details.length > 0 ? { details } : {}) } } };
}

function takeContent(message: Delta, index: number, candidate: Candidate, logprobs: readonly TokenLogprob[] | undefined, events: GenerateEvent[]): void {
  if (Array.isArray(message.content)) for (const part of message.content) takePart(part, index, events);
  const text = textOf(message.content);
  if (logprobs) events.push({ type: 'text', candidate: index, text, logprobs });
  else if (text !== '') events.push({ type: 'text', candidate: index, text });
  const refusal = textOf(message.refusal);
  if (refusal !== '') events.push({ type: 'refusal', candidate: index, text: refusal });
  if (Array.isArray(message.tool_calls)) takeToolCalls(message.tool_calls, index, candidate.calls, events);
  if (isObject(message.function_call)) takeFunctionCall(message.function_call, index, candidate.calls, events);
  if (Array.isArray(message.images)) for (const image of message.images) takePart(image, index, events);
  if (isObject(message.audio)) takeAudio(message.audio, index, events);
  if (message.annotations) carry(candidate, 'annotations', message.annotations);
}

/** Content in parts (Mistral: `text` and `thinking`) and images beside the content (OpenRouter). */
function takePart(part: unknown, candidate: number, events: GenerateEvent[]): void {
  if (!isObject(part)) return;
  if (part['type'] === 'text' && textOf(part['text']) !== '') events.push({ type: 'text', candidate, text: textOf(part['text']) });
  if (part['type'] === 'thinking' && Array.isArray(part['thinking'])) {
    for (const one of part['thinking']) {
      if (isObject(one) && textOf(one['text']) !== '') events.push({ type: 'thought', candidate, text: textOf(one['text']) });
    }
  }
  if (part['type'] === 'image_url' && isObject(part['image_url'])) {
    const media = mediaOfImage(textOf(part['image_url']['url']));
    if (media) events.push({ type: 'part', candidate, part: media });
  }
}

function takeAudio(audio: Readonly<Record<string, unknown>>, candidate: number, events: GenerateEvent[]): void {
  const { data, transcript, ...others } = audio as JsonObject;
  const base64 = textOf(data);
  const said = typeof transcript === 'string' ? { transcript } : {};
  const type = base64 === '' ? {} : { mediaType: soundType(base64) };
  events.push({ type: 'part', candidate, part: { type: 'media', kind: 'audio', ...type, base64, ...said, extra: { [dialect]: others } } });
}

function carry(candidate: Candidate, name: string, list: unknown): void {
  if (!Array.isArray(list)) return;
  for (const one of list as readonly Json[]) (candidate.carried[name] ??= []).push(one);
}

// ——— log probabilities ———

function logprobsOf(value: unknown, candidate: Candidate): readonly TokenLogprob[] | undefined {
  if (!isObject(value)) return undefined;
  carry(candidate, '.refusal_logprobs', value['refusal']);
  return tokenLogprobsOf(value['content']);
}

function citationOf(annotation: Json): readonly Citation[] {
  const cited: unknown = isObject(annotation) ? annotation['url_citation'] : undefined;
  if (!isObject(cited)) return [];
  const { url, title, start_index: start, end_index: end } = cited;
  return isCount(start) && isCount(end) && start <= end && textOf(url) !== '' ? [{ url: textOf(url), title: textOf(title), start, end }] : [];
}
