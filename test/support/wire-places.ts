import type { GenerateEvent } from '../../src/core/event.ts';

/** Without the field in which the provider sent a thought, since clients get all thoughts in one, and without the place of its usage. */
export const withoutWirePlaces = (events: readonly GenerateEvent[]): readonly GenerateEvent[] =>
  events
    .filter((event) => event.type !== 'thought' || !event.extra)
    .map((event) => (event.type === 'usage' ? { type: event.type, usage: event.usage } : event));
