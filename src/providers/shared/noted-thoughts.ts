import type { ForeignPart, ThoughtPart, Turn } from '#core/conversation';
import type { Events, GenerateEvent, PartEvent, ToolCallPiece } from '#core/event';
import { isEmpty, own, type JsonObject } from '#core/json';
import { tokenExtra, type KeptThoughts } from '#core/thoughts';
import { nameOfCall, positionOf } from './call-names.ts';
import type { ThoughtContext } from './endpoint-thoughts.ts';

/** Most characters of the thoughts before one call; longer ones are not stored. */
const longest = 400_000;

/** The parts of a candidate since its last tool call. */
interface Segment {
  /** Pieces of the open thought. */
  text: string[];
  size: number;
  first: (ThoughtPart | ForeignPart)[];
  last: (ThoughtPart | ForeignPart)[];
  hasText: boolean;
  calls: number;
  /** The last call, and what is stored of it. */
  before?: { readonly event: ToolCallPiece; readonly kept: KeptThoughts | undefined };
}

const newSegment = (calls: number, before?: Segment['before']): Segment => ({
  text: [],
  size: 0,
  first: [],
  last: [],
  hasText: false,
  calls,
  ...(before ? { before } : {}),
});

/** Stores the thoughts of an answer when its tool calls begin, and adds a token to each thought that its provider wants back where the client speaks another dialect. */
export class NotedThoughts {
  readonly #context: ThoughtContext;
  readonly #turns: readonly Turn[];
  readonly #segments = new Map<number, Segment>();
  /** Were any thoughts stored? */
  isStored = false;

  constructor(context: ThoughtContext, turns: readonly Turn[]) {
    this.#context = context;
    this.#turns = turns;
  }

  /** @returns the events for the client */
  take(events: Events): Events {
    let out: GenerateEvent[] | undefined;
    for (const [at, event] of events.entries()) {
      const before = this.#before(event);
      const given = this.#taken(event);
      if (!out && (before || given !== event)) out = events.slice(0, at);
      if (before) out!.push(before);
      out?.push(given);
    }
    return out ?? events;
  }

