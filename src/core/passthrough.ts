/**
 * Passthrough: frames in the client's own dialect that are forwarded unparsed. A target that uses it yields `started`, one `passed` before its first byte (when the
 * head has been sent) and more of them on the way, then `finished` and `usage` as for any answer. What the client reads goes through `write`.
 */
export interface Passthrough {
  /** The dialect of both sides. */
  readonly dialect: string;
  /** The request as the client sent it: one JSON object, no key twice; `places` says where its members stand (kit/json/scan). */
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

/** The call for a rule that must read the answer, or that changed the request: it is encoded, and its answer comes as decoded events. */
export function withoutPassthrough<Asked extends { readonly passthrough?: unknown }>(call: Asked): Omit<Asked, 'passthrough'> {
  if (call.passthrough === undefined) return call;
  const { passthrough: _, ...rest } = call;
  return rest;
}
