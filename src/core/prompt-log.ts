/** The log of prompts and answers. */
export interface PromptLog {
  /** UTF-16 units that are kept of each prompt and answer; 0: only their lengths. */
  readonly most: number;
  /** Notes a request. Nothing waits for it; what is too much is dropped. */
  tell(told: ToldRequest): void;
  /** Reads the text of an answer that was forwarded as it came. @param stream as server-sent events, else one JSON value */
  reader(dialect: string, stream: boolean): AnswerReader;
}

/** A request and its answer. */
export interface ToldRequest {
  readonly requestId: string;
  readonly userId: number;
  /** Of the client; empty where it is not known. */
  readonly address: string;
  /** Cut. */
  readonly prompt: string;
  /** UTF-16 units of the whole prompt. */
  readonly promptLength: number;
  /** The answer as far as it was heard, cut at will, and the length of the whole: of an answer that was forwarded, and not read to its end, an estimate. */
  answer(): { readonly text: string; readonly length: number };
}

export interface AnswerReader {
  /** @returns the text that the next bytes complete; '' where they cannot be read */
  read(bytes: Uint8Array): string;
}
