/**
 * Passthrough: the way of an answer in the client's own dialect: bytes that nobody needs changed.
 * A target that takes it yields `started`, then one `passed` before its first byte (by then the head is out) and more of them on the way, then `finished` and `usage` as ever;
 * what the client reads goes through `write`.
 */
export interface Passthrough {
  /** The dialect of both sides. */
  readonly dialect: string;
  /** The request as the client sent it: one JSON object, no key twice; `places` says where its members stand (kit/json-scan). */
  readonly body: Uint8Array;
  readonly places: readonly number[];
  /** Was the usage chunk of a stream asked for? If not, it is kept back. */
  readonly usageWanted: boolean;
  /** Output tokens a candidate at most, where the gateway and not the client says so: to be put into the request. */
  readonly bound?: number;
  /** @returns false when the client reads slowly: wait for `drained` before the next. */
  write(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
}
