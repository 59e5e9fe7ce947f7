import { randomText } from '#kit/crypto/ids';
import type { Citation, ForeignPart } from '#core/conversation';
import type { GenerateEvent, TokenLogprob, Usage } from '#core/event';
import { allMembers, isEmpty, isObject, rest, textOf, type Json } from '#core/json';
import { textOfArguments } from '../../shared/arguments.ts';
import { DistinctIds } from '../../shared/distinct-ids.ts';
import type { Reader } from '../../shared/decoder.ts';
import { UnclosedJson } from '../../shared/unclosed-json.ts';
import { codePoints } from '#kit/text/surrogates';
import { isCount } from '../../shared/read-fields.ts';
import { tokenLogprobsOf } from '../logprobs.ts';
import { faultOfError, malformed } from './faults.ts';
import { carriedAs, dialect } from './wire.ts';
import { endOf, messageMembers, servedBy, startedOf } from './text-answer.ts';
import { usageOf } from './usage.ts';

/** Any JSON object from an upstream: no member is guaranteed. */
type Loose = Readonly<Record<string, unknown>>;

/** Decodes the events of a stream in their order; a whole answer is decoded as its items. */
export interface ItemReader extends Reader {
  whole(response: unknown): readonly GenerateEvent[];
}

interface Open {
  /** The tool call, if it is one whose name is known. */
  call?: { readonly call: number; readonly id: string; readonly custom?: true };
  /** Was any of its content streamed? Its `done` event repeats all of it. */
  streamed: boolean;
  /** In pieces? */
  hasDeltas: boolean;
  /** The parts that came whole, by their kind and number. */
  readonly ended: Set<string>;
  /** The thought is reasoning content, and not a summary. */
  inContent: boolean;
  /** Are the arguments of its call nothing but white space so far? */
  isBlank: boolean;
  /** The arguments of a function. */
  readonly unclosed: UnclosedJson;
  done: boolean;
}

const newOpen = (): Open => ({
  streamed: false,
  hasDeltas: false,
  ended: new Set(),
  inContent: false,
  isBlank: true,
  unclosed: new UnclosedJson(),
  done: false,
});

/** Far more than any real answer has: a limit against misbehaving upstreams. */
const mostItems = 10_000;

export const reader = (model: string, ignored: readonly string[], isProgressWanted = false): ItemReader => new ResponseReader(model, ignored, isProgressWanted);

class ResponseReader implements ItemReader {
  readonly #model: string;
  readonly #ignored: readonly string[];
  readonly #open = new Map<number, Open>();
  readonly #incomplete = new Set<Open>();
  readonly #byId = new Map<string, Open>(); // the whole response may omit items, so that its indexes differ from those of the stream
  readonly #hosted = new Set<string>(); // ids of items of hosted tools whose progress is reported
  readonly #isProgressWanted: boolean;
  #calls = 0;
  readonly #ids = new DistinctIds();
  #searches = 0;
  #started = false;
  #finished = false;
  #failed: Usage | undefined;

  constructor(model: string, ignored: readonly string[], isProgressWanted: boolean) {
    this.#model = model;
    this.#ignored = ignored;
    this.#isProgressWanted = isProgressWanted;
  }

