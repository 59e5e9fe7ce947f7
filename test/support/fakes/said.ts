import type { GenerateEvent } from '#core/event';
import type { Events } from '#core/generate';

/** The events one by one, however they came. */
export async function* eachOf(answer: AsyncIterable<Events>): AsyncGenerator<GenerateEvent> {
  for await (const said of answer) yield* said;
}
