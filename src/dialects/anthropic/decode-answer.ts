import { randomText } from '#kit/crypto/ids';
import type { Citation } from '#core/conversation';
import type { FinishReason, GenerateEvent } from '#core/event';
import { isEmpty, isObject, rest, textOf, type Json, type JsonObject } from '#core/json';
import { characters } from '../shared/read-fields.ts';
import type { Reader } from '../shared/decoder.ts';
import { UnclosedJson } from '../shared/unclosed-json.ts';
import { inputOf } from './encode-messages.ts';
import { faultOfError, malformed } from './faults.ts';
import { usageOf } from './usage.ts';
import { carriedAs, dialect, type Loose } from './wire.ts';

/** The words of this wire for the end of an answer. */
const reasons: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool',
  refusal: 'refused',
};

/** A block that is being said. */
interface Open {
  readonly block: Loose;
  /** Number and id of the tool call, if it is one. */
  readonly call: number;
  readonly id: string;
  /** Pieces of its input. */
  json: string;
  readonly unclosed: UnclosedJson;
  citations: Json[];
  /** The characters of its text. */
  said: number;
  signature: string;
}

/** No answer has more: beyond, somebody wants to keep us busy. */
const mostBlocks = 10_000;

/**
 * Reads the events of a stream one after the other; a whole answer is read as the events that would have said it.
 *
 * @param model the upstream's name for it, for answers that do not say
 * @param ignored goes into `started`
 */
