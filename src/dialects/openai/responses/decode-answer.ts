import { randomText } from '#kit/crypto/ids';
import type { Citation } from '#core/conversation';
import type { GenerateEvent, TokenLogprob } from '#core/event';
import { isEmpty, isObject, rest, textOf, type Json } from '#core/json';
import type { Reader } from '../../shared/decoder.ts';
import { UnclosedJson } from '../../shared/unclosed-json.ts';
import { isCount } from '../../shared/read-fields.ts';
import { tokenLogprobsOf } from '../logprobs.ts';
import { faultOfError, malformed } from './faults.ts';
import { carriedAs, dialect } from './wire.ts';
import { usageOf } from './usage.ts';

/** Any JSON object of an upstream: it promises nothing. */
type Loose = Readonly<Record<string, unknown>>;

/** Reads the events of a stream one after the other; a whole answer is read as the items that would have been said. */
export interface ItemReader extends Reader {
  /** A whole response object. */
  whole(response: unknown): readonly GenerateEvent[];
}

/** An item that is being said. */
interface Open {
  /** The tool call, if it is one whose name is known. */
  call?: { readonly call: number; readonly id: string; readonly custom?: true };
  /** Was any of its text said already? What is done repeats all of it. */
  spoke: boolean;
  /** The thought is shown as it was made, and no summary. */
  inContent: boolean;
  /** The arguments of a function. */
  readonly unclosed: UnclosedJson;
  done: boolean;
}

const newOpen = (): Open => ({ spoke: false, inContent: false, unclosed: new UnclosedJson(), done: false });

/** No answer has more: beyond, somebody wants to keep us busy. */
const mostItems = 10_000;

/**
 * @param model the upstream's name for it, for answers that do not report one
 * @param ignored goes into `started`
 */
export const reader = (model: string, ignored: readonly string[]): ItemReader => new ResponseReader(model, ignored);

class ResponseReader implements ItemReader {
  readonly #model: string;
  readonly #ignored: readonly string[];
  readonly #open = new Map<number, Open>();
  readonly #saying = new Set<Open>(); // those of which more is to come
  readonly #byId = new Map<string, Open>(); // the whole response may leave items out, and so count others than the stream did
  #calls = 0;
  #started = false;
  #finished = false;

  constructor(model: string, ignored: readonly string[]) {
    this.#model = model;
    this.#ignored = ignored;
  }

