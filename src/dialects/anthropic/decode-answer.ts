import { randomText } from '#kit/crypto/ids';
import type { Citation, ForeignPart } from '#core/conversation';
import type { FinishReason, GenerateEvent, Usage } from '#core/event';
import { isEmpty, isObject, rest, textOf, type Extra, type Json, type JsonObject } from '#core/json';
import { codePoints } from '#kit/text/surrogates';
import { argumentsOf, writtenOfArguments } from '../shared/arguments.ts';
import { DistinctIds } from '../shared/distinct-ids.ts';
import { isCount } from '../shared/read-fields.ts';
import type { Reader } from '../shared/decoder.ts';
import { UnclosedJson } from '../shared/unclosed-json.ts';
import { faultOfError, malformed } from './faults.ts';
import { servedTier, usageOf } from './usage.ts';
import { carriedAs, dialect, type Loose } from './wire.ts';

const reasons: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'length', // of a turn that goes on where it is sent back: elsewhere only this says that it is not over
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool',
  refusal: 'refused',
};

interface Open {
  readonly block: Loose;
  /** Number and id of the tool call, if it is one. */
  readonly call: number;
  readonly id: string;
  /** The fragments of its input so far. */
  json: string;
  readonly unclosed: UnclosedJson;
  citations: Json[];
  /** Length of its text in code points. */
  length: number;
  signature: string;
  /** Members that deltas of unknown types added. */
  added?: Record<string, Json>;
}

const mostQueries = 100;

/** Far more than any real answer has: a limit against misbehaving upstreams. */
const mostBlocks = 10_000;

/** Decodes the events of a stream in their order; a whole answer is decoded as the events that would have streamed it. */
export const reader = (model: string, ignored: readonly string[]): Reader => new MessageReader(model, ignored);

/**
 * What a whole answer of text says of itself, for those who forward it unparsed: the same events as `reader` has for it, with `passed` in place of those of its content.
 *
 * @returns undefined for any other answer, which is to be decoded
 */
export function plainAnswer(answer: unknown, model: string, ignored: readonly string[]): readonly GenerateEvent[] | undefined {
  if (!isObject(answer) || answer['type'] !== 'message' || answer['error'] || textOf(answer['id']) === '') return undefined;
  const { content, stop_reason: raw, usage } = answer;
  if (!Array.isArray(content) || content.length === 0 || !content.every(isPlainText)) return undefined;
  const reason = typeof raw === 'string' && Object.hasOwn(reasons, raw) ? reasons[raw]! : 'tool';
  const counted = usageOf(usage);
  if (!counted || counted.output === 0 || (reason !== 'stop' && reason !== 'length')) return undefined;
  return [
    { type: 'started', model: textOf(answer['model']) || model, ignored },
    { type: 'passed', tokens: 0, text: content.map(({ text }) => text).join('') },
    { type: 'finished', candidate: 0, reason, raw: textOf(raw) },
    { type: 'usage', usage: counted },
  ];
}

const isPlainText = (block: unknown): block is { readonly text: string } =>
  isObject(block) && block['type'] === 'text' && textOf(block['text']) !== '' && !block['citations'];

class MessageReader implements Reader {
  readonly #model: string;
  readonly #ignored: readonly string[];
  readonly #open = new Map<unknown, Open>();
  readonly #known = new Set<unknown>(); // indexes of all blocks that were started
  #blocks = 0;
  #isTruncated = false; // a block was stopped before its input was complete
  #calls = 0;
  readonly #ids = new DistinctIds();
  #plain: 'text' | 'thinking' | undefined; // the kind of the last part while it is open: the next of its kind would be appended to it
  #started = false;
  #finished = false;
  #isOver = false; // some proxies send more after the last event
  #usage: JsonObject = {};
  #isCounted = false; // the output, at the end of the answer
  readonly #queries = new Map<string, string>(); // of the provider's searches, by their ids

  constructor(model: string, ignored: readonly string[]) {
    this.#model = model;
    this.#ignored = ignored;
  }

