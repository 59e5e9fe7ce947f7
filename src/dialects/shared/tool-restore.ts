import { parseForeign } from '#kit/json/foreign';
import type { Events, GenerateEvent, ToolCallPiece } from '#core/event';
import { isObject, type Extra } from '#core/json';
import type { ToolNames, ToolRef } from './tool-names.ts';
import { UnclosedJson } from './unclosed-json.ts';

interface RestoreDeps {
  readonly names: ToolNames;
  /** Names on the wire of functions that stand for tools of free text. */
  readonly standIns: ReadonlySet<string>;
  /** The dialect whose notes name a namespace. */
  readonly notes: string;
}

/** A call of a function that stands for a tool of free text: its arguments are held until they are whole. */
interface Held {
  readonly first: ToolCallPiece;
  json: string;
  readonly unclosed: UnclosedJson;
  /** Nothing is expected of it any more. */
  done: boolean;
}

/** Gives the tool calls of one answer back in the words of the client: the tools' own names, and the text for tools that take text. */
export class ToolRestore {
  readonly #deps: RestoreDeps;
  readonly #held = new Map<string, Held>();

  constructor(deps: RestoreDeps) {
    this.#deps = deps;
  }

  take(events: Events): Events {
    if (!events.some(({ type }) => type === 'tool-call' || type === 'finished')) return events;
    return events.flatMap((event) => {
      if (event.type === 'tool-call') return this.#piece(event);
      return event.type === 'finished' && this.#held.size > 0 ? [...this.#rest(event.candidate), event] : [event];
    });
  }

  #piece(piece: ToolCallPiece): readonly GenerateEvent[] {
    const key = `${piece.candidate} ${piece.call}`;
    const held = this.#held.get(key);
    if (held) return this.#goesOn(held, piece.json);
    if (piece.name === undefined) return [piece];
    const ref = this.#deps.names.ref(piece.name);
    const own: ToolCallPiece = ref ? { ...piece, name: ref.name, ...this.#noted(ref, piece.extra) } : piece;
    if (!this.#deps.standIns.has(piece.name)) return [own];
    const first: ToolCallPiece = { ...own, json: '', custom: true };
    const fresh: Held = { first, json: '', unclosed: new UnclosedJson(), done: false };
    this.#held.set(key, fresh);
    return [first, ...this.#goesOn(fresh, piece.json)];
  }

  #noted({ namespace }: ToolRef, extra: Extra | undefined): { readonly extra?: Extra } {
    const { notes } = this.#deps;
    return namespace === undefined ? {} : { extra: { ...extra, [notes]: { ...extra?.[notes], namespace } } };
  }

  #goesOn(held: Held, json: string): readonly GenerateEvent[] {
    if (held.done) return [];
    held.json += json;
    held.unclosed.push(json);
    return held.unclosed.isOpen || !/[}"\]]/.test(json) ? [] : whole(held);
  }

  /** What came of those that the answer broke off. */
  #rest(candidate: number): readonly GenerateEvent[] {
    return [...this.#held.values()].flatMap((held) => (held.first.candidate === candidate && !held.done ? whole(held) : []));
  }
}

function whole(held: Held): readonly GenerateEvent[] {
  held.done = true;
  const { name: _name, extra: _extra, ...piece } = held.first;
  return [{ ...piece, json: textIn(held.json) }];
}

/** The text in the arguments of a function that stands for a tool of free text; as they came where they are something else. */
function textIn(json: string): string {
  try {
    const value = parseForeign(json);
    if (typeof value === 'string') return value;
    const [text, ...others] = isObject(value) ? Object.values(value) : [];
    return typeof text === 'string' && others.length === 0 ? text : json;
  } catch {
    return json;
  }
}
