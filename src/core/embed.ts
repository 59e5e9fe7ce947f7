import type { Usage } from './event.ts';
import type { Context } from './context.ts';

/** A request for the vectors of some texts. */
export interface EmbedCall {
  /** As the client wrote it. */
  readonly model: string;
  /** Texts, or texts as the model's own tokens: all of one kind. */
  readonly inputs: readonly string[] | readonly (readonly number[])[];
  /** What the vectors are for, one for each input; absent where the client says nothing of it. */
  readonly purposes?: readonly Purpose[];
  /** How many numbers a vector is to have; absent: as many as the model makes. */
  readonly dimensions?: number;
  /** `base64`: of 32-bit floats, little-endian. */
  readonly encoding: 'float' | 'base64';
  /** The end user, for providers that ask. */
  readonly user?: string;
  /** Present where bytes may go through unread, should the target speak the client's dialect. */
  readonly passthrough?: EmbedPassthrough;
}

/** What a vector is for, in the words of the Gemini API (`RETRIEVAL_QUERY`), and the title of the document that the input is of. */
export interface Purpose {
  readonly task?: string;
  readonly title?: string;
}

/** The client's bytes, one JSON object and its places (kit/json/scan), and the way of the answer's. */
export interface EmbedPassthrough extends Sink {
  readonly dialect: string;
  readonly body: Uint8Array;
  readonly places: readonly number[];
  /** The answer begins. */
  open(head: Pick<Embedded, 'model' | 'ignored'>): void;
}

/** Where bytes go that pass. */
export interface Sink {
  /** @returns false when the client reads slowly: wait for `drained` before the next. */
  write(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
}

/** An answer that is on its way, in the dialect of the passthrough. */
export interface Passing {
  /** Hands it on, all but its end if that is wrong. @returns what it cost, if it says so. @throws Fault */
  pass(sink: Sink): Promise<Usage | undefined>;
  /** Nobody wants the rest. */
  leave(): void;
}

/** A vector as the provider wrote it: numbers, or base64. */
export type Vector = readonly number[] | string;

/** The vectors, one for each input in its order, or the answer as it came, which is forwarded as it came. */
export interface Embedded {
  /** What the provider says answers; else the target's upstream name. */
  readonly model: string;
  /** Fields of the call that were not honoured, as `field: reason`. */
  readonly ignored: readonly string[];
  readonly usage?: Usage;
  readonly answer: { readonly vectors: readonly Vector[] } | Passing;
}

/** @returns the vectors; none where the answer has been forwarded as it came. @throws Fault */
export type Embed = (
  call: EmbedCall,
  context: Context,
) => Promise<Pick<Embedded, 'model' | 'ignored'> & { readonly usage: Usage; readonly vectors: readonly Vector[] }>;

/** What a target says that has no words for what the vectors are for. */
export function purposesIgnored({ purposes = [] }: EmbedCall): readonly string[] {
  return [
    ...(purposes.some(({ task }) => task !== undefined) ? ['taskType: this model makes one kind of vectors'] : []),
    ...(purposes.some(({ title }) => title !== undefined) ? ['title: this model reads none'] : []),
  ];
}

/** A vector as numbers. */
function floatsOf(vector: Vector): readonly number[] {
  if (typeof vector !== 'string') return vector;
  const bytes = Buffer.from(vector, 'base64');
  return Array.from({ length: bytes.length >> 2 }, (_, at) => bytes.readFloatLE(4 * at));
}

/** A vector in the encoding that was asked for. */
export function encoded(vector: Vector, encoding: EmbedCall['encoding']): Vector {
  if (encoding === 'float') return floatsOf(vector);
  if (typeof vector === 'string') return vector;
  const bytes = Buffer.alloc(4 * vector.length);
  vector.forEach((number, at) => bytes.writeFloatLE(number, 4 * at));
  return bytes.toString('base64');
}
