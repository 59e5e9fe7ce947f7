import type { Context } from './context.ts';
import type { Counts } from './price.ts';

/** A request that goes to a provider of the same interface as it came, and whose answer comes back as it came: speech, pictures, transcripts. */
export interface RawRequest {
  readonly model: string;
  /** The rest of the address: `audio/speech`. */
  readonly operation: string;
  readonly body: RawBody;
  /** The answer comes in pieces. */
  readonly stream: boolean;
  /** What is read, and the tokens of what is read besides: what it costs where the provider does not count. */
  readonly texts: readonly string[];
  readonly tokens: number;
  /** What it asks for, or gives to read, that is not counted in tokens. */
  readonly counts: Counts;
  /** What it may cost at most, in tokens beside its texts: so much is set aside. */
  readonly most: { readonly input: number; readonly output: number };
  /** The answer is text that a model made, and costs so. */
  readonly saysText: boolean;
  /** The answer begins: its content type and the fields of the request that were not honoured. */
  open(contentType: string, ignored: readonly string[]): void;
  /** @returns false when the client reads slowly: wait for `drained` before the next. */
  write(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
}

/** JSON with the places of its members (kit/json/scan), or a form. */
export type RawBody =
  | { readonly type: 'json'; readonly bytes: Uint8Array; readonly places: readonly number[] }
  | { readonly type: 'form'; readonly form: FormData };

/** Resolves when the answer is out. @throws Fault */
export type SendRaw = (call: RawRequest, context: Context) => Promise<void>;
