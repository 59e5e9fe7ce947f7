import type { GenerateCall } from '#core/call';
import type { Events, GenerateEvent } from '#core/event';
import { withoutPassthrough } from '#core/passthrough';
import { withoutHalf } from '#kit/text/surrogates';
import type { Fitted } from './fitting.ts';
import { UnseenTokens } from './unseen-tokens.ts';

/** Stop sequences for wires and models without them: the gateway ends the answer at the first one in its text. @returns undefined where the call has none */
export function endedAtStop(call: GenerateCall): Fitted | undefined {
  const { stop, ...sampling } = call.sampling;
  if (stop === undefined) return undefined;
  const watched = [...new Set(stop)].filter(({ length }) => length > 0 && length <= longestStop).slice(0, mostStops);
  const ignored = watched.length < stop.length ? [`stop: up to ${mostStops} sequences of ${longestStop} characters end the answer.`] : [];
  if (watched.length === 0) return { call: { ...withoutPassthrough(call), sampling }, ignored };
  const ending = new StopSequences(watched);
  return { call: { ...withoutPassthrough(call), sampling }, ignored, restore: (events) => ending.take(events) };
}

/** Each piece of the answer is searched for all of them. */
const mostStops = 64;
/** Characters. */
const longestStop = 1000;

type TextEvent = Extract<GenerateEvent, { type: 'text' }>;

interface Tail {
  /** The last characters, in which a sequence may have begun. */
  held: string;
  /** The sequence at which the text ended. */
  found?: string;
}

/** The provider's answer is read to its end, which has the usage. What comes after a stop sequence is reported as tokens alone: it is paid for. */
class StopSequences {
  readonly #stops: readonly string[];
  /** Characters that are held back. */
  readonly #hold: number;
  readonly #tails = new Map<number, Tail>();
  readonly #unseen = new UnseenTokens();

  constructor(stops: readonly string[]) {
    this.#stops = stops;
    this.#hold = Math.max(...stops.map(({ length }) => length)) - 1;
  }

  take(events: Events): Events {
    return events.flatMap((event) => ('candidate' in event ? this.#one(event) : [event]));
  }

  #one(event: Extract<GenerateEvent, { candidate: number }>): readonly GenerateEvent[] {
    let tail = this.#tails.get(event.candidate);
    if (!tail) this.#tails.set(event.candidate, (tail = { held: '' }));
    if (tail.found !== undefined) return event.type === 'finished' ? [stoppedAt(event.candidate, tail.found)] : this.#unseen.kept(outputIn(event));
    if (event.type === 'text') return this.#text(event, tail);
    if (tail.held === '') return [event];
    const { held } = tail;
    tail.held = '';
    return [{ type: 'text', candidate: event.candidate, text: held }, event];
  }

  #text({ text: fresh, logprobs, ...event }: TextEvent, tail: Tail): readonly GenerateEvent[] {
    const text = tail.held + fresh;
    const [found] = this.#stops
      .map((stop) => ({ stop, at: text.indexOf(stop) }))
      .filter(({ at }) => at >= 0)
      .toSorted((a, b) => a.at - b.at);
    const ends = 'extra' in event || 'citations' in event; // what follows is another part
    const to = found ? found.at : ends ? text.length : wholeCharacters(text, text.length - this.#hold);
    tail.held = text.slice(to);
    if (found) {
      tail.found = found.stop;
      const unseen = this.#unseen.kept(tail.held);
      tail.held = '';
      return [...(to === 0 ? [] : [{ type: 'text' as const, candidate: event.candidate, text: text.slice(0, to) }]), ...unseen]; // citations would reach beyond it
    }
    if (to === 0 && !ends && !logprobs) return [];
    return [{ ...event, text: text.slice(0, to), ...(logprobs ? { logprobs } : {}) }];
  }
}

/** The output of a model. */
function outputIn(event: GenerateEvent): string {
  if (event.type === 'text' || event.type === 'thought' || event.type === 'refusal') return event.text;
  return event.type === 'tool-call' ? (event.name ?? '') + event.json : '';
}

/** A place that does not divide a character of two code units. */
const wholeCharacters = (text: string, place: number): number => withoutHalf(text.slice(0, Math.max(0, place))).length;

/** The end of an answer at a stop sequence; messages clients also get the sequence. */
export const stoppedAt = (candidate: number, found: string): GenerateEvent => ({
  type: 'finished',
  candidate,
  reason: 'stop',
  raw: 'stop_sequence',
  extra: { 'anthropic-messages': { stop_sequence: found } },
});
