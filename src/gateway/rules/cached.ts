import { createHash } from 'node:crypto';
import { sizeOf } from '#kit/memory/size-of';
import type { GenerateCall } from '#core/call';
import { isConversation } from '#core/routed-call';
import { isEmpty, type Extra, type JsonObject } from '#core/json';
import { where, type Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Context } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import type { Model } from '#core/target';
import type { RoutedCall } from '#core/routed-call';
import { largestAnswer, type ResponseCache } from './response-cache.ts';

/** Most bytes of buffered events. Their final size, as text, is smaller. */
const mostGathered = 2 * largestAnswer;

export interface CachedDeps {
  /** Replaced when the settings change, since a name may then mean another model. */
  readonly answers: () => ResponseCache;
  /** Seconds for which answers of a model are cached; undefined: not at all. */
  readonly ttlOf: (model: Model) => number | undefined;
  /** Answers with cached events: reserves nothing and books no plan tokens. */
  readonly replayed: (answer: readonly Events[]) => Generate<RoutedCall>;
}

type Conversation = GenerateCall & Pick<RoutedCall, 'route'>;

/**
 * Response cache: returns the same answer to equal requests of the same user, for as long as the settings or the request say. Equal requests have equal
 * fields, character by character, except `stream` and `stream_options`: the cache stores events, from which either form can be made. Equal requests at the same
 * time may each go upstream. Only complete, successful answers are cached, and no answers of tasks, which bypass the events.
 */
export function cached({ answers, ttlOf, replayed }: CachedDeps, inner: Generate<RoutedCall>): Generate<RoutedCall> {
  return where(cacheable, answered, inner);

  function cacheable(call: RoutedCall, { cacheSeconds }: Context): { readonly call: Conversation; readonly ttl: number } | undefined {
    const ttl = isConversation(call) ? (cacheSeconds ?? ttlOf(call.route) ?? 0) : 0;
    return ttl === 0 || !isConversation(call) ? undefined : { call: withoutPassthrough(call), ttl };
  }

  function answered({ call, ttl }: { readonly call: Conversation; readonly ttl: number }, _: RoutedCall, context: Context): AsyncIterable<Events> {
    const name = nameOf(call, context);
    const cache = answers(); // an answer in progress when the settings change goes to the old cache, which later requests do not read
    const found = cache.find(name, ttl);
    context.progress.cache = found ? 'hit' : 'miss';
    return found ? replayed(found)(call, context) : keeping(call, context, (answer) => cache.keep(name, answer, ttl));
  }

  async function* keeping(call: Conversation, context: Context, keep: (answer: readonly Events[]) => void): AsyncGenerator<Events> {
    const answer: Events[] = [];
    let size = 0;
    for await (const events of inner(call, context)) {
      if (size < mostGathered) {
        const before = size;
        for (const event of events) size += sizeOf(event);
        if (context.memory?.take(size - before) === false) size = mostGathered; // the answer continues, but is not cached
        if (size < mostGathered) answer.push(events);
        else answer.length = 0;
      }
      yield events;
    }
    if (size < mostGathered && isGood(answer, call.sampling.candidates ?? 1)) keep(answer);
  }
}

/** The cache key: everything that an answer depends on, the user first. */
function nameOf({ stream: _, route, extra, ...fields }: Conversation, { caller, headers, strict }: Context): string {
  return createHash('sha256')
    .update(JSON.stringify([caller.userId, strict, headers, route.name, fields, withoutStreamOptions(extra)]))
    .digest('base64');
}

const withoutStreamOptions = (extra: Extra): readonly (readonly [string, JsonObject])[] =>
  Object.entries(extra).flatMap(([dialect, { stream_options: _, '.stream_options': __, ...members }]) =>
    isEmpty(members) ? [] : [[dialect, members] as const],
  );

/** Whether every candidate has ended by itself. */
function isGood(answer: readonly Events[], candidates: number): boolean {
  const ends = answer.flat().filter((event) => event.type === 'finished');
  return ends.length === candidates && ends.every(({ reason }) => reason === 'stop' || reason === 'tool');
}
