import type { Events } from '#core/event';

/** Adds ignored fields to `started.ignored`, before or after those that the target reports. */
export async function* warned(answer: AsyncIterable<Events>, { before = [], after = [] }: Warnings): AsyncGenerator<Events> {
  for await (const events of answer)
    yield events.map((event) => (event.type === 'started' ? { ...event, ignored: [...before, ...event.ignored, ...after] } : event));
}

interface Warnings {
  readonly before?: readonly string[];
  readonly after?: readonly string[];
}
