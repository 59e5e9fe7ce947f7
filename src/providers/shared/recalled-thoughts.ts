import type { ProviderSide } from '#dialects/dialect';
import { whenKnown } from '#kit/async/when-known';
import { isTranslated, type GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import type { Part, ThoughtPart, ToolCallPart, Turn } from '#core/conversation';
import type { Events } from '#core/event';
import { Fault } from '#core/fault';
import { isObject, membersWhere, own, type Extra, type JsonObject } from '#core/json';
import { withoutPassthrough } from '#core/passthrough';
import { tokenExtra, tokenOf, type KeptThoughts } from '#core/thoughts';
import type { EndpointThoughts, ThoughtContext } from './endpoint-thoughts.ts';
import { filled, gapsIn, type Gap } from './missing-thoughts.ts';
import { NotedThoughts } from './noted-thoughts.ts';

/**
 * Sends thoughts back. Providers want the thoughts before a tool call back with the next request in the form in which they came (a signature, an encrypted item,
 * a field of the message), and clients of other APIs have no field for it. Such a thought therefore reaches the client with a token, which a client that returns
 * thoughts returns with it; and it is stored by the id of the tool call, for all other clients. Both ways lead only to the provider from which it came.
 */

interface Endpoint {
  readonly dialect: Pick<ProviderSide<never>, 'name' | 'returned'>;
  readonly thoughts?: EndpointThoughts | undefined;
}

/** Most tokens that are opened for one call, the newest. */
const mostTokens = 500;

/** @returns undefined where no thoughts of this call are to be sent back or stored */
export function recalling({ dialect: { name, returned }, thoughts }: Endpoint, call: GenerateCall, context: TargetContext): Recalling | undefined {
  if (!thoughts || !returned) return undefined;
  const translated = isTranslated(call, name);
  if (!translated && (!returned.ofOwnClients || thoughts.returns === false || (call.tools.length === 0 && !call.turns.some(hasCall)))) return undefined;
  return new Recalling({ ...thoughts, dialect: name, returned, translated, userId: context.caller.userId }, call);
}

const hasCall = ({ role, parts }: Turn) => role === 'model' && parts.some(({ type }) => type === 'tool-call');

export class Recalling {
  readonly #context: ThoughtContext;
  readonly #call: GenerateCall;
  #noted: NotedThoughts | undefined;

  constructor(context: ThoughtContext, call: GenerateCall) {
    this.#context = context;
    this.#call = call;
  }

  /** The call with all thoughts that the provider can be sent; the same call where none are missing. */
  given(): GenerateCall | Promise<GenerateCall> {
    const { memory, userId, translated, demands, returns } = this.#context;
    const turns = translated ? this.#opened() : this.#call.turns;
    const gaps = returns === false ? [] : gapsIn(turns, this.#context);
    if (gaps.length === 0) return this.#with(turns);
    const names = gaps.map(({ name }) => name);
    const found = translated || demands?.() ? memory.find(userId, names) : this.#remembered(names);
    const fill = (known: ReadonlyMap<string, KeptThoughts>) => this.#with(filled(turns, gaps, this.#ofProvider(gaps, known)));
    return whenKnown(found, fill);
  }

  /** The call without any thoughts of this provider, for one that refuses them. */
  plain(): GenerateCall {
    const { dialect, translated } = this.#context;
    if (!translated) return this.#call;
    const bare = (part: Part): Part => (part.type === 'thought' ? stripped(part, dialect) : part);
    return this.#with(this.#call.turns.map((turn) => (turn.role === 'model' ? { ...turn, parts: turn.parts.map(bare) } : turn)));
  }

  /** Stores the thoughts of the answer. @returns the events for the client, with tokens */
  noted(events: Events): Events {
    if (this.#context.returns === false) return events;
    this.#noted ??= new NotedThoughts(this.#context, this.#call.turns);
    return this.#noted.take(events);
  }

  /** Stores the thoughts of an answer that may have ended early, as when the client left. */
  left(): void {
    this.#noted?.end();
  }

  /** Resolves when other processes can find what was stored, or a moment later. */
  written(): Promise<unknown> | undefined {
    return this.#noted?.isStored ? this.#context.memory.written() : undefined;
  }

  #with(turns: readonly Turn[]): GenerateCall {
    return turns === this.#call.turns ? this.#call : { ...withoutPassthrough(this.#call), turns };
  }

  /** The turns with their tokens opened. A thought with a token of another provider, or with an invalid one, is only its text; a call loses its signature. */
  #opened(): readonly Turn[] {
    const { dialect } = this.#context;
    let left = mostTokens;
    let isChanged = false;
    const turns = this.#call.turns.toReversed().map((turn): Turn => {
      if (turn.role !== 'model' || !turn.parts.some((part) => this.#isMarked(part))) return turn;
      isChanged = true;
      let ofCall: JsonObject | undefined; // members for the tool call that follows
      const parts = turn.parts.map((part): Part => {
        if (part.type !== 'thought' && part.type !== 'tool-call') return part;
        const token = tokenOf(part.extra);
        const value = token !== undefined && left-- > 0 ? this.#valueOf(token) : undefined;
        if (part.type === 'thought') {
          if (token === undefined) return this.#isMarked(part) ? stripped(part, dialect) : part;
          const foreign = objectIn(value, 'foreign');
          if (foreign) return { type: 'foreign', dialect, value: foreign };
          ofCall = objectIn(value, 'call');
          return value ? withMembers(part, dialect, objectIn(value, 'own') ?? {}) : stripped(part, dialect);
        }
        const signed = objectIn(value, 'call') ?? ofCall;
        ofCall = undefined;
        return signed || this.#isMarked(part) ? withMembers(part, dialect, { ...this.#unsigned(part), ...signed }) : part;
      });
      return { ...turn, parts };
    });
    return isChanged ? turns.toReversed() : this.#call.turns;
  }

  /** Has it a token, or, in a stored response, what its provider signed? */
  #isMarked(part: Part): boolean {
    const { dialect, returned } = this.#context;
    if (part.type === 'thought') return tokenOf(part.extra) !== undefined || returned.isReturned(part);
    return part.type === 'tool-call' && returned.callMembers.some((name) => own(part.extra, dialect)[name] !== undefined);
  }

  #unsigned({ extra }: ToolCallPart): JsonObject {
    const { dialect, returned } = this.#context;
    return membersWhere(own(extra, dialect), (name) => !returned.callMembers.includes(name));
  }

  #valueOf(token: string): JsonObject | undefined {
    const { memory, userId, dialect, origin } = this.#context;
    const value = memory.open(userId, token);
    return value?.['dialect'] === dialect && value['origin'] === origin ? value : undefined;
  }

  #remembered(names: readonly string[]): ReadonlyMap<string, KeptThoughts> {
    const { memory, userId } = this.#context;
    const found = new Map<string, KeptThoughts>();
    for (const name of names) {
      const kept = memory.remembered(userId, name);
      if (kept) found.set(name, kept);
    }
    return found;
  }

  /** Those of this provider. A call that came back without its id is found by its position. */
  #ofProvider(gaps: readonly Gap[], known: ReadonlyMap<string, KeptThoughts>): ReadonlyMap<string, KeptThoughts> {
    const { memory, userId, dialect, origin } = this.#context;
    const found = new Map<string, KeptThoughts>();
    for (const { name, position } of gaps) {
      const kept = known.get(name) ?? (position === undefined ? undefined : memory.remembered(userId, position));
      if (kept?.dialect === dialect && kept.origin === origin) found.set(name, kept);
    }
    return found;
  }
}

