import type { Clock } from '#kit/async/clock';
import { isConversation } from '#core/routed-call';
import type { Task } from '#core/task';
import type { GenerateEvent, Usage, Events } from '#core/event';
import { Fault } from '#core/fault';
import { gathered, where, type Generate } from '#core/generate';
import type { Context } from '#core/context';
import { sumOf } from '#core/usage';
import type { AdmittedCall } from './admitted.ts';

/** Longest delay before the retry of a failed part, in seconds. */
const longestWait = 10;

/**
 * Runs a large task part by part, each at whichever target can. A part that every target failed is retried once if other parts were completed before it, so
 * that their cost is not lost. Admission and the usage rows see only the whole.
 */
export function inParts(clock: Clock, inner: Generate<AdmittedCall>): Generate<AdmittedCall> {
  return where((call) => (isConversation(call) ? undefined : call.parts), summed, inner);

  async function* summed(parts: readonly Task[], { route, reservation }: AdmittedCall, context: Context): AsyncGenerator<Events> {
    const events: GenerateEvent[] = [];
    for (const [at, part] of parts.entries()) {
      const one = { ...part, route, reservation };
      try {
        events.push(...(await (at === 0 ? whole(one, context) : twice(one, context))));
      } catch (error) {
        if (at > 0) yield [{ type: 'usage', usage: sum(events, 'partial') }]; // the completed parts are paid for
        throw error;
      }
    }
    const started = events.filter((event) => event.type === 'started');
    yield [
      {
        type: 'started',
        model: [...new Set(started.map(({ model }) => model))].join(', '),
        ignored: [...new Set(started.flatMap(({ ignored }) => ignored))],
        ...(started.some(({ unpromised }) => unpromised) ? { unpromised: true } : {}),
      },
    ];
    yield [{ type: 'passed', tokens: 0 }];
    if (events.filter((event) => event.type === 'usage').length === parts.length) yield [{ type: 'usage', usage: sum(events, 'provider') }];
  }

  async function twice(part: AdmittedCall, context: Context): Promise<readonly GenerateEvent[]> {
    try {
      return await whole(part, context);
    } catch (error) {
      if (context.signal.aborted || !(error instanceof Fault) || !error.details.elsewhere) throw error;
      await clock.sleep(1000 * Math.min(error.details.retryAfter ?? 1, longestWait), context.signal);
      return whole(part, context);
    }
  }

  async function whole(part: AdmittedCall, context: Context): Promise<readonly GenerateEvent[]> {
    return gathered(inner(part, context));
  }
}

function sum(events: readonly GenerateEvent[], source: Usage['source']): Usage {
  const usages = events.flatMap((event) => (event.type === 'usage' ? [event.usage] : []));
  const all = usages.reduce(sumOf, { input: 0, output: 0, source: 'provider' });
  return all.source === 'provider' ? { ...all, source } : all;
}
