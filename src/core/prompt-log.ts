export interface PromptLog {
  /** UTF-16 units that are kept of each prompt and answer; 0: only their lengths. */
  readonly most: number;
  /** Notes a request: its texts are copied at once. Nothing waits for it; what is too much is dropped. */
  tell(told: ToldRequest): void;
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
  /** Cut, and the UTF-16 units of the whole answer, as far as it was forwarded. */
  readonly answer: { readonly text: string; readonly length: number };
}
