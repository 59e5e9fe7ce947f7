import { absent } from './capabilities.ts';
import type { Usage } from './event.ts';
import type { Context } from './context.ts';

export interface EmbedCall {
  /** As the client wrote it. */
  readonly model: string;
  /** Texts, or texts as the model's own tokens, never mixed. */
  readonly inputs: readonly string[] | readonly (readonly number[])[];
  /** The purpose of the vectors, one for each input; absent if the client gives none. */
  readonly purposes?: readonly Purpose[];
  /** The number of dimensions; absent: the model's own. */
  readonly dimensions?: number;
  /** `base64`: of 32-bit floats, little-endian. */
  readonly encoding: 'float' | 'base64';
  /** The end user, for providers that require one. */
  readonly user?: string;
  /** Members of the request that are not known here, as the client spelled them: only the bytes of a passthrough carry them. */
  readonly unknown?: readonly string[];
  /** Present where bytes may be forwarded unparsed, if the target speaks the client's dialect. */
  readonly passthrough?: EmbedPassthrough;
}

/** The purpose of a vector, by its name in the Gemini API (`RETRIEVAL_QUERY`), and the title of the document that contains the input. */
export interface Purpose {
  readonly task?: string;
  readonly title?: string;
}

/** The client's bytes, one JSON object with the places of its members (kit/json/scan), and where those of the answer go. */
export interface EmbedPassthrough {
  readonly dialect: string;
  readonly body: Uint8Array;
  readonly places: readonly number[];
  /** Called when the answer is there, in pieces. */
  forward(head: Pick<Embedded, 'model' | 'ignored'>, pieces: readonly Uint8Array[]): void;
}

/** A vector as the provider wrote it: numbers, or base64. */
export type Vector = readonly number[] | string;

/** What a provider says of one input. */
export interface InputStatistics {
  readonly tokens: number;
  /** Only the beginning of it was read. */
  readonly truncated: boolean;
}

/** The vectors, one for each input in order, or the bytes of the answer in pieces, which are the same in the dialect of the passthrough. */
export interface Embedded {
  /** The model name that the provider reports; else the target's upstream name. */
  readonly model: string;
  /** Fields of the call that were ignored, as `field: reason`. */
  readonly ignored: readonly string[];
  readonly usage?: Usage;
  readonly answer: { readonly vectors: readonly Vector[]; readonly statistics?: readonly InputStatistics[] } | { readonly pieces: readonly Uint8Array[] };
}

/** @returns the vectors, with the statistics of all inputs where providers give them; none if the answer was forwarded unparsed. @throws Fault */
export type Embed = (
  call: EmbedCall,
  context: Context,
) => Promise<
  Pick<Embedded, 'model' | 'ignored'> & { readonly usage: Usage; readonly vectors: readonly Vector[]; readonly statistics?: readonly InputStatistics[] }
>;

/** The warnings about members that are not known, unless the client's bytes are forwarded. */
export const unknownIgnored = ({ unknown = [] }: EmbedCall): readonly string[] => unknown.map((name) => `${name}: ${absent}`);

/** The names of members besides those that are known, the first of them. A name is cut where it is too long to be shown; a null asks for nothing. */
export function unknownMembers(body: Readonly<Record<string, unknown>>, known: Readonly<Record<string, unknown>>, before = ''): readonly string[] {
  const names: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    if (value !== null && !Object.hasOwn(known, name)) names.push(`${before}${name.slice(0, longestName)}`);
    if (names.length === mostNames) break;
  }
  return names;
}

const longestName = 100;
const mostNames = 20;

/** The warning of a target that does not support purposes of vectors. */
export function purposesIgnored({ purposes = [] }: EmbedCall): readonly string[] {
  return [
    ...(purposes.some(({ task }) => task !== undefined) ? ['taskType: this model makes one kind of vectors'] : []),
    ...(purposes.some(({ title }) => title !== undefined) ? ['title: this model reads none'] : []),
  ];
}

export function floatsOf(vector: Vector): readonly number[] {
  if (typeof vector !== 'string') return vector;
  const bytes = Buffer.from(vector, 'base64');
  return Array.from({ length: bytes.length >> 2 }, (_, at) => bytes.readFloatLE(4 * at));
}

export function encoded(vector: Vector, encoding: EmbedCall['encoding']): Vector {
  if (encoding === 'float') return floatsOf(vector);
  if (typeof vector === 'string') return vector;
  const bytes = Buffer.alloc(4 * vector.length);
  vector.forEach((number, at) => bytes.writeFloatLE(number, 4 * at));
  return bytes.toString('base64');
}