  #segmentOf(candidate: number): Segment {
    let segment = this.#segments.get(candidate);
    if (!segment) this.#segments.set(candidate, (segment = newSegment(0)));
    return segment;
  }

  /** The end of a thought whose provider signs the tool call after it, and not the thought: its token has the signature, or says nothing but whose thought it is. */
  #before(event: GenerateEvent): GenerateEvent | undefined {
    const { translated, returned } = this.#context;
    if (!translated || returned.callMembers.length === 0 || !('candidate' in event) || event.type === 'thought') return undefined;
    if (event.type === 'tool-call' && event.name === undefined) return undefined;
    const segment = this.#segmentOf(event.candidate);
    if (segment.text.length === 0) return undefined;
    segment.text = [];
    const call = event.type === 'tool-call' ? this.#membersOf(event) : undefined;
    const token = this.#tokenOf(call ? { call } : { own: {} });
    return token === undefined ? undefined : { type: 'thought', candidate: event.candidate, text: '', extra: tokenExtra(token) };
  }

  #taken(event: GenerateEvent): GenerateEvent {
    switch (event.type) {
      case 'thought':
        return this.#thought(event);
      case 'text':
      case 'refusal': {
        if (event.text === '') return event;
        const segment = this.#segmentOf(event.candidate);
        segment.hasText = true;
        segment.text = [];
        return event;
      }
      case 'part': {
        const segment = this.#segmentOf(event.candidate);
        if (event.part.type !== 'foreign' || !this.#context.returned.isReturned(event.part)) return event;
        add(segment, event.part, JSON.stringify(event.part.value).length);
        return this.#asThought(event, event.part.value);
      }
      case 'tool-call':
        if (event.name === undefined) return event;
        this.#store(event);
        return this.#marked(event);
      case 'finished':
        this.#storeRest(event.candidate);
        return event;
      case 'started':
      case 'passed':
      case 'usage':
        return event;
      default:
        return event satisfies never;
    }
  }

  #thought(event: Extract<GenerateEvent, { type: 'thought' }>): GenerateEvent {
    const { dialect, returned, translated } = this.#context;
    const segment = this.#segmentOf(event.candidate);
    segment.size += event.text.length;
    if (segment.size <= longest && event.text !== '') segment.text.push(event.text);
    if (!event.extra) return event;
    const members = own(event.extra, dialect);
    const part: ThoughtPart = { type: 'thought', text: segment.text.join(''), extra: { [dialect]: members } };
    segment.text = [];
    if (!returned.isReturned(part)) return event;
    add(segment, part, JSON.stringify(members).length);
    const token = translated ? this.#tokenOf({ own: members }) : undefined;
    return token === undefined ? event : { ...event, extra: { ...event.extra, ...tokenExtra(token) } };
  }

  /** A thought that only its provider can read: clients of other dialects carry it as one without text. */
  #asThought(event: PartEvent, value: JsonObject): GenerateEvent {
    const token = this.#context.translated ? this.#tokenOf({ foreign: value }) : undefined;
    return token === undefined ? event : { type: 'thought', candidate: event.candidate, text: '', extra: tokenExtra(token) };
  }

  #tokenOf(value: JsonObject): string | undefined {
    const { memory, userId, dialect, origin } = this.#context;
    return memory.seal(userId, { dialect, origin, ...value });
  }

  /** A call that is stored with its signature says whose that is. */
  #marked(event: ToolCallPiece): ToolCallPiece {
    const call = this.#context.translated ? this.#membersOf(event) : undefined;
    const token = call && this.#tokenOf({ call });
    return token === undefined ? event : { ...event, extra: { ...event.extra, ...tokenExtra(token) } };
  }

  #membersOf({ extra }: ToolCallPiece): JsonObject | undefined {
    const { dialect, returned } = this.#context;
    const members = own(extra, dialect);
    const call = Object.fromEntries(returned.callMembers.flatMap((name) => (members[name] === undefined ? [] : [[name, members[name]]])));
    return isEmpty(call) ? undefined : call;
  }

  #store(event: ToolCallPiece): void {
    const { memory, userId, dialect, origin, translated } = this.#context;
    const { first, last, calls, size } = this.#segmentOf(event.candidate);
    const call = this.#membersOf(event);
    const position = () => positionOf(this.#turns, this.#turns.length, calls);
    const isKept = size <= longest && (first.length + last.length > 0 || call !== undefined);
    const kept = isKept ? { dialect, origin, first, last, ...(call ? { call } : {}) } : undefined;
    this.#segments.set(event.candidate, newSegment(calls + 1, { event, kept }));
    if (kept) this.#keep(event, position, kept);
    else if (translated) memory.keep(userId, nameOfCall(event.id, position), undefined);
  }

  #keep({ id }: ToolCallPiece, position: () => string, kept: KeptThoughts): void {
    this.isStored = true;
    this.#context.memory.keep(this.#context.userId, nameOfCall(id, position), kept, position());
  }

  /** What came behind the last call, where it makes no difference: it is stored with that call. */
  #storeRest(candidate: number): void {
    const { dialect, origin, returned } = this.#context;
    const { before, first, last, calls, size } = this.#segmentOf(candidate);
    if (!returned.isUnordered || !before || size > longest || first.length + last.length === 0) return;
    const { event, kept = { dialect, origin, first: [], last: [] } } = before;
    this.#keep(event, () => positionOf(this.#turns, this.#turns.length, calls - 1), { ...kept, last: [...kept.last, ...first, ...last] });
  }
}

function add(segment: Segment, part: ThoughtPart | ForeignPart, size: number): void {
  (segment.hasText ? segment.last : segment.first).push(part);
  segment.size += size;
}