export function reader(model: string, ignored: readonly string[]): Reader {
  const open = new Map<unknown, Open>();
  const known = new Set<unknown>(); // the blocks that were started, by their index
  let blocks = 0;
  let isHalf = false; // the input of a block was stopped before its end
  let calls = 0;
  let plain: 'text' | 'thinking' | undefined; // the kind of the last part, if nothing ended it: another of its kind would run on
  let started = false;
  let finished = false;
  let usage: JsonObject = {};

  const count = (value: unknown) => {
    if (isObject(value)) usage = { ...usage, ...rest(value, none) };
  };

  const start = ({ message }: Loose, events: GenerateEvent[]) => {
    if (started) {
      if (blocks > 0 || finished) throw malformed();
      return; // some proxies say it twice
    }
    started = true;
    const said = isObject(message) ? message : {};
    count(said['usage']);
    const carried = rest(said, notCarried);
    const counted = usageOf(usage);
    events.push({ type: 'started', model: textOf(said['model']) || model, ignored, ...(counted ? { usage: counted } : {}), ...carriedAs(carried) });
  };

  const startBlock = (index: unknown, block: unknown, events: GenerateEvent[]) => {
    if (!isObject(block) || open.has(index) || ++blocks > mostBlocks) throw malformed();
    const type = textOf(block['type']);
    const id = textOf(block['id']) || `toolu_${randomText(24)}`; // some servers forget it
    const one: Open = {
      block,
      call: type === 'tool_use' ? calls++ : -1,
      id,
      json: '',
      unclosed: new UnclosedJson(),
      citations: [],
      said: 0,
      signature: textOf(block['signature']),
    };
    open.set(index, one);
    known.add(index);
    if (type === 'text' || type === 'thinking') {
      if (plain === type) events.push({ type: type === 'text' ? 'text' : 'thought', candidate: 0, text: '', extra: { [dialect]: {} } });
      plain = type;
      const text = textOf(block[type]);
      one.said = characters(text);
      if (text !== '') events.push({ type: type === 'text' ? 'text' : 'thought', candidate: 0, text });
      if (Array.isArray(block['citations'])) one.citations = [...(block['citations'] as Json[])];
    } else plain = undefined;
    if (type === 'tool_use') {
      if (textOf(block['name']) === '') throw malformed();
      const extra = carriedAs(rest(block, callMembers));
      events.push({ type: 'tool-call', candidate: 0, call: one.call, id, name: textOf(block['name']), json: '', ...extra });
    }
  };

  const takeDelta = (one: Open, delta: Loose, events: GenerateEvent[]) => {
    switch (delta['type']) {
      case 'text_delta':
        one.said += characters(textOf(delta['text']));
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
        one.unclosed.hear(json);
        if (one.call >= 0) events.push({ type: 'tool-call', candidate: 0, call: one.call, id: one.id, json });
        break;
      }
      default: // a kind of piece that came later than this: its block is not ours to read
    }
  };

  const stopBlock = (index: unknown, events: GenerateEvent[]) => {
    const one = open.get(index);
    if (!one) {
      if (!known.has(index)) throw malformed();
      return;
    }
    open.delete(index);
    isHalf ||= one.unclosed.isOpen;
    const { block } = one;
    switch (block['type']) {
      case 'text':
        if (one.citations.length > 0) end('text', { citations: one.citations }, events, citationsOfBlock(one));
        break;
      case 'thinking':
        if (one.signature !== '') end('thought', { signature: one.signature }, events);
        break;
      case 'tool_use':
        if (one.json === '') events.push({ type: 'tool-call', candidate: 0, call: one.call, id: one.id, json: JSON.stringify(block['input'] ?? {}) });
        break;
      default: {
        const value = one.json === '' ? (block as JsonObject) : { ...(block as JsonObject), input: inputOf(one.json) ?? {} };
        events.push({ type: 'part', candidate: 0, part: { type: 'foreign', dialect, value } });
      }
    }
  };

  const end = (type: 'text' | 'thought', carried: JsonObject, events: GenerateEvent[], citations: readonly Citation[] = []) => {
    events.push({ type, candidate: 0, text: '', ...(citations.length > 0 ? { citations } : {}), extra: { [dialect]: carried } });
    plain = undefined;
  };

  const finish = (event: Loose, events: GenerateEvent[]) => {
    count(event['usage']);
    const delta = isObject(event['delta']) ? event['delta'] : {};
    const raw = delta['stop_reason'];
    if (typeof raw !== 'string' || raw === '' || finished) return;
    finished = true;
    const reason = Object.hasOwn(reasons, raw) ? reasons[raw]! : 'stop';
    // Only an answer that was cut short may leave something half said.
    const isWhole = reason === 'stop' || reason === 'tool';
    if (isWhole && open.size > 0) throw malformed();
    for (const index of open.keys()) stopBlock(index, events);
    if (isWhole && isHalf) throw malformed();
    const carried = { ...rest(event, deltaMembers), ...rest(delta, stopMembers) };
    const extra = isEmpty(carried) ? {} : { extra: { [dialect]: carried } };
    events.push({ type: 'finished', candidate: 0, reason: reason === 'stop' && calls > 0 && raw === 'end_turn' ? 'tool' : reason, raw, ...extra });
  };

  return {
    take(event) {
      if (!isObject(event)) throw malformed();
      const events: GenerateEvent[] = [];
      switch (event['type']) {
        case 'message_start':
          start(event, events);
          break;
        case 'content_block_start':
          if (!started || finished) throw malformed();
          startBlock(event['index'], event['content_block'], events);
          break;
        case 'content_block_delta': {
          const one = open.get(event['index']);
          if (!one || !isObject(event['delta'])) throw malformed();
          takeDelta(one, event['delta'], events);
          break;
        }
        case 'content_block_stop':
          stopBlock(event['index'], events);
          break;
        case 'message_delta':
          if (!started) throw malformed();
          finish(event, events);
          break;
        case 'error':
          throw faultOfError(event['error']);
        case 'message_stop':
        case 'ping':
          break;
        default:
          if (typeof event['type'] !== 'string') throw malformed();
      }
      return events;
    },
    isFinished: () => finished,
    mayEnd: () => finished || (blocks > 0 && open.size === 0),
    close() {
      const last = usageOf(usage);
      return last ? [{ type: 'usage', usage: last }] : [];
    },
    counted: () => usageOf(usage),
  };
}

/** The wire cites with whole blocks, and says of the web alone where that is. */
function citationsOfBlock({ citations, said }: Open): readonly Citation[] {
  return citations.flatMap((one) =>
    isObject(one) && textOf(one['url']) !== '' ? [{ url: textOf(one['url']), title: textOf(one['title']), start: 0, end: said }] : [],
  );
}

const none = new Set<string>();
const notCarried = new Set(['type', 'role', 'model', 'content', 'usage', 'stop_reason', 'stop_sequence', 'stop_details']);
const callMembers = new Set(['type', 'id', 'name', 'input']);
const deltaMembers = new Set(['type', 'delta', 'usage']);
const stopMembers = new Set(['stop_reason']);
