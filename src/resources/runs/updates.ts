import type { ToldEvent } from '#core/run';
import type { Update } from '#http/noun-route';
import { type Fault, invalid } from '#core/fault';

/** The number of the last event that the client has; 0: none. @throws Fault `invalid` */
export function afterOf(lastEventId: string | undefined): number {
  if (lastEventId === undefined || lastEventId === '') return 0;
  if (!/^\d{1,9}$/.test(lastEventId)) throw invalid('Last-Event-ID', 'must be the id of an event of the run');
  return Number(lastEventId);
}

/** The events of a run as clients are told them; while nothing happens, heartbeats. */
export async function* updatesOf(events: AsyncIterable<ToldEvent | undefined>): AsyncGenerator<Update> {
  for await (const told of events)
    if (told) yield { id: told.seq, event: told.event, value: told };
    else yield { event: 'heartbeat', value: { event: 'heartbeat', timestamp: new Date().toISOString() } };
}

/** The last that a client is told when following ends before the run does: it may go on, and be followed again. */
export const followingFailed = ({ message, status }: Fault): Update => ({
  event: 'stream.failed',
  value: { event: 'stream.failed', data: { message, status }, timestamp: new Date().toISOString() },
});
