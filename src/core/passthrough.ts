/** A request as the client sent it. It is given up once it cannot be sent again: an open stream would hold it until its end. */
export interface WrittenRequest {
  /** One JSON object without duplicate keys, and the places of its members (kit/json/scan); undefined where only the answer may pass. */
  written: { readonly bytes: Uint8Array; readonly places: readonly number[] } | undefined;
}

/**
 * Passthrough: frames in the client's own dialect that are forwarded unparsed. A target that uses it yields `started`, one `passed` before its first byte
 * (when the head has been sent) and more of them on the way, then `finished` and `usage` as for any answer. The frames are sent to the client by `write`.
 */
export interface Passthrough {
  /** The dialect of both sides. */
  readonly dialect: string;
  readonly request: WrittenRequest;
  /** Whether the client asked for the usage chunk of a stream. If not, the chunk is held back. */
  readonly usageWanted: boolean;
  /** Maximum output tokens per candidate, if the gateway and not the client sets it: to be inserted into the request. */
  readonly bound?: number;
  /** @returns false when the client reads slowly: wait for `drained` before the next. */
  write(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Is told the text of the first candidate of a stream as it is forwarded, piece by piece. */
  readonly heard?: (text: string) => void;
  /** Is told now and then how many output tokens were forwarded since. Absent: a `passed` says so. */
  readonly noted?: (tokens: number) => void;
  /** Is told where to ask for those forwarded since, should the call be settled before it has ended. */
  readonly forwards?: (forwarded: Forwarded) => void;
}

/** A stream that is forwarded. */
export interface Forwarded {
  /** Output tokens since the last call. */
  untold(): number;
}

/** The call for a rule that must read the answer or that changed the request: the request is encoded, and the answer is decoded to events. */
export function withoutPassthrough<Asked extends { readonly passthrough?: unknown }>(call: Asked): Omit<Asked, 'passthrough'> {
  if (call.passthrough === undefined) return call;
  const { passthrough: _, ...rest } = call;
  return rest;
}
