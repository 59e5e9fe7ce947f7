import type { Context } from './context.ts';
import type { Counts } from './price.ts';

/** A request that is forwarded unparsed to a provider of the same interface, and whose answer is forwarded unparsed too: pictures, transcripts. */
export interface RawRequest {
  readonly model: string;
  /** The rest of the address: `audio/transcriptions`. */
  readonly operation: string;
  readonly body: RawBody;
  readonly stream: boolean;
  /** The texts that the model reads, and the tokens of its other input: the cost if the provider reports no usage. */
  readonly texts: readonly string[];
  readonly tokens: number;
  /** The requested amounts, and those of its input, that are not counted in tokens. */
  readonly counts: Counts;
  /** Upper bound of its cost, in tokens beside its texts: this amount is reserved. */
  readonly most: { readonly input: number; readonly output: number };
  /** The answer is text that a model wrote, and is charged as such. */
  readonly saysText: boolean;
  /** Called when the answer begins, with its content type, the ignored fields of the request, and its length in bytes, where it comes in pieces and announces one. */
  open(contentType: string, ignored: readonly string[], length?: number): void;
  /** @returns false when the client reads slowly: wait for `drained` before the next. */
  write(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
}

/** JSON with the places of its members (kit/json/scan), or a form. */
export type RawBody =
  | { readonly type: 'json'; readonly bytes: Uint8Array; readonly places: readonly number[] }
  | { readonly type: 'form'; readonly form: FormData };

/** Resolves when the answer has been sent. @throws Fault */
export type SendRaw = (call: RawRequest, context: Context) => Promise<void>;