function objectIn(value: JsonObject | undefined, name: string): JsonObject | undefined {
  const found = value?.[name];
  return isObject(found) ? found : undefined;
}

const withMembers = <Any extends ThoughtPart | ToolCallPart>(part: Any, dialect: string, members: JsonObject): Any => ({
  ...part,
  extra: { ...part.extra, [dialect]: members },
});

/** A thought without what its provider needs of it, with the mark of one that is not the provider's. */
function stripped({ text, extra }: ThoughtPart, dialect: string): ThoughtPart {
  const { [dialect]: _, ...others } = extra ?? {};
  return { type: 'thought', text, extra: { ...others, ...tokenExtra('.') } };
}

/**
 * The call of a client of the provider's own dialect without what other providers signed: a conversation that came from them has it. Each thought keeps its
 * text and the mark of one that is not the provider's.
 * @param isOut is it of another? Absent: whatever is signed is left out
 * @returns undefined where there is nothing to leave out
 */
export function withoutForeign({ name, returned }: Endpoint['dialect'], call: GenerateCall, isOut = (_: Extra | undefined) => true): GenerateCall | undefined {
  if (!returned || isTranslated(call, name)) return undefined;
  let isChanged = false;
  const turns = call.turns.map((turn): Turn => {
    if (turn.role !== 'model') return turn;
    const parts = turn.parts.flatMap((part): readonly Part[] => {
      if (!isOut('extra' in part ? part.extra : undefined)) return [part];
      if ((part.type === 'thought' || part.type === 'foreign') && returned.isReturned(part)) return part.type === 'thought' ? [stripped(part, name)] : [];
      if (part.type === 'foreign' || !('extra' in part) || !returned.callMembers.some((member) => own(part.extra, name)[member] !== undefined)) return [part];
      const left = Object.entries(own(part.extra, name)).filter(([member]) => !returned.callMembers.includes(member));
      return [{ ...part, extra: { ...part.extra, [name]: Object.fromEntries(left) } }];
    });
    isChanged ||= parts.length !== turn.parts.length || parts.some((part, at) => part !== turn.parts[at]);
    return { ...turn, parts };
  });
  return isChanged ? { ...withoutPassthrough(call), turns } : undefined;
}

/** Does a provider say that it did not sign a thought? */
export const isAboutSignature = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'invalid' && /\bsignature\b|\bencrypted[ _]content\b/i.test(error.message.slice(0, 2000));

/** Waits with the end of an answer until its thoughts are stored: the next request may reach another process at once. */
export async function* recorded(recall: Recalling, answer: AsyncIterable<Events>): AsyncGenerator<Events> {
  try {
    for await (const events of answer) yield await recordedWhole(recall, events);
  } finally {
    recall.left();
  }
}

/** The same for a whole answer. */
export async function recordedWhole(recall: Recalling, events: Events): Promise<Events> {
  const given = recall.noted(events);
  const written = events.some(({ type }) => type === 'finished') ? recall.written() : undefined;
  if (written) await written;
  return given;
}

/** May a provider have refused a request because of the thoughts that the gateway added? */
export const isAboutThoughts = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'invalid' && /signature|thinking|thought|reasoning|encrypted/i.test(error.message.slice(0, 2000));
