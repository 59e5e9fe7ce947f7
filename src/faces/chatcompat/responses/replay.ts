import { setImmediate as nextTurn } from 'node:timers/promises';
import { encodeFault } from '#dialects/openai/faults';
import { Encoder } from '#dialects/openai/responses/encoder';
import { frameText } from '#dialects/openai/responses/output-items';
import { eventsOfResponse } from '#dialects/openai/responses/result';
import { EventStream } from '#http/event-stream';
import type { Exchange } from '#http/exchange';
import type { GeneratingDeps } from '../../answer.ts';
import type { GenerateEvent } from '#core/event';
import { Fault, faultOf } from '#core/fault';
import { isObject, textOf } from '#core/json';
import { isRunning } from './continuation.ts';
import { includedIn } from './entry.ts';
import type { Entry, StoredResponseBody } from './stored-body.ts';
import type { RunBroadcast } from './run-broadcast.ts';

export interface StreamingDeps extends Pick<GeneratingDeps, 'clock' | 'limits'> {
  readonly find: () => Promise<Entry | undefined>;
  readonly live: () => RunBroadcast | undefined;
}

/** A run of another process is looked at so often. */
const lookMilliseconds = 500;
/** Events that are encoded in one turn of the event loop: a run may have said a hundred thousand before anybody listens. */
const turnEvents = 1000;

/**
 * The stream of a kept response: what was said so far, then what is said while it is worked on.
 * @param after the number of the last frame that the client has; −1: none
 */
export async function streamEntry({ clock, limits, find, live }: StreamingDeps, exchange: Exchange, after: number): Promise<void> {
  const { holdHeadersSeconds: holdSeconds, streamSeconds } = limits();
  exchange.expire(streamSeconds);
  const out = new EventStream(exchange, {
    clock,
    holdSeconds,
    keepAlive: ': keep-alive\n\n',
    contentType: 'text/event-stream; charset=utf-8',
    headers: () => [],
  });
  let encoder: Encoder | undefined;
  let said = 0;
  const sayOn = async (frames: Encoder, events: readonly GenerateEvent[]): Promise<void> => {
    for (let turn = 0; said < events.length; turn++) {
      if (turn > 0) await nextTurn();
      exchange.signal.throwIfAborted();
      let text = '';
      for (const to = Math.min(said + turnEvents, events.length); said < to; said++) text += frames.encode(events[said]!);
      if (text !== '' && !out.write(text)) await out.drained();
    }
  };
  try {
    let entry = await find();
    if (!entry) throw gone();
    encoder = encoderOf(entry.body, after, () => entry?.body.response['completed_at']);
    while (isRunning(entry.status)) {
      exchange.signal.throwIfAborted();
      const running = live();
      if (running) {
        for (; !running.ended || said < running.events.length; await running.more(said, exchange.signal)) {
          exchange.signal.throwIfAborted();
          await sayOn(encoder, running.events);
        }
      } else await clock.sleep(lookMilliseconds, exchange.signal);
      entry = await find();
      if (!entry) throw gone();
    }
    await sayOn(encoder, eventsIn(entry));
    if (!entry.body.run?.events) encoder.numberFrom(after + 1); // the client may have more frames than are left
    out.end(lastOf(encoder, entry));
  } catch (error) {
    if (exchange.opened && encoder) out.end(encoder.cutShort(encodeFault(faultOf(error)).error));
    else if (exchange.opened) exchange.destroy();
    throw error;
  } finally {
    out.close();
  }
}

export const gone = () => new Fault('not-found', 'There is no response with this id.', { field: 'response_id' });

/** The same frames as ever, without those that the client has. */
function encoderOf(body: StoredResponseBody, after: number, completedAt: () => unknown): Encoder {
  const unsaid = { status: 'queued', output: [], usage: null, completed_at: null, error: null, incomplete_details: null };
  return new Encoder({
    response: { ...body.response, ...unsaid },
    ...includedIn(body),
    now: () => Number(completedAt() ?? 0),
    frame: (type, members, number) => (number > after ? frameText(type, members) : ''),
  });
}

function lastOf(encoder: Encoder, { body: { response } }: Entry): string {
  switch (response['status']) {
    case 'failed': {
      const { code, message } = isObject(response['error']) ? response['error'] : {};
      return encoder.fail({ type: 'server_error', code: textOf(code), message: textOf(message), param: null });
    }
    case 'cancelled':
      return 'data: [DONE]\n\n'; // the interface has no event for it
    default:
      return encoder.end();
  }
}

/** What was said, event by event where that was kept, else a part at a time. */
function eventsIn({ body: { response, answer = [], run } }: Entry): readonly GenerateEvent[] {
  if (run?.events) return run.events;
  const { status } = response;
  if (status === 'failed' && answer.length === 0) return [{ type: 'started', model: textOf(response['model']), ignored: [] }];
  const events = [...eventsOfResponse(response, answer)];
  return status === 'failed' || status === 'cancelled' ? events.filter(({ type }) => type !== 'finished' && type !== 'usage') : events;
}
