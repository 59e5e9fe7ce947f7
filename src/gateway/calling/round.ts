import type { Context } from '#core/context';
import type { GenerateEvent, Usage } from '#core/event';
import type { ServerTool } from '#core/server-tools';
import { sumOfKnown } from '#core/usage';
import { HeldBytes } from '../rules/held-back.ts';
import type { Finished } from '../rounds.ts';

interface Called {
  readonly id: string;
  readonly name: string;
  json: string;
}

/** A call of a round, with the tool of a server that it is of, if it is of one. */
export type RoundCall = Readonly<Called> & { readonly of: ServerTool | undefined };

/** One answer of a model that may call tools: holds its calls back until it is known who makes them, and passes everything else on. */
export class CallingRound {
  /** All events of the answer, as the model gave it. */
  readonly events: GenerateEvent[] = [];
  readonly held: GenerateEvent[] = [];
  finished: Finished | undefined;
  usage: Usage | undefined;
  readonly #calls = new Map<number, Called>();
  readonly #isFirst: boolean;
  readonly #bytes: HeldBytes;

  constructor(isFirst: boolean, context: Context) {
    this.#isFirst = isFirst;
    this.#bytes = new HeldBytes(context);
  }

  /** Its calls so far. @param byName the tools of servers */
  calls(byName: ReadonlyMap<string, ServerTool>): readonly RoundCall[] {
    return Array.from(this.#calls.values(), (call) => ({ ...call, of: byName.get(call.name) }));
  }

  /** Of what is held, the calls of these tools. */
  heldOf(names: ReadonlySet<string>): readonly GenerateEvent[] {
    return this.held.filter((event) => event.type === 'tool-call' && names.has(this.#calls.get(event.call)?.name ?? ''));
  }

  /** @returns the events to pass on. @throws Fault as `HeldBytes` does */
  take(event: GenerateEvent): readonly GenerateEvent[] {
    this.#bytes.add(event);
    this.events.push(event);
    switch (event.type) {
      case 'started':
        return this.#isFirst ? [event] : [];
      case 'tool-call': {
        const call = this.#calls.get(event.call);
        if (call) call.json += event.json;
        else this.#calls.set(event.call, { id: event.id, name: event.name ?? '', json: event.json });
        this.held.push(event);
        return [];
      }
      case 'finished':
        this.finished ??= event;
        return [];
      case 'usage':
        this.usage = sumOfKnown(this.usage, event.usage);
        return [];
      case 'text':
      case 'thought':
      case 'refusal':
      case 'part':
      case 'passed':
        return [event];
      default:
        return event satisfies never;
    }
  }
}