  take(event: unknown): readonly GenerateEvent[] {
    const events: GenerateEvent[] = [];
    if (this.#isOver) return events;
    if (!isObject(event)) throw malformed();
    switch (event['type']) {
      case 'message_start':
        this.#start(event, events);
        break;
      case 'content_block_start':
        if (!this.#started || this.#finished) throw malformed();
        this.#startBlock(event['index'], event['content_block'], events);
        break;
      case 'content_block_delta': {
        const one = this.#open.get(event['index']);
        if (!one || !isObject(event['delta'])) throw malformed();
        this.#takeDelta(one, event['delta'], events);
        break;
      }
      case 'content_block_stop':
        this.#stopBlock(event['index'], events);
        break;
      case 'message_delta':
        if (!this.#started) throw malformed();
        this.#finish(event, events);
        break;
      case 'error':
        throw faultOfError(event['error']);
      case 'message_stop':
        this.#isOver = this.#finished;
        break;
      case 'ping':
        break;
      default:
        if (event['type'] === undefined && isObject(event['error'])) throw faultOfError(event['error']); // of servers in front of the provider
        if (typeof event['type'] !== 'string') throw malformed();
    }
    return events;
  }

  isFinished(): boolean {
    return this.#finished;
  }

  /** Some servers send no `message_stop`. */
  isOver(): boolean {
    return this.#isOver || (this.#finished && this.#isCounted);
  }

  mayEnd(): boolean {
    return this.#finished || (this.#blocks > 0 && this.#open.size === 0);
  }

  close(): readonly GenerateEvent[] {
    const last = this.#isCounted ? usageOf(this.#usage) : undefined;
    return last ? [{ type: 'usage', usage: last }] : [];
  }

  counted(): Usage | undefined {
    return usageOf(this.#usage);
  }

  #count(value: unknown): void {
    if (!isObject(value)) return;
    const told = { ...this.#usage, ...rest(value, none) };
    // Some servers end with an input of 0.
    const isTakenBack = inputIn(told) === 0 && inputIn(this.#usage) > 0;
    this.#usage = isTakenBack ? { ...this.#usage, ...rest(value, inputCounts) } : told;
  }

  #start({ message }: Loose, events: GenerateEvent[]): void {
    if (this.#started) {
      if (this.#blocks > 0 || this.#finished) throw malformed();
      return; // some proxies send it twice
    }
    this.#started = true;
    const fields = isObject(message) ? message : {};
    this.#count(fields['usage']);
    const carried = rest(fields, notCarried);
    const counted = usageOf({ output_tokens: 0, ...this.#usage });
    events.push({
      type: 'started',
      model: textOf(fields['model']) || this.#model,
      ignored: this.#ignored,
      ...(counted ? { usage: counted } : {}),
      ...extraOf({ [dialect]: carried, 'openai-chat': servedTier(this.#usage) }),
    });
  }

  #startBlock(index: unknown, block: unknown, events: GenerateEvent[]): void {
    if (!isObject(block) || this.#open.has(index) || ++this.#blocks > mostBlocks) throw malformed();
    const type = textOf(block['type']);
    const given = textOf(block['id']);
    const id = given === '' ? `toolu_${randomText(24)}` : type === 'tool_use' ? this.#ids.take(given) : given; // some servers omit or repeat it
    const one: Open = {
      block,
      call: type === 'tool_use' ? this.#calls++ : -1,
      id,
      json: '',
      unclosed: new UnclosedJson(),
      citations: [],
      length: 0,
      signature: textOf(block['signature']),
    };
    this.#open.set(index, one);
    this.#known.add(index);
    if (type === 'text' || type === 'thinking') {
      if (this.#plain === type) events.push({ type: type === 'text' ? 'text' : 'thought', candidate: 0, text: '', extra: { [dialect]: {} } });
      this.#plain = type;
      const text = textOf(block[type]);
      one.length = codePoints(text);
      if (text !== '') events.push({ type: type === 'text' ? 'text' : 'thought', candidate: 0, text });
      if (Array.isArray(block['citations'])) one.citations = [...(block['citations'] as Json[])];
    } else this.#plain = undefined;
    if (type === 'tool_use') {
      if (textOf(block['name']) === '') throw malformed();
      const extra = carriedAs(rest(block, callMembers));
      events.push({ type: 'tool-call', candidate: 0, call: one.call, id, name: textOf(block['name']), json: '', ...extra });
    }
  }

  #takeDelta(one: Open, delta: Loose, events: GenerateEvent[]): void {
    switch (delta['type']) {
      case 'text_delta':
        one.length += codePoints(textOf(delta['text']));
        if (textOf(delta['text']) !== '') events.push({ type: 'text', candidate: 0, text: textOf(delta['text']) });
        break;
      case 'thinking_delta':
        if (textOf(delta['thinking']) !== '') events.push({ type: 'thought', candidate: 0, text: textOf(delta['thinking']) });
        break;
      case 'signature_delta':
        one.signature += textOf(delta['signature']);
        break;
      case 'citations_delta':
        if (isObject(delta['citation'])) one.citations.push(delta['citation'] as JsonObject);
        break;
      case 'input_json_delta': {
        const json = textOf(delta['partial_json']);
        if (json === '') break;
        one.json += json;
        one.unclosed.push(json);
        if (one.call >= 0) events.push({ type: 'tool-call', candidate: 0, call: one.call, id: one.id, json });
        break;
      }
      default:
        addMembers(one, delta);
    }
  }

  #stopBlock(index: unknown, events: GenerateEvent[]): void {
    const one = this.#open.get(index);
    if (!one) {
      if (!this.#known.has(index)) throw malformed();
      return;
    }
    this.#open.delete(index);
    this.#isTruncated ||= one.unclosed.isOpen;
    const { block } = one;
    switch (block['type']) {
      case 'text':
        if (one.citations.length > 0) this.#end('text', { citations: one.citations }, events, citationsOfBlock(one));
        break;
      case 'thinking':
        if (one.signature !== '') this.#end('thought', { signature: one.signature }, events);
        break;
      case 'tool_use':
        if (one.json === '') events.push({ type: 'tool-call', candidate: 0, call: one.call, id: one.id, json: writtenOfArguments(block['input']) });
        break;
      default: {
        const whole = { ...(block as JsonObject), ...one.added };
        const value = one.json === '' ? whole : { ...whole, input: argumentsOf(one.json) ?? {} };
        events.push({ type: 'part', candidate: 0, part: { type: 'foreign', dialect, ...this.#searchIn(value), value } });
      }
    }
  }

  /** What a result of the provider's search tells clients of other wires. */
  #searchIn(value: JsonObject): Pick<ForeignPart, 'search'> {
    const { type, id, name, input, tool_use_id: of, content } = value;
    if (type === 'server_tool_use' && name === 'web_search' && this.#queries.size < mostQueries)
      this.#queries.set(textOf(id), isObject(input) ? textOf(input['query']) : '');
    if (type !== 'web_search_tool_result') return {};
    const sources = (Array.isArray(content) ? (content as readonly Json[]) : []).flatMap((one) =>
      isObject(one) && textOf(one['url']) !== '' ? [{ url: textOf(one['url']), title: textOf(one['title']) || textOf(one['url']) }] : [],
    );
    return { search: { id: textOf(of), query: this.#queries.get(textOf(of)) ?? '', state: Array.isArray(content) ? 'completed' : 'failed', sources } };
  }

  #end(type: 'text' | 'thought', carried: JsonObject, events: GenerateEvent[], citations: readonly Citation[] = []): void {
    events.push({ type, candidate: 0, text: '', ...(citations.length > 0 ? { citations } : {}), extra: { [dialect]: carried } });
    this.#plain = undefined;
  }

  #finish(event: Loose, events: GenerateEvent[]): void {
    const { usage } = event;
    this.#count(usage);
    this.#isCounted ||= isObject(usage) && isCount(usage['output_tokens']);
    const delta = isObject(event['delta']) ? event['delta'] : {};
    const raw = delta['stop_reason'];
    if (typeof raw !== 'string' || raw === '' || this.#finished) return;
    this.#finished = true;
    const reason = Object.hasOwn(reasons, raw) ? reasons[raw]! : 'stop';
    // Only an answer that was cut short may have incomplete blocks.
    const isWhole = reason === 'stop' || reason === 'tool' || raw === 'pause_turn';
    if (isWhole && this.#open.size > 0) throw malformed();
    for (const index of this.#open.keys()) this.#stopBlock(index, events);
    if (isWhole && this.#isTruncated) throw malformed();
    const note = Object.hasOwn(reasons, raw) ? {} : { '.stop_reason': raw };
    const carried = { ...rest(event, deltaMembers), ...rest(delta, stopMembers), ...note };
    const extra = extraOf({ [dialect]: carried, 'openai-responses': servedTier(this.#usage) });
    events.push({ type: 'finished', candidate: 0, reason: this.#reasonOf(reason, raw), raw, ...extra });
  }

  /** Clients expect a call where an answer ends for its tools, and only there. */
  #reasonOf(reason: FinishReason, raw: string): FinishReason {
    if (reason === 'tool' && this.#calls === 0) return 'stop';
    return reason === 'stop' && this.#calls > 0 && raw === 'end_turn' ? 'tool' : reason;
  }
}

/** The members of an event that only some wires have, as a member to be spread. */
function extraOf(members: Extra): { readonly extra?: Extra } {
  const extra = Object.fromEntries(Object.entries(members).filter(([, one]) => !isEmpty(one)));
  return isEmpty(extra) ? {} : { extra };
}

/** The wire cites with whole blocks; only citations of web pages have a URL. */
function citationsOfBlock({ citations, length }: Open): readonly Citation[] {
  return citations.flatMap((one) =>
    isObject(one) && textOf(one['url']) !== '' ? [{ url: textOf(one['url']), title: textOf(one['title']), start: 0, end: length }] : [],
  );
}

/**
 * A newer kind of delta, such as `compaction_delta`: text is appended to that of the block, any other member takes the place of the block's own, and so does one
 * that is encrypted. https://platform.claude.com/docs/en/build-with-claude/compaction#streaming
 */
function addMembers(one: Open, delta: Loose): void {
  const added = (one.added ??= {});
  for (const [name, value] of Object.entries(rest(delta, typeMember))) {
    const before = added[name] ?? one.block[name];
    const isAppended = typeof value === 'string' && typeof before === 'string' && !name.startsWith('encrypted_');
    added[name] = isAppended ? before + value : value;
  }
}

const inputIn = (usage: JsonObject): number => usageOf({ ...usage, iterations: undefined, output_tokens: 0 })?.input ?? 0;

const inputCounts = new Set(['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'cache_creation']);
const typeMember = new Set(['type']);
const none = new Set<string>();
const notCarried = new Set(['type', 'role', 'model', 'content', 'usage', 'stop_reason', 'stop_sequence', 'stop_details']);
const callMembers = new Set(['type', 'id', 'name', 'input']);
const deltaMembers = new Set(['type', 'delta', 'usage']);
const stopMembers = new Set(['stop_reason']);