  take(event: unknown): readonly GenerateEvent[] {
    if (!isObject(event)) throw malformed();
    const { type, delta, item, response, output_index: index } = event;
    if (this.#finished) return [];
    if (type === undefined && isObject(event['error'])) throw faultOfError(event['error']); // of servers in front of the provider
    switch (type) {
      case 'error':
        throw faultOfError(isObject(event['error']) ? event['error'] : event);
      case 'response.failed':
        if (!isObject(response)) throw faultOfError({});
        this.#failed = usageOf(response['usage'], servedBy(response, this.#model));
        throw faultOfError(response['error'] ?? { type: 'server_error' });
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
        if (this.#isProgressWanted && !ownItems.has(item['type']) && textOf(item['id']) !== '') {
          this.#hosted.add(textOf(item['id']));
          return [...this.#start(undefined), progress(event)];
        }
        return [
          ...this.#start(undefined),
          ...(item['type'] === 'function_call' || item['type'] === 'custom_tool_call' ? this.#call(this.#at(index), item) : []),
        ];
      case 'response.output_item.done':
        if (!isObject(item)) throw malformed();
        return [...this.#start(undefined), ...this.#done(this.#named(this.#at(index), item), item)];
      case 'response.output_text.delta':
      case 'response.refusal.delta':
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
      case 'response.reasoning.delta':
        return this.#said(event, textOf(delta), true);
      case 'response.output_text.done':
      case 'response.refusal.done':
      case 'response.reasoning_summary_text.done':
      case 'response.reasoning_text.done':
        return this.#ended(event);
      case 'response.reasoning_summary_part.added':
        return this.#at(index).streamed ? [{ type: 'thought', candidate: 0, text: '\n\n' }] : [];
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#json(this.#at(index), textOf(delta));
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done': {
        const one = this.#known(index);
        return one?.call && !one.streamed && !one.done ? this.#json(one, textOfArguments(event['arguments']) || textOf(event['input'])) : [];
      }
      default:
        // Other `done` events repeat what was streamed.
        return this.#hosted.has(textOf(event['item_id'])) ? [progress(event)] : [];
    }
  }

  whole(response: unknown): readonly GenerateEvent[] {
    if (isObject(response) && response['error']) throw faultOfError(response['error']);
    if (isObject(response) && (response['status'] === 'completed' || response['status'] === 'incomplete') && !hasItems(response)) throw malformed();
    return [...this.#start(response), ...this.#finish(response)];
  }

  isFinished(): boolean {
    return this.#finished;
  }

  isOver(): boolean {
    return this.#finished;
  }

  mayEnd(): boolean {
    return this.#finished || (this.#open.size > 0 && this.#incomplete.size === 0);
  }

  /** No events: the last frame of the stream has everything. */
  close(): readonly GenerateEvent[] {
    return [];
  }

  /** Only the last frame has a usage; that of a complete answer is in its events. */
  counted(): Usage | undefined {
    return this.#failed;
  }

  #start(response: unknown): readonly GenerateEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [startedOf(response, this.#model, this.#ignored)];
  }

  #at(index: unknown): Open {
    if (!isCount(index) || index >= mostItems) throw malformed();
    let one = this.#open.get(index);
    if (!one) this.#open.set(index, (one = newOpen()));
    if (!one.done) this.#incomplete.add(one);
    return one;
  }

  #known(index: unknown): Open | undefined {
    return isCount(index) ? this.#open.get(index) : undefined;
  }

  #named(one: Open, { id }: Loose): Open {
    if (typeof id === 'string') this.#byId.set(id, one);
    return one;
  }

