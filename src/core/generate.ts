import type { GenerateCall } from './call.ts';
import type { Context } from './context.ts';
import type { Events } from './event.ts';
import type { Call } from './routed-call.ts';

/**
 * Answers calls. A rule about calls is a function of this type, wrapped around another.
 *
 * It has two verbs. Called as a function, it yields the events as they arrive. `answer` resolves with all events of an answer that is not streamed: most calls
 * pass most rules unchanged, and a promise costs less than a generator for each of them.
 */
export interface Generate<Asked extends Call = GenerateCall> {
  (call: Asked, context: Context): AsyncIterable<Events>;
  /** For calls without `stream`. Absent: the events are gathered. See `wholeAnswer`. */
  readonly answer?: (call: Asked, context: Context) => Promise<Events>;
}

/** All events of an answer that is not streamed, by the shortest way. */
export function wholeAnswer<Asked extends Call>(generate: Generate<Asked>, call: Asked, context: Context): Promise<Events> {
  return generate.answer ? generate.answer(call, context) : gathered(generate(call, context));
}

/** The events of an answer, when it is complete. */
export async function gathered(answer: AsyncIterable<Events>): Promise<Events> {
  let all: Events = [];
  for await (const events of answer) all = all.length === 0 ? events : [...all, ...events];
  return all;
}

/** A rule that answers with both verbs. */
export const inBothVerbs = <Asked extends Call>(
  stream: (call: Asked, context: Context) => AsyncIterable<Events>,
  answer: (call: Asked, context: Context) => Promise<Events>,
): Generate<Asked> => Object.assign(stream, { answer });

/**
 * A rule that applies to some calls; all others pass it unchanged, by either verb.
 * @param applies what the rule needs to know of a call that it applies to; undefined for all others
 * @param ruled the answer to a call that it applies to
 */
export function where<Asked extends Passed, Passed extends Call, Found>(
  applies: (call: Asked, context: Context) => Found | undefined,
  ruled: (found: Found, call: Asked, context: Context) => AsyncIterable<Events>,
  inner: Generate<Passed>,
): Generate<Asked> {
  return inBothVerbs(
    (call, context) => {
      const found = applies(call, context);
      return found === undefined ? inner(call, context) : ruled(found, call, context);
    },
    (call, context) => {
      const found = applies(call, context);
      return found === undefined ? wholeAnswer(inner, call, context) : gathered(ruled(found, call, context));
    },
  );
}
