import type { GenerateCall } from '#core/call';
import { speaks, type Events } from '#core/event';
import { Fault } from '#core/fault';
import { mostLessons, type Endpoint, type ProviderRequest } from './attempt.ts';
import type { KnownQuirks } from './known-quirks.ts';

/** What answers of status 200 taught that were refusals, or say what the request lacks. It is kept when an answer is one. */
export interface InAnswer<Quirks> {
  readonly quirks: Quirks;
  /** What was refused, or lacking. */
  readonly fields: readonly string[];
  readonly keep: KnownQuirks<Quirks>['keep'];
}

type Taught<Quirks> = Pick<Endpoint<GenerateCall, ProviderRequest, Quirks>, 'model' | 'quirks' | 'learn'>;

/** The endpoint as a lesson has it. */
export const taught = <Quirks, Any extends Taught<Quirks>>(endpoint: Any, lesson: InAnswer<Quirks> | undefined): Any =>
  lesson ? { ...endpoint, quirks: { ...endpoint.quirks, of: () => lesson.quirks } } : endpoint;

/** What an error in an answer teaches in addition to a lesson. @param endpoint as the lesson has it */
export function learnedInAnswer<Quirks>(
  { model, quirks, learn }: Taught<Quirks>,
  call: GenerateCall,
  error: unknown,
  { fields = [] }: Partial<InAnswer<Quirks>> = {},
): InAnswer<Quirks> | undefined {
  if (!(error instanceof Fault) || fields.length >= mostLessons) return undefined;
  const { lacks, asRefusal: isRefusal, place, field = 'request' } = error.details;
  const refused = lacks ?? (isRefusal ? (place ?? field) : undefined);
  const known = refused === undefined ? undefined : learn(error, call, quirks.of(model));
  return known === undefined ? undefined : { quirks: known, fields: [...fields, refused!], keep: quirks.keep.bind(quirks) };
}

/** The answer, from which on the lesson is kept. */
export async function* keeping<Quirks>(model: string, { quirks, fields, keep }: InAnswer<Quirks>, answer: AsyncIterable<Events>): AsyncGenerator<Events> {
  let isKept = false;
  for await (const events of answer) {
    if (!isKept && events.some((event) => speaks(event) || event.type === 'finished')) {
      keep(model, quirks, fields);
      isKept = true;
    }
    yield events;
  }
}
