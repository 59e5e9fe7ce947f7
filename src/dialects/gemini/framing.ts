import type { Fault } from '#core/fault';
import { encodeFault } from './faults.ts';

/** Frames the chunks of one stream. It has state: each stream needs its own. */
export interface Framing {
  readonly contentType: string;
  /** Bytes that clients ignore. */
  readonly keepAlive: string;
  /** @param json one chunk */
  chunk(json: string): string;
  /** The text after the last chunk. */
  end(): string;
  /** The end of a stream that failed. */
  fault(fault: Fault): string;
}

/** Server-sent events (`alt=sse`) without comments and event names, which clients of this wire fail on or ignore: so a fault is a chunk too. */
export function eventFraming(): Framing {
  const chunk = (json: string) => `data: ${json}\r\n\r\n`;
  return {
    contentType: 'text/event-stream; charset=utf-8',
    keepAlive: '\r\n\r\n',
    chunk,
    end: () => '',
    fault: (fault) => chunk(JSON.stringify(encodeFault(fault))),
  };
}

/** One JSON array that is streamed element by element. A fault is its last element. */
export function arrayFraming(): Framing {
  let begun = false;
  const chunk = (json: string) => {
    const before = begun ? ',\r\n' : '[';
    begun = true;
    return before + json;
  };
  return {
    contentType: 'application/json; charset=utf-8',
    keepAlive: '\r\n',
    chunk,
    end: () => (begun ? ']' : '[]'),
    fault: (fault) => `${chunk(JSON.stringify(encodeFault(fault)))}]`,
  };
}
