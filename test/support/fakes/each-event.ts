import type { GenerateEvent, Events } from '#core/event';

/** The events of an answer one at a time, however they were batched. */
export async function* eachOf(answer: AsyncIterable<Events>): AsyncGenerator<GenerateEvent> {
  for await (const events of answer) yield* events;
}
