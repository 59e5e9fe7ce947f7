import type { Exchange } from '#http/exchange';
import type { Headers } from '#http/headers';
import type { RecordedResponse } from '#http/response-recorder';

/** An answer that is given again. */
export interface ReplayRecord extends RecordedResponse {
  /** Id of the request that it was the answer to, as it stands in the books. */
  readonly requestId: string;
}

/** → its bytes at rest: a line of JSON, then the body as it is. */
export const pack = ({ body, ...head }: ReplayRecord): Buffer => Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body]);

export function unpack(packed: Buffer): ReplayRecord {
  const end = packed.indexOf(10);
  return { ...(JSON.parse(packed.toString('utf8', 0, end)) as Omit<ReplayRecord, 'body'>), body: packed.subarray(end + 1) };
}

/**
 * Gives an answer again, byte for byte. What it said about limits was true then: what is true now stands in its place. Its bytes count as the memory of the
 * request until the client has read them.
 * @throws Fault `overloaded` where there is no room for it in memory
 */
export async function replay(exchange: Exchange, { requestId, status, headers, streamed, body }: ReplayRecord, limits: Headers): Promise<void> {
  exchange.notes.replayed = requestId;
  if (exchange.left) return;
  exchange.need(body.length);
  const others = headers.filter((_, at) => !headers[at - (at % 2)]!.startsWith('x-ratelimit-'));
  const again = [...others, ...(others.length < headers.length ? limits : []), 'x-dragoman-replayed', 'true'];
  if (!streamed) return exchange.send(status, again, body);
  exchange.open(status, again);
  if (!exchange.write(body)) await exchange.drained();
  exchange.end();
}
