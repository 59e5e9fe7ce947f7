import { withJsonTexts, withStrings } from '#kit/json/texts';
import type { GenerateCall } from '#core/call';
import type { MediaPart } from '#core/conversation';
import type { GenerateEvent, ToolCallPiece } from '#core/event';
import { HeldBytes } from '../rules/held-back.ts';
import { carriedWith, collected, inTurn, withJson } from './texts.ts';
import type { Context } from '#core/context';

type Each = (text: string) => string;
type PartEvent = Extract<GenerateEvent, { type: 'part' }>;
type Words = Extract<GenerateEvent, { type: 'text' | 'thought' | 'refusal' }>;

/** Events that are released together: their texts, and the events with replaced texts. */
export class Segment {
  /** The texts to check before the events are released. */
  readonly texts: readonly string[];
  readonly #with: (each: Each) => readonly GenerateEvent[];

  constructor(make: (each: Each) => readonly GenerateEvent[]) {
    this.#with = make;
    this.texts = collected(make);
  }

  with(texts: readonly string[]): readonly GenerateEvent[] {
    return this.#with(inTurn(texts));
  }
}

/** The unreleased events of one candidate, all of one kind. */
interface Open {
  readonly type: Words['type'] | 'tool-call' | 'sound';
  words: Words[];
  calls: ToolCallPiece[];
  sounds: Sound[];
  /** The length of its texts in characters, and their end: a text without a sentence end is neither searched nor joined from its beginning for each piece. */
  length: number;
  tail: string;
}

/**
 * Buffers an answer until its texts can be checked: prose sentence by sentence, tool arguments and JSON as a whole, so that they remain valid JSON. Each
 * candidate is checked separately.
 */
export class HeldAnswer {
  readonly #bySentence: boolean;
  readonly #isJson: boolean;
  /** Names of the client's own tools. */
  readonly #known: ReadonlySet<string>;
  readonly #open = new Map<number, Open>();
  readonly #last: GenerateEvent[] = [];
  #left: number;
  readonly #held: HeldBytes;

  constructor({ output, sampling, tools }: GenerateCall, bySentence: boolean, context: Pick<Context, 'memory'>) {
    this.#held = new HeldBytes(context);
    this.#known = new Set(tools.flatMap((tool) => (tool.type === 'foreign' ? [] : [tool.name])));
    this.#isJson = output.type !== 'text';
    this.#bySentence = bySentence && !this.#isJson;
    this.#left = sampling.candidates ?? 1;
  }

  /** Whether every candidate has finished. */
  get isComplete(): boolean {
    return this.#left <= 0;
  }

