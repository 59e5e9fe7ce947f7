import type { Fault } from '#core/fault';
import { encodeFault } from './faults.ts';

/** How the chunks of a stream stand one after the other. Keeps count of them: one for each stream. */
export interface Framing {
  readonly contentType: string;
  /** Says nothing to whoever reads the chunks. */
  readonly keepAlive: string;
  /** @param json one chunk */
  chunk(json: string): string;
  /** What follows the last chunk. */
  end(): string;
  /** The last words of a stream that failed. */
  fault(fault: Fault): string;
}

/** Server-sent events: `alt=sse`. Without comments and without names of events, on which clients of this wire fail or are deaf: so a fault is a chunk too. */
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

/** One JSON array whose elements come as they are made. A fault is its last element. */
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
