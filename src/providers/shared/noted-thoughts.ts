import type { ForeignPart, ThoughtPart, Turn } from '#core/conversation';
import type { Events, GenerateEvent, PartEvent, ToolCallPiece } from '#core/event';
import { isEmpty, own, type JsonObject } from '#core/json';
import { tokenExtra, type KeptThoughts } from '#core/thoughts';
import { nameOfCall } from './call-names.ts';
import { mostArguments, Positions } from './call-positions.ts';
import type { ThoughtContext } from './endpoint-thoughts.ts';

/** Most characters of the thoughts before one call; longer ones are not stored. */
const longest = 400_000;

/** Characters of the arguments of an answer that are remembered until its end, and its calls. */
const mostRemembered = 1_000_000;
const mostCalls = 1000;

/** A call whose thoughts are stored at the end of the answer, when its arguments are known. */
interface Noted {
  readonly event: ToolCallPiece;
  readonly ordinal: number;
  readonly json: string[];
  /** Characters of the arguments. */
  size: number;
  kept: KeptThoughts | undefined;
}

/** The parts of a candidate since its last tool call. */
interface Segment {
  /** Pieces of the open thought. */
  text: string[];
  size: number;
  first: (ThoughtPart | ForeignPart)[];
  last: (ThoughtPart | ForeignPart)[];
  hasText: boolean;
  /** All calls of the candidate so far. */
  readonly calls: Noted[];
}

const newSegment = (calls: Noted[]): Segment => ({ text: [], size: 0, first: [], last: [], hasText: false, calls });

/** Stores the thoughts before the tool calls of an answer at its end, and adds a token to each thought that its provider wants back where the client speaks another dialect. */
export class NotedThoughts {
  readonly #context: ThoughtContext;
  readonly #positions: Positions;
  readonly #at: number;
  #remembered = 0;
  readonly #segments = new Map<number, Segment>();
  /** Were any thoughts stored? */
  isStored = false;

  constructor(context: ThoughtContext, turns: readonly Turn[]) {
    this.#context = context;
    this.#positions = new Positions(turns);
    this.#at = turns.length;
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
    if (!segment) this.#segments.set(candidate, (segment = newSegment([])));
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
        if (event.name !== undefined) this.#note(event);
        this.#addArguments(event);
        return event.name === undefined ? event : this.#marked(event);
      case 'finished':
        this.#store(event.candidate);
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

  #note(event: ToolCallPiece): void {
    const { dialect, origin } = this.#context;
    const { first, last, calls, size } = this.#segmentOf(event.candidate);
    const call = this.#membersOf(event);
    const isKept = size <= longest && (first.length + last.length > 0 || call !== undefined);
    const kept = isKept ? { dialect, origin, first, last, ...(call ? { call } : {}) } : undefined;
    if (calls.length < mostCalls) calls.push({ event, ordinal: calls.length, json: [], size: 0, kept });
    this.#segments.set(event.candidate, newSegment(calls));
  }

  #addArguments({ candidate, call, json }: ToolCallPiece): void {
    const noted = this.#segmentOf(candidate).calls.findLast(({ event }) => event.call === call);
    if (!noted) return;
    noted.size += json.length;
    if (noted.size > mostArguments || this.#remembered > mostRemembered) return;
    this.#remembered += json.length;
    noted.json.push(json);
  }

  /** The answer is over, if only for the client, who may have left with the calls that it has. */
  end(): void {
    for (const candidate of this.#segments.keys()) this.#store(candidate);
  }

  #store(candidate: number): void {
    const { memory, userId, translated } = this.#context;
    const { calls } = this.#segmentOf(candidate);
    this.#addRest(candidate);
    for (const { event, ordinal, json, size, kept } of calls) {
      let known: string | undefined;
      const position = () => (known ??= this.#positions.of(this.#at, ordinal, event.name ?? '', size > mostArguments ? undefined : json.join('')));
      const name = nameOfCall(event.id, position);
      if (kept) memory.keep(userId, name, kept, position());
      else if (translated) memory.keep(userId, name, undefined);
      this.isStored ||= kept !== undefined;
    }
    this.#segments.delete(candidate);
  }

  /** What came behind the last call, where it makes no difference: it is stored with that call. */
  #addRest(candidate: number): void {
    const { dialect, origin, returned } = this.#context;
    const { first, last, calls, size } = this.#segmentOf(candidate);
    const before = calls.at(-1);
    if (!returned.isUnordered || !before || size > longest || first.length + last.length === 0) return;
    const { kept = { dialect, origin, first: [], last: [] } } = before;
    before.kept = { ...kept, last: [...kept.last, ...first, ...last] };
  }
}

function add(segment: Segment, part: ThoughtPart | ForeignPart, size: number): void {
  (segment.hasText ? segment.last : segment.first).push(part);
  segment.size += size;
}
