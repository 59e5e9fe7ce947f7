import { withJsonTexts, withStrings } from '#kit/json/texts';
import type { GenerateCall } from '#core/call';
import type { GenerateEvent, ToolCallPiece } from '#core/event';
import { HeldBytes } from '../rules/held-back.ts';
import { carriedWith, collected, inTurn, withJson } from './texts.ts';
import type { Context } from '#core/context';

type Each = (text: string) => string;
type PartEvent = Extract<GenerateEvent, { type: 'part' }>;
type Words = Extract<GenerateEvent, { type: 'text' | 'thought' | 'refusal' }>;

/** Events that go on together: what they say, and how they read with other texts. */
export class Segment {
  /** What must be looked at before they go on. */
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

/** Of one candidate: what it says and has not been let go, all of one kind. */
interface Open {
  readonly type: Words['type'] | 'tool-call';
  words: Words[];
  calls: ToolCallPiece[];
  /** Characters of its words, and the last of them: a text without any end is not searched, nor even joined, from its beginning for every piece. */
  length: number;
  tail: string;
}

/**
 * Holds an answer back until what it says can be looked at: texts sentence by sentence, the arguments of tools and JSON as a whole, so that they stay JSON.
 * Each candidate is heard by itself.
 */
export class HeldAnswer {
  readonly #bySentence: boolean;
  readonly #isJson: boolean;
  /** Names of tools that the client gave itself. */
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

  /** Has every candidate finished? */
  get isComplete(): boolean {
    return this.#left <= 0;
  }

  /**
   * @returns what can be looked at now, in its order
   * @throws Fault `upstream-failed` where more than 64 MiB would have to be held back, `overloaded` where there is no room for it in memory
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

  /** Nothing more is said. */
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
    const open = this.#open.get(candidate) ?? { type, words: [], calls: [], length: 0, tail: '' };
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
    return open.type === 'tool-call'
      ? [called(open.calls, this.#known)]
      : open.words.length > 0
        ? [spoken(open.words, this.#isJson && open.type === 'text')]
        : [];
  }
}

/** Words of one kind. Where none of them changes they go on as they came, in their pieces. */
function spoken(words: readonly Words[], isJson: boolean): Segment {
  const text = words.map((one) => one.text).join('');
  const last = words.at(-1)!;
  return new Segment((each) => {
    const left = (isJson ? withJsonTexts(text, each) : undefined) ?? each(text);
    const end: Words = last.type === 'refusal' ? last : carriedWith(last, each); // citations repeat what is cited
    if (left === text) return end === last ? words : [...words.slice(0, -1), end];
    // The tokens of logprobs would tell what was masked, the signature of a thought stood for other words, and citations say where words stand.
    const { type, candidate } = end;
    return [{ type, candidate, text: left, ...(type === 'text' && end.extra ? { extra: end.extra } : {}) }];
  });
}

/** The tool calls of a candidate, whose pieces may have come in turn. */
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

/** What is shown of a part that is no text: pictures and sound are not looked into. */
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

/** A text without the end of a sentence is let go in part when it is so long, but for its last words. */
const longSentence = 2000;
const lastWords = 200;

const sentenceEnd = /[.!?…]["'”’»)\]]*\s|[。！？]|\n/g;
/** Between two words: personal data that has white space in it has digits at it. */
const betweenWords = /[^\s\d()+-]\s+(?=[^\s\d()+-])/g;

/** Takes the whole sentences out of what is open. @param window the end of its text */
function sentencesOf(open: Open, window: string): Words[] {
  let end = lastMatch(sentenceEnd, window, window.length);
  if (end === 0 && open.length > longSentence) end = lastMatch(betweenWords, window, window.length - lastWords);
  open.tail = window.slice(Math.max(end, window.length - lastWords - longestEnd));
  return end === 0 ? [] : cut(open, open.length - window.length + end);
}

/** Signs of the longest match of those patterns that matter. */
const longestEnd = 16;

function lastMatch(pattern: RegExp, text: string, to: number): number {
  let end = 0;
  pattern.lastIndex = 0;
  for (let found = pattern.exec(text); found && found.index < to; found = pattern.exec(text)) end = found.index + found[0].length;
  return end;
}

/** Takes the words up to there. Words with logprobs are not cut in two: they stay. */
function cut(open: Open, at: number): Words[] {
  const taken: Words[] = [];
  let left = at;
  let whole = 0; // words that go as they are: taken off one by one, a million of them would be moved each time
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
