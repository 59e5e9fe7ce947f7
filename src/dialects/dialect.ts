import type { GenerateCall } from '#core/call';
import type { FieldSupport } from '#core/capabilities';
import type { ForeignPart, ThoughtPart } from '#core/conversation';
import type { Events, GenerateEvent } from '#core/event';
import type { Fault } from '#core/fault';
import type { GenerateResult } from '#core/fold';
import type { JsonObject } from '#core/json';
import type { Decoder } from './shared/decoder.ts';
import type { FieldNames } from './shared/field-names.ts';
import type { Fit } from './shared/fitting.ts';
import type { Headers } from './shared/upstream-faults.ts';

/**
 * A wire format, for both sides: what clients send and read (`ClientSide`), and what providers are sent and answer (`ProviderSide`). Decoding is wire → core,
 * encoding is core → wire. The folder of each dialect exports one value of this type from its `index.ts`; `test/cross` holds every dialect against all others.
 */
export interface Dialect<Wire extends WireTypes> extends ClientSide<Wire>, ProviderSide<Wire> {}

/** The types in which wire formats differ. */
export interface WireTypes {
  /** What a request carries outside its body: the model in the URL, the stored conversation that it continues. `void`: nothing. */
  readonly outside: unknown;
  /** What an answer is encoded with in addition to its events: its id, whether the client wants usage. */
  readonly answer: object;
  /** How a provider or one of its models differs from the public description. */
  readonly quirks: object;
  /** Provider settings that requests are encoded with. */
  readonly options: object;
}

/** What a face needs to answer clients of this wire. */
export interface ClientSide<Wire extends Pick<WireTypes, 'outside' | 'answer'>> {
  /** Names the dialect in settings, in `extra`, and in foreign parts and tools. */
  readonly name: string;
  /** @param body parsed JSON. @throws Fault `invalid`, naming the field as the client spelled it */
  decodeRequest(body: unknown, outside: Wire['outside']): GenerateCall;
  /** For one stream: events → frames. */
  encoder(answer: Wire['answer']): Encoder;
  /** A whole answer, ready for JSON. */
  encodeResult(result: GenerateResult, answer: Wire['answer']): JsonObject;
}

/** What a provider of this wire needs to answer calls. */
export interface ProviderSide<Wire extends Pick<WireTypes, 'quirks' | 'options'>> {
  readonly name: string;
  /** The header (lower case) with which clients request beta features: it is passed on to providers of the same wire. */
  readonly betaHeader?: string;
  /** Those of its features that a model with these quirks does not know. */
  refusedBetas?(quirks?: Wire['quirks']): readonly string[] | undefined;
  /** How much of their thoughts models show on this wire; absent: all or none, depending on the model. */
  readonly thoughts?: 'summary';
  /** Changes calls that the wire cannot express as they are, and their answers back. Absent: none. */
  readonly fit?: Fit<Wire['quirks']>;
  /**
   * Text that every answer contains that has arguments of a tool call as JSON values. Only such answers are parsed so that their numbers are kept as they were
   * written (`kit/json/numbers`). Absent: the wire has arguments as text.
   */
  readonly callMarker?: string;
  /** What providers want back of their thoughts. Absent: nothing. */
  readonly returned?: ReturnedThoughts;
  /** @param model its upstream name. @param quirks what is known about the model */
  encodeRequest(call: GenerateCall, model: string, quirks?: Wire['quirks'], options?: Wire['options']): EncodedRequest;
  /**
   * For one stream: frames → events.
   * @param model the model's upstream name, for answers that do not report one
   * @param ignored notes about ignored fields, reported by the `started` event
   * @param call the call that is answered: some servers send tool names in pieces, and clients of the same wire see what hosted tools do
   */
  decoder(model: string, ignored?: readonly string[], call?: Pick<GenerateCall, 'tools' | 'dialect' | 'sampling'>): Decoder;
  /** @param body parsed JSON. @throws Fault `upstream-failed` where it is not an answer, or the fault that its error means */
  decodeResult(body: unknown, model: string, ignored?: readonly string[]): Events;
  /**
   * The events of a plain answer, with `passed` in place of its content, so that it can be forwarded unchanged to clients of the same wire; undefined for any
   * other. Absent: none is forwarded.
   */
  plainAnswer?(body: unknown, model: string, ignored: readonly string[]): Events | undefined;
  /** A plain answer with what clients rely on and some servers leave out; undefined where that cannot be added. Absent: it is forwarded as it came. */
  completed?(bytes: Uint8Array, body: unknown): Uint8Array | undefined;
  /** @param status HTTP, not 2xx. @param body its text, or the beginning of it. @param model the upstream name of the requested model */
  decodeFault(status: number, body: string, headers?: Headers, model?: string): Fault;
  /** What the wire calls the fields of a call. */
  readonly fieldNames: FieldNames;
  /** How each field of a call is treated by a model with these quirks. */
  supports(quirks?: Wire['quirks']): FieldSupport;
  /**
   * What a refusal teaches about the model: the quirks with which the call can be tried again.
   * @param quirks with which the refused request was encoded
   * @returns undefined where the refusal teaches nothing new: a refusal that was learned from must not teach the same again
   */
  learn(fault: Fault, call: GenerateCall, quirks?: Wire['quirks']): Wire['quirks'] | undefined;
  /** Can this call use the wire's own web search? Absent: the wire has none. */
  searches?(call: GenerateCall): boolean;
}

/** What a provider of a wire wants back, with the next request, of an answer that called tools. */
export interface ReturnedThoughts {
  /** Can the provider be sent this part of its own answer? */
  isReturned(part: ThoughtPart | ForeignPart): boolean;
  /** Members of a tool call that other wires have no place for. */
  readonly callMembers: readonly string[];
  /** Do clients of the same wire often leave them out, too? */
  readonly ofOwnClients: boolean;
  /** Are they members of the message, wherever in it they came? Those behind the last call belong to it. */
  readonly isUnordered?: true;
  /** Do providers refuse what another provider of this wire signed? */
  readonly isBound?: true;
}

export interface EncodedRequest {
  readonly body: JsonObject;
  /** What the wire or the model does not support, as `field: reason`. */
  readonly ignored: readonly string[];
  /** What was decided for the client, as `field: reason`: reported as ignored fields are, and acceptable to strict clients. */
  readonly decided?: readonly string[];
  /** The provider is not told the form of the answer, or not all of it: the gateway has to check it. */
  readonly unpromised?: boolean;
}

/** Events → frames of one stream. */
export interface Encoder {
  /** @returns the text of the frames to send, each with its end; '' when there is nothing to send */
  encode(event: GenerateEvent): string;
  /** The last frames of an answer that is complete. */
  end(): string;
}