  /**
   * @returns the segments that can be checked now, in order
   * @throws Fault `upstream-failed` if more than 64 MiB would have to be buffered, `overloaded` if the memory budget is used up
   */
  take(event: GenerateEvent): readonly Segment[] {
    const ready = this.#taken(event);
    if (this.#bySentence && ready.length > 0 && this.#open.size <= 1 && this.#last.length === 0) this.#held.letGo();
    else this.#held.add(event);
    return ready;
  }

  #taken(event: GenerateEvent): readonly Segment[] {
    switch (event.type) {
      case 'started':
      case 'passed':
        return [new Segment(() => [event])];
      case 'text':
      case 'thought':
      case 'refusal':
        return this.#say(event);
      case 'tool-call': {
        const before = this.#closeOther(event.candidate, 'tool-call');
        this.#opened(event.candidate, 'tool-call').calls.push(event);
        return before;
      }
      case 'part': {
        const { part } = event;
        if (part.type === 'media' && part.kind === 'audio') {
          const before = this.#closeOther(event.candidate, 'sound');
          this.#opened(event.candidate, 'sound').sounds.push({ ...event, part });
          return before;
        }
        return [...this.#close(event.candidate), new Segment((each) => [{ ...event, part: shown(part, each) }])];
      }
      case 'finished':
        this.#left--;
        return [...this.#close(event.candidate), new Segment((each) => [carriedWith(event, each)])];
      case 'usage':
        this.#last.push(event);
        return [];
      default:
        return event satisfies never;
    }
  }

  /** Ends the answer: releases what is still buffered. */
  end(): readonly Segment[] {
    return [...[...this.#open.keys()].flatMap((candidate) => this.#close(candidate)), new Segment(() => this.#last)];
  }

  #say(event: Words): readonly Segment[] {
    const before = this.#closeOther(event.candidate, event.type);
    const open = this.#opened(event.candidate, event.type);
    open.words.push(event);
    open.length += event.text.length;
    if ('extra' in event || 'citations' in event) return [...before, ...this.#close(event.candidate)];
    if (!this.#bySentence) return before;
    const words = sentencesOf(open, open.tail + event.text);
    return words.length === 0 ? before : [...before, spoken(words, false)];
  }

  #opened(candidate: number, type: Open['type']): Open {
    const open = this.#open.get(candidate) ?? { type, words: [], calls: [], sounds: [], length: 0, tail: '' };
    this.#open.set(candidate, open);
    return open;
  }

  #closeOther(candidate: number, type: Open['type']): readonly Segment[] {
    const open = this.#open.get(candidate);
    return open && open.type !== type ? this.#close(candidate) : [];
  }

  #close(candidate: number): readonly Segment[] {
    const open = this.#open.get(candidate);
    this.#open.delete(candidate);
    if (!open) return [];
    if (open.type === 'sound') return [heard(open.sounds)];
    return open.type === 'tool-call'
      ? [called(open.calls, this.#known)]
      : open.words.length > 0
        ? [spoken(open.words, this.#isJson && open.type === 'text')]
        : [];
  }
}

/** A segment of texts of one kind. If no text changes, its events are released unchanged, in their pieces. */
function spoken(words: readonly Words[], isJson: boolean): Segment {
  const text = words.map((one) => one.text).join('');
  const last = words.at(-1)!;
  return new Segment((each) => {
    const left = (isJson ? withJsonTexts(text, each) : undefined) ?? each(text);
    const end: Words = last.type === 'refusal' ? last : carriedWith(last, each); // citations repeat the cited text
    if (left === text) return end === last ? words : [...words.slice(0, -1), end];
    // A changed text loses its logprobs, whose tokens would reveal what was masked, its signature, which is that of the old text, and its citations, whose
    // offsets no longer match.
    const { type, candidate } = end;
    return [{ type, candidate, text: left, ...(type === 'text' && end.extra ? { extra: end.extra } : {}) }];
  });
}

/** A segment of the tool calls of a candidate, whose pieces may be interleaved. */
function called(pieces: readonly ToolCallPiece[], known: ReadonlySet<string>): Segment {
  const calls = new Map<number, ToolCallPiece[]>();
  for (const piece of pieces) {
    const known = calls.get(piece.call);
    if (known) known.push(piece);
    else calls.set(piece.call, [piece]);
  }
  return new Segment((each) => {
    const changed = new Map<number, ToolCallPiece>();
    for (const [call, of] of calls) {
      const json = of.map((piece) => piece.json).join('');
      const left = of[0]!.custom ? each(json) : withJson(json, each);
      const [first] = of as [ToolCallPiece];
      const name = first.name === undefined || known.has(first.name) ? first.name : each(first.name);
      if (left !== json || name !== first.name) changed.set(call, { ...first, ...(name === undefined ? {} : { name }), json: left });
    }
    if (changed.size === 0) return pieces;
    return pieces.map((piece) => {
      const whole = changed.get(piece.call);
      return whole === undefined ? piece : piece === calls.get(piece.call)![0] ? whole : { ...piece, json: '' };
    });
  });
}

type Sound = PartEvent & { readonly part: MediaPart };

/** A segment of sounds, whose words may come in pieces: they are checked as one text, and changed ones come with the first piece. */
function heard(pieces: readonly Sound[]): Segment {
  return new Segment((each) => {
    const words = pieces.map(({ part }) => part.transcript ?? '').join('');
    const left = words === '' ? words : each(words);
    return pieces.map((event, at) => {
      const part = carriedWith(event.part, each);
      return { ...event, part: left === words ? part : { ...part, transcript: at === 0 ? left : '' } };
    });
  });
}

/** The checked form of a part other than text: pictures and sound are not inspected. */
function shown<Kind extends PartEvent['part']>(part: Kind, each: Each): Kind;
function shown(part: PartEvent['part'], each: Each): PartEvent['part'] {
  switch (part.type) {
    case 'foreign':
      return { ...part, value: withStrings(part.value, each) };
    case 'search':
      return { ...part, query: each(part.query), sources: withStrings(part.sources, each) };
    case 'media':
      return carriedWith(part, each);
    default:
      return part satisfies never;
  }
}

/** A text of this length without a sentence end is released in part: all but its last characters. */
const longSentence = 2000;
const lastWords = 200;

const sentenceEnd = /[.!?…]["'”’»)\]]*\s|[。！？]|\n/g;
/** A boundary between two words. Personal data that contains white space has digits next to it, so such boundaries are excluded. */
const betweenWords = /[^\s\d()+-]\s+(?=[^\s\d()+-])/g;

/** Takes the complete sentences from the buffered text. @param window the end of that text */
function sentencesOf(open: Open, window: string): Words[] {
  let end = lastMatch(sentenceEnd, window, window.length);
  if (end === 0 && open.length > longSentence) end = lastMatch(betweenWords, window, window.length - lastWords);
  open.tail = window.slice(Math.max(end, window.length - lastWords - longestEnd));
  return end === 0 ? [] : cut(open, open.length - window.length + end);
}

/** The longest match of the patterns that matter, in characters. */
const longestEnd = 16;

function lastMatch(pattern: RegExp, text: string, to: number): number {
  let end = 0;
  pattern.lastIndex = 0;
  for (let found = pattern.exec(text); found && found.index < to; found = pattern.exec(text)) end = found.index + found[0].length;
  return end;
}

/** Takes the texts up to this position. A text with logprobs is not split: it stays. */
function cut(open: Open, at: number): Words[] {
  const taken: Words[] = [];
  let left = at;
  let whole = 0; // number of texts taken whole: removing them one by one would move up to a million others each time
  for (let first = open.words[0]; first && left > 0; first = open.words[whole]) {
    if (first.text.length > left) {
      if (first.type === 'text' && first.logprobs) break;
      taken.push({ ...first, text: first.text.slice(0, left) });
      open.words[whole] = { ...first, text: first.text.slice(left) };
      left = 0;
      break;
    }
    taken.push(first);
    left -= first.text.length;
    whole++;
  }
  open.words.splice(0, whole);
  open.length -= at - left;
  return taken;
}
