import type { GenerateEvent, Events } from '#core/event';

/** The events one by one, however they came. */
export async function* eachOf(answer: AsyncIterable<Events>): AsyncGenerator<GenerateEvent> {
  for await (const said of answer) yield* said;
}
