import { createHash } from 'node:crypto';
import { sizeOf } from '#kit/memory/size-of';
import type { GenerateCall } from '#core/call';
import { isConversation } from '#core/routed-call';
import type { Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Context } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import type { Model } from '#core/target';
import type { RoutedCall } from '#core/routed-call';
import { largestAnswer, type ResponseCache } from './response-cache.ts';

/** Bytes of events that are gathered at most. As text, whose size decides in the end, they are smaller. */
const mostGathered = 2 * largestAnswer;

export interface CachedDeps {
  /** Replaced when the settings change: the names may stand for other models then. */
  readonly answers: () => ResponseCache;
  /** Seconds for which the answers of a model are kept; undefined: they are not. */
  readonly ttlOf: (model: Model) => number | undefined;
  /** Answers with events that were kept: reserves nothing and books no plan tokens. */
  readonly replayed: (answer: readonly Events[]) => Generate<RoutedCall>;
}

type Conversation = GenerateCall & Pick<RoutedCall, 'route'>;

/**
 * Response cache: gives the same user the same answer to an equal request, for as long as the settings or the request say. Equal requests have equal fields, letter by
 * letter, except `stream`: events are kept, and either form can be made of them. Equal requests at the same time may each go upstream. Only complete, successful
 * answers are kept. Those of tasks are not: they go past the events.
 */
export function cached({ answers, ttlOf, replayed }: CachedDeps, inner: Generate<RoutedCall>): Generate<RoutedCall> {
  return (call, context) => {
    const ttl = isConversation(call) ? (context.cacheSeconds ?? ttlOf(call.route) ?? 0) : 0;
    if (ttl === 0 || !isConversation(call)) return inner(call, context);
    const decoded = withoutPassthrough(call);
    const name = nameOf(decoded, context);
    const cache = answers(); // an answer under way when the settings change is not kept for those who ask after it
    const kept = cache.find(name, ttl);
    context.progress.cache = kept ? 'hit' : 'miss';
    return kept ? replayed(kept)(decoded, context) : keeping(decoded, context, (answer) => cache.keep(name, answer, ttl));
  };

  async function* keeping(call: Conversation, context: Context, keep: (answer: readonly Events[]) => void): AsyncGenerator<Events> {
    const answer: Events[] = [];
    let size = 0;
    for await (const events of inner(call, context)) {
      if (size < mostGathered) {
        const before = size;
        for (const event of events) size += sizeOf(event);
        if (context.memory?.take(size - before) === false) size = mostGathered; // the answer goes on, and is not kept
        if (size < mostGathered) answer.push(events);
        else answer.length = 0;
      }
      yield events;
    }
    if (size < mostGathered && isGood(answer, call.sampling.candidates ?? 1)) keep(answer);
  }
}

/** The cache key: all that an answer depends on, the user first. */
function nameOf({ stream: _, route, ...asked }: Conversation, { caller, headers, strict }: Context): string {
  return createHash('sha256')
    .update(JSON.stringify([caller.userId, strict, headers, route.name, asked]))
    .digest('base64');
}

/** Every candidate has ended by itself. */
function isGood(answer: readonly Events[], candidates: number): boolean {
  const ends = answer.flat().filter((event) => event.type === 'finished');
  return ends.length === candidates && ends.every(({ reason }) => reason === 'stop' || reason === 'tool');
}
