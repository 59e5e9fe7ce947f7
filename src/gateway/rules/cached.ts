import { createHash } from 'node:crypto';
import { sizeOf } from '#kit/memory/size-of';
import { type GenerateCall } from '#core/call';
import { isConversation } from '#core/routed-call';
import type { Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Context } from '#core/context';
import type { Model } from '#core/target';
import type { RoutedCall } from '#core/routed-call';
import { largestAnswer, type ResponseCache } from './response-cache.ts';

/** Bytes of events that are gathered; as text, whose size decides in the end, they are smaller. */
const mostGathered = 2 * largestAnswer;

export interface CachedDeps {
  /** Others when the settings change, for other models may stand behind the names then. */
  readonly answers: () => ResponseCache;
  /** Seconds for which the answers of a model are kept; nothing: they are not. */
  readonly ttlOf: (model: Model) => number | undefined;
  /** Answers without asking anybody: reserves nothing and books no plan tokens. */
  readonly replayed: (said: readonly Events[]) => Generate<RoutedCall>;
}

/**
 * Gives the same user the same answer to the same request, for as long as the settings or the request say. Equal means: every field, letter by letter, but whether it
 * is streamed: events are kept, so that either form can be made of them. Equal requests at the same time may each go up. Only whole, good answers are kept. Errands
 * are not: their answers go past the events.
 */
export function cached({ answers, ttlOf, replayed }: CachedDeps, inner: Generate<RoutedCall>): Generate<RoutedCall> {
  return (call, context) => {
    const ttl = isConversation(call) ? (context.cacheSeconds ?? ttlOf(call.route) ?? 0) : 0;
    if (ttl === 0 || !isConversation(call)) return inner(call, context);
    const name = nameOf(call, context);
    const kept = answers(); // an answer under way when the settings change is not kept for those who ask after it
    const said = kept.find(name, ttl);
    context.progress.cache = said ? 'hit' : 'miss';
    return said ? replayed(said)(call, context) : keeping(call, context, (all) => kept.keep(name, all, ttl));
  };

  async function* keeping(call: GenerateCall & Pick<RoutedCall, 'route'>, context: Context, keep: (said: readonly Events[]) => void): AsyncGenerator<Events> {
    const { passthrough: _, ...heard } = call; // bytes that pass unread cannot be kept
    const said: Events[] = [];
    let size = 0;
    for await (const events of inner(heard, context)) {
      if (size < mostGathered) {
        const before = size;
        for (const event of events) size += sizeOf(event);
        if (context.memory?.take(size - before) === false) size = mostGathered; // the answer goes on, and is not kept
        if (size < mostGathered) said.push(events);
        else said.length = 0;
      }
      yield events;
    }
    if (size < mostGathered && isGood(said, call.sampling.candidates ?? 1)) keep(said);
  }
}

/** Whatever an answer depends on, and first of all whose it is. */
function nameOf({ passthrough: _, stream: __, route, ...asked }: GenerateCall & Pick<RoutedCall, 'route'>, { caller, headers, strict }: Context): string {
  return createHash('sha256')
    .update(JSON.stringify([caller.userId, strict, headers, route.name, asked]))
    .digest('base64');
}

/** Every candidate has ended by itself. */
function isGood(said: readonly Events[], candidates: number): boolean {
  const ends = said.flat().filter((event) => event.type === 'finished');
  return ends.length === candidates && ends.every(({ reason }) => reason === 'stop' || reason === 'tool');
}