  take(event: unknown): readonly GenerateEvent[] {
    if (!isObject(event)) throw malformed();
    const { type, delta, item, response, output_index: index } = event;
    if (this.#finished) return [];
    switch (type) {
      case 'error':
        throw faultOfError(isObject(event['error']) ? event['error'] : event);
      case 'response.failed':
        throw faultOfError(isObject(response) ? (response['error'] ?? { type: 'server_error' }) : {});
      case 'response.completed':
      case 'response.incomplete':
        return [...this.#start(response), ...this.#finish(response)];
      case 'response.created':
        if (this.#open.size > 0) throw malformed();
        return this.#start(response);
      case 'response.in_progress':
      case 'response.queued':
        return this.#start(response);
      case 'response.output_item.added':
        if (!isObject(item)) throw malformed();
        this.#named(this.#at(index), item);
        return [
          ...this.#start(undefined),
          ...(item['type'] === 'function_call' || item['type'] === 'custom_tool_call' ? this.#call(this.#at(index), item) : []),
        ];
      case 'response.output_item.done':
        if (!isObject(item)) throw malformed();
        return [...this.#start(undefined), ...this.#done(this.#named(this.#at(index), item), item)];
      case 'response.output_text.delta':
      case 'response.refusal.delta': {
        const text = textOf(delta);
        if (text === '') return [];
        this.#at(index).spoke = true;
        if (type === 'response.refusal.delta') return [...this.#start(undefined), { type: 'refusal', candidate: 0, text }];
        return [...this.#start(undefined), { type: 'text', candidate: 0, text, ...scored(event['logprobs']) }];
      }
      case 'response.output_text.done':
      case 'response.refusal.done':
        if (isCount(index)) this.#saying.delete(this.#open.get(index)!); // unless another part of it begins
        return [];
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
      case 'response.reasoning.delta': {
        const one = this.#at(index);
        const text = textOf(delta);
        if (text === '') return [];
        one.inContent ||= type !== 'response.reasoning_summary_text.delta';
        one.spoke = true;
        return [...this.#start(undefined), { type: 'thought', candidate: 0, text }];
      }
      case 'response.reasoning_summary_part.added':
        return this.#at(index).spoke ? [{ type: 'thought', candidate: 0, text: '\n\n' }] : [];
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#json(this.#at(index), textOf(delta));
      default:
        return []; // what is done says all of it again
    }
  }

  whole(response: unknown): readonly GenerateEvent[] {
    if (isObject(response) && response['error']) throw faultOfError(response['error']);
    return [...this.#start(response), ...this.#finish(response)];
  }

  isFinished(): boolean {
    return this.#finished;
  }

  mayEnd(): boolean {
    return this.#finished || (this.#open.size > 0 && this.#saying.size === 0);
  }

  /** The last frame of the stream has said all of it. */
  close(): readonly GenerateEvent[] {
    return [];
  }

  counted(): undefined {
    return undefined;
  }

  #start(response: unknown): readonly GenerateEvent[] {
    if (this.#started) return [];
    this.#started = true;
    const name = isObject(response) ? textOf(response['model']) : '';
    return [{ type: 'started', model: name || this.#model, ignored: this.#ignored }];
  }

  #at(index: unknown): Open {
    if (!isCount(index) || index >= mostItems) throw malformed();
    let one = this.#open.get(index);
    if (!one) this.#open.set(index, (one = newOpen()));
    if (!one.done) this.#saying.add(one);
    return one;
  }

  #named(one: Open, { id }: Loose): Open {
    if (typeof id === 'string') this.#byId.set(id, one);
    return one;
  }

  #knownItem({ id }: Loose): Open | undefined {
    return this.#byId.get(textOf(id));
  }

  /** The first piece of a call has its name. */
  #call(one: Open, item: Loose): readonly GenerateEvent[] {
    const name = textOf(item['name']);
    if (one.call || name === '') return [];
    const custom = item['type'] === 'custom_tool_call';
    const id = textOf(item['call_id']) || `call_${randomText(24)}`;
    one.call = { call: this.#calls++, id, ...(custom ? { custom } : {}) };
    return [{ type: 'tool-call', candidate: 0, ...one.call, name, json: '', ...carriedAs(rest(item, callMembers)) }];
  }

  #json(one: Open, text: string): readonly GenerateEvent[] {
    if (text === '') return [];
    if (!one.call) throw malformed();
    one.spoke = true;
    if (!one.call.custom) one.unclosed.hear(text);
    return [{ type: 'tool-call', candidate: 0, ...one.call, json: text }];
  }

  #done(one: Open, item: Loose): readonly GenerateEvent[] {
    if (one.done) return [];
    one.done = true;
    this.#saying.delete(one);
    switch (item['type']) {
      case 'message':
        return message(one, item);
      case 'reasoning':
        return reasoning(one, item);
      case 'function_call':
      case 'custom_tool_call': {
        const first = this.#call(one, item);
        if (!one.call) throw malformed();
        return [...first, ...(one.spoke ? [] : this.#json(one, textOf(item['arguments']) || textOf(item['input'])))];
      }
      default:
        return [{ type: 'part', candidate: 0, part: { type: 'foreign', dialect, value: rest(item, none) } }];
    }
  }

  #finish(response: unknown): readonly GenerateEvent[] {
    if (!isObject(response)) throw malformed();
    const { status, error, output, usage, incomplete_details: details } = response;
    if (status === 'failed' || status === 'cancelled') throw faultOfError(error ?? { type: 'server_error' });
    if (status !== 'completed' && status !== 'incomplete') throw malformed();
    const items: readonly unknown[] = Array.isArray(output) ? output : [];
    const lasting = items.some((item) => isObject(item) && this.#knownItem(item) !== undefined); // some call an item otherwise each time they name it
    const events = items.flatMap((item, index) => (isObject(item) ? this.#done(lasting ? (this.#knownItem(item) ?? newOpen()) : this.#at(index), item) : []));
    // Only an answer that was cut short may leave a call half said.
    if (status === 'completed' && [...this.#open.values()].some(({ call: made, done: isDone, unclosed }) => made && (!isDone || unclosed.isOpen)))
      throw malformed();
    this.#finished = true;
    const why = isObject(details) ? textOf(details['reason']) : '';
    const reason = why === 'content_filter' ? 'refused' : status === 'incomplete' ? 'length' : this.#calls > 0 ? 'tool' : 'stop';
    const last = usageOf(usage);
    return [...events, { type: 'finished', candidate: 0, reason, raw: why || status }, ...(last ? [{ type: 'usage' as const, usage: last }] : [])];
  }
}

const none = new Set<string>();
const callMembers = new Set(['type', 'id', 'call_id', 'name', 'arguments', 'input', 'status']);
const messageMembers = new Set(['type', 'id', 'role', 'content', 'status']);

/** What was not said piece by piece, then what a message says of itself. */
function message({ spoke }: Open, item: Loose): readonly GenerateEvent[] {
  const content: readonly unknown[] = Array.isArray(item['content']) ? item['content'] : [];
  const events: GenerateEvent[] = [];
  const annotations: Json[] = [];
  for (const part of content) {
    if (!isObject(part)) continue;
    const text = textOf(part['text']);
    if (Array.isArray(part['annotations'])) annotations.push(...(part['annotations'] as readonly Json[]));
    if (!spoke && part['type'] === 'output_text' && text !== '') events.push({ type: 'text', candidate: 0, text, ...scored(part['logprobs']) });
    if (!spoke && part['type'] === 'refusal' && textOf(part['refusal']) !== '') events.push({ type: 'refusal', candidate: 0, text: textOf(part['refusal']) });
  }
  const others = rest(item, messageMembers);
  const note = {
    ...(annotations.length > 0 ? { '.annotations': annotations } : {}),
    ...(isEmpty(others) || item['status'] === 'incomplete' ? {} : { '.message': others }),
  };
  const citations = content.length === 1 ? annotations.flatMap(citationOf) : []; // of several parts nobody knows whose places are meant
  return isEmpty(note) ? events : [...events, { type: 'text', candidate: 0, text: '', ...(citations.length > 0 ? { citations } : {}), ...carriedAs(note) }];
}

function citationOf(annotation: Json): readonly Citation[] {
  if (!isObject(annotation) || annotation['type'] !== 'url_citation') return [];
  const { url, title, start_index: start, end_index: end } = annotation;
  return isCount(start) && isCount(end) && start <= end && textOf(url) !== '' ? [{ url: textOf(url), title: textOf(title), start, end }] : [];
}

/** Each thought is a part of its own, with what it takes to be given back. */
function reasoning({ spoke, inContent }: Open, item: Loose): readonly GenerateEvent[] {
  const texts = (name: string) =>
    (Array.isArray(item[name]) ? (item[name] as readonly unknown[]) : []).flatMap((one) => (isObject(one) ? textOf(one['text']) : []));
  const content = texts('content');
  const text = spoke ? '' : (content.length > 0 ? content : texts('summary')).join('\n\n');
  const { id, encrypted_content: encrypted } = item;
  if (!spoke && text === '' && typeof encrypted !== 'string') return [];
  const note = {
    ...(typeof id === 'string' ? { '.id': id } : {}),
    ...(inContent || content.length > 0 ? { '.content': true } : {}),
    ...(typeof encrypted === 'string' ? { encrypted_content: encrypted } : {}),
  };
  return [{ type: 'thought', candidate: 0, text, ...carriedAs(note) }];
}

/** Log probabilities, as a member to be spread. */
function scored(value: unknown): { readonly logprobs?: readonly TokenLogprob[] } {
  const logprobs = tokenLogprobsOf(value);
  return logprobs ? { logprobs } : {};
}
