import type { GenerateEvent, ToolCallPiece, Usage } from '#core/event';
import type { Context } from '#core/context';
import { sumOfKnown } from '#core/usage';
import { HeldBytes } from '../rules/held-back.ts';
import type { Finished } from '../rounds.ts';
import { citationsIn, type Source } from './citing.ts';

export interface SearchCall {
  readonly id: string;
  json: string;
}

export interface RoundDeps {
  readonly name: string;
  readonly isFirst: boolean;
  readonly ignored: readonly string[];
  /** All sources given to the model. */
  readonly sources: readonly Source[];
}

/** One answer of a model that may search: removes the calls of the search, passes everything else on, and adds citations of the sources. */
export class SearchRound {
  /** All events of the answer, as the model gave it. */
  readonly events: GenerateEvent[] = [];
  /** The calls of the search, by their index. */
  readonly searches = new Map<number, SearchCall>();
  finished: Finished | undefined;
  usage: Usage | undefined;
  readonly #deps: RoundDeps;
  readonly #held: HeldBytes;
  /** The calls of other tools: their index → the index that the client sees. */
  readonly #others = new Map<number, number>();
  #text = '';

  constructor(deps: RoundDeps, context: Context) {
    this.#deps = deps;
    this.#held = new HeldBytes(context);
  }

  /** Whether there are calls that the client must answer. */
  get callsOthers(): boolean {
    return this.#others.size > 0;
  }

  /** @returns the event to pass on, with the citations before it, or none. @throws Fault as `HeldBytes` does */
  take(event: GenerateEvent): readonly GenerateEvent[] {
    this.#held.add(event);
    this.events.push(event);
    switch (event.type) {
      case 'started': {
        const { isFirst, ignored } = this.#deps;
        if (!isFirst) return [];
        return [ignored.length === 0 ? event : { ...event, ignored: [...event.ignored, ...ignored] }];
      }
      case 'text': {
        this.#text += event.text;
        if (!event.extra && !event.citations) return [event];
        const [end] = this.#cited();
        return [end?.type === 'text' ? { ...end, ...event } : event];
      }
      case 'tool-call':
        return this.#called(event);
      case 'thought':
      case 'refusal':
      case 'part':
        return [...this.#cited(), event];
      case 'finished':
        this.finished ??= event;
        return this.#cited();
      case 'usage':
        this.usage = sumOfKnown(this.usage, event.usage);
        return [];
      case 'passed':
        return [event];
      default:
        return event satisfies never;
    }
  }

  #called(piece: ToolCallPiece): readonly GenerateEvent[] {
    const search = this.searches.get(piece.call);
    if (search) search.json += piece.json;
    else if (piece.name === this.#deps.name) this.searches.set(piece.call, { id: piece.id, json: piece.json });
    else {
      const call = this.#others.get(piece.call) ?? this.#others.size;
      this.#others.set(piece.call, call);
      return [...this.#cited(), { ...piece, call }];
    }
    return [];
  }

  /** Ends a text with its citations. */
  #cited(): readonly GenerateEvent[] {
    const { sources } = this.#deps;
    const citations = sources.length > 0 ? citationsIn(this.#text, sources) : [];
    this.#text = '';
    return citations.length > 0 ? [{ type: 'text', candidate: 0, text: '', citations }] : [];
  }
}
