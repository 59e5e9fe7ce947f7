import type { Events } from '#core/event';

/** The answer with more of what was not honoured in its `started.ignored`: before what its target says of that, or after it. */
export async function* warned(answer: AsyncIterable<Events>, { before = [], after = [] }: Warnings): AsyncGenerator<Events> {
  for await (const events of answer)
    yield events.map((event) => (event.type === 'started' ? { ...event, ignored: [...before, ...event.ignored, ...after] } : event));
}

interface Warnings {
  readonly before?: readonly string[];
  readonly after?: readonly string[];
}
