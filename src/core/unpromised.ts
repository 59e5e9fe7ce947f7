import type { Events } from './event.ts';

/** The events of an answer, marked as those of a model that was not held to the schema of the call. */
export async function* unpromised(answer: AsyncIterable<Events>): AsyncGenerator<Events> {
  for await (const events of answer) yield marked(events);
}

/** The same for a whole answer. */
export const marked = (events: Events): Events => events.map((event) => (event.type === 'started' ? { ...event, unpromised: true as const } : event));