  #knownItem({ id }: Loose): Open | undefined {
    return this.#byId.get(textOf(id));
  }

  #said({ type: kind, output_index: index, logprobs }: Loose, text: string, isDelta: boolean): readonly GenerateEvent[] {
    if (text === '') return [];
    const type = textOf(kind);
    const one = this.#at(index);
    one.streamed = true;
    one.hasDeltas ||= isDelta;
    const start = this.#start(undefined);
    if (type.startsWith('response.output_text.')) return [...start, { type: 'text', candidate: 0, text, ...scored(logprobs) }];
    if (type.startsWith('response.refusal.')) return [...start, { type: 'refusal', candidate: 0, text }];
    one.inContent ||= !type.startsWith('response.reasoning_summary_text.');
    return [...start, { type: 'thought', candidate: 0, text }];
  }

  /** The end of a part, which repeats all of it: some servers send nothing else. */
  #ended(event: Loose): readonly GenerateEvent[] {
    const { type, output_index: index } = event;
    if (!isCount(index)) return [];
    const known = this.#known(index);
    const given = event['content_index'] ?? event['summary_index'];
    const part = `${textOf(type)} ${isCount(given) ? given : 0}`;
    const isKnown = known?.hasDeltas || known?.done || known?.ended.has(part);
    const events = isKnown ? [] : this.#said(event, textOf(event['text']) || textOf(event['refusal']), false);
    this.#known(index)?.ended.add(part);
    if (!textOf(type).startsWith('response.reasoning')) this.#incomplete.delete(this.#known(index)!); // until another part of the item begins
    return events;
  }

  /** The first event of a call has its name. */
  #call(one: Open, item: Loose): readonly GenerateEvent[] {
    const name = textOf(item['name']);
    if (one.call || name === '') return [];
    const custom = item['type'] === 'custom_tool_call';
    const given = textOf(item['call_id']);
    const id = given === '' ? `call_${randomText(24)}` : this.#ids.take(given);
    one.call = { call: this.#calls++, id, ...(custom ? { custom } : {}) };
    return [{ type: 'tool-call', candidate: 0, ...one.call, name, json: '', ...carriedAs(rest(item, callMembers)) }];
  }

  #json(one: Open, text: string): readonly GenerateEvent[] {
    if (text === '') return [];
    if (!one.call) throw malformed();
    one.streamed = true;
    one.isBlank &&= text.trim() === '';
    if (!one.call.custom) one.unclosed.push(text);
    return [{ type: 'tool-call', candidate: 0, ...one.call, json: text }];
  }

  #done(one: Open, item: Loose): readonly GenerateEvent[] {
    if (one.done) return [];
    one.done = true;
    this.#incomplete.delete(one);
    switch (item['type']) {
      case 'message':
        return message(one, item);
      case 'reasoning':
        return reasoning(one, item);
      case 'function_call':
      case 'custom_tool_call': {
        const first = this.#call(one, item);
        if (!one.call) throw malformed();
        const all = one.streamed ? [] : this.#json(one, textOfArguments(item['arguments']) || textOf(item['input']));
        // Arguments must be JSON, even where a server sends none for a function without parameters.
        const none = one.isBlank && !one.call.custom && item['status'] !== 'incomplete' ? this.#json(one, '{}') : [];
        return [...first, ...all, ...none];
      }
      default: {
        const searched = searchIn(item);
        if (searched.search) this.#searches++;
        return [{ type: 'part', candidate: 0, part: { type: 'foreign', dialect, value: allMembers(item), ...searched } }];
      }
    }
  }

  #finish(response: unknown): readonly GenerateEvent[] {
    if (!isObject(response)) throw malformed();
    const { status, error, output } = response;
    if (status === 'failed' || status === 'cancelled') throw faultOfError(error ?? { type: 'server_error' });
    if (status !== 'completed' && status !== 'incomplete') throw malformed();
    const items: readonly unknown[] = Array.isArray(output) ? output : [];
    // Some providers change the id of an item with each event.
    const hasStableIds = items.some((item) => isObject(item) && this.#knownItem(item) !== undefined);
    const events = items.flatMap((item, index) =>
      isObject(item) ? this.#done(hasStableIds ? (this.#knownItem(item) ?? newOpen()) : this.#at(index), item) : [],
    );
    // Only an answer that was cut short may have incomplete calls.
    if (status === 'completed' && [...this.#open.values()].some(({ call: made, done: isDone, unclosed }) => made && (!isDone || unclosed.isOpen)))
      throw malformed();
    this.#finished = true;
    return [...events, ...endOf(response, { calls: this.#calls, searches: this.#searches, model: this.#model })];
  }
}

/** Types of items that become parts of their own; all others belong to hosted tools. */
const ownItems: ReadonlySet<unknown> = new Set(['message', 'reasoning', 'function_call', 'custom_tool_call']);

const progress = (event: Loose): GenerateEvent => ({
  type: 'part',
  candidate: 0,
  part: { type: 'foreign', dialect, value: allMembers(event) },
  progress: true,
});

/** The output of a whole response is a list of items, each of a type. */
const hasItems = ({ output }: Loose): boolean => Array.isArray(output) && output.every((item: unknown) => isObject(item) && textOf(item['type']) !== '');

const callMembers = new Set(['type', 'id', 'call_id', 'name', 'arguments', 'input', 'status']);

/** The content of a message that was not streamed, then its carried members. Neighbouring texts become one part, to which the annotations of each then refer. */
function message({ streamed }: Open, item: Loose): readonly GenerateEvent[] {
  const { content: its } = item;
  const content: readonly unknown[] = typeof its === 'string' ? [{ type: 'output_text', text: its }] : Array.isArray(its) ? its : [];
  const events: GenerateEvent[] = [];
  const annotations: Json[] = [];
  let before = 0; // code points of the texts that the part is joined to
  for (const part of content) {
    if (!isObject(part)) continue;
    const text = textOf(part['text']);
    if (Array.isArray(part['annotations'])) for (const one of part['annotations'] as readonly Json[]) annotations.push(movedBy(before, one));
    before = part['type'] === 'refusal' ? 0 : before + codePoints(text);
    if (!streamed && part['type'] === 'output_text' && text !== '') events.push({ type: 'text', candidate: 0, text, ...scored(part['logprobs']) });
    if (!streamed && part['type'] === 'refusal' && textOf(part['refusal']) !== '')
      events.push({ type: 'refusal', candidate: 0, text: textOf(part['refusal']) });
  }
  const others = rest(item, messageMembers);
  const note = {
    ...(annotations.length > 0 ? { '.annotations': annotations } : {}),
    ...(isEmpty(others) || item['status'] === 'incomplete' ? {} : { '.message': others }),
  };
  const isText = content.every((part) => !isObject(part) || part['type'] === 'output_text');
  const citations = isText ? annotations.flatMap(citationOf) : []; // beside a refusal it is unknown which text the indexes refer to
  return isEmpty(note) ? events : [...events, { type: 'text', candidate: 0, text: '', ...(citations.length > 0 ? { citations } : {}), ...carriedAs(note) }];
}

function movedBy(before: number, annotation: Json): Json {
  if (before === 0 || !isObject(annotation)) return annotation;
  const { start_index: start, end_index: end } = annotation;
  return isCount(start) && isCount(end) ? { ...annotation, start_index: start + before, end_index: end + before } : annotation;
}

/** What the item of a search reports to clients of other wires. */
function searchIn({ type, id, status, action }: Loose): Pick<ForeignPart, 'search'> {
  if (type !== 'web_search_call') return {};
  const { type: kind, query, queries, sources } = isObject(action) ? action : {};
  if (kind !== undefined && kind !== 'search') return {};
  const [first] = Array.isArray(queries) ? (queries as readonly unknown[]) : [];
  const found = (Array.isArray(sources) ? (sources as readonly unknown[]) : []).flatMap((one) => {
    const url = isObject(one) ? textOf(one['url']) : '';
    return url === '' ? [] : [{ url, title: (isObject(one) ? textOf(one['title']) : '') || url }];
  });
  return {
    search: { id: textOf(id) || randomText(22), query: textOf(query) || textOf(first), state: status === 'failed' ? 'failed' : 'completed', sources: found },
  };
}

function citationOf(annotation: Json): readonly Citation[] {
  if (!isObject(annotation) || annotation['type'] !== 'url_citation') return [];
  const { url, title, start_index: start, end_index: end } = annotation;
  return isCount(start) && isCount(end) && start <= end && textOf(url) !== '' ? [{ url: textOf(url), title: textOf(title), start, end }] : [];
}

/** Each reasoning item is a thought of its own, with the members that are needed to send it back. */
function reasoning({ streamed, inContent }: Open, item: Loose): readonly GenerateEvent[] {
  const texts = (name: string) =>
    (Array.isArray(item[name]) ? (item[name] as readonly unknown[]) : []).flatMap((one) => (isObject(one) ? textOf(one['text']) : []));
  const content = texts('content');
  const text = streamed ? '' : (content.length > 0 ? content : texts('summary')).join('\n\n');
  const { id, encrypted_content: encrypted } = item;
  if (!streamed && text === '' && typeof encrypted !== 'string') return [];
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
