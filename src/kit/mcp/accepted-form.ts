import { splitter } from '../upstream/sse.ts';

type AnswerForm = 'json' | 'stream';

const types = { json: 'application/json', stream: 'text/event-stream' } as const;

/**
 * How a client wants its answer. A client of the protocol names both types and gets a stream where it may take long; one that takes anything, such as curl,
 * gets JSON. Undefined: it takes neither.
 * @param accept the header
 */
export function acceptedForm(accept: string | undefined): AnswerForm | undefined {
  if (accept === undefined || accept.trim() === '') return 'json';
  const ranges = rangesOf(accept);
  const isTaken = (form: AnswerForm) => isAccepted(ranges, types[form]);
  if (isTaken('stream') && (ranges.has(types.stream) || !isTaken('json'))) return 'stream';
  return isTaken('json') ? 'json' : undefined;
}

/** Whether each media range is taken: one with the weight 0 is not. */
function rangesOf(accept: string): ReadonlyMap<string, boolean> {
  const ranges = new Map<string, boolean>();
  for (const one of accept.slice(0, 2000).split(',')) {
    const [range = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase());
    ranges.set(range, !parameters.some((parameter) => /^q=0(\.0{0,3})?$/.test(parameter)));
  }
  return ranges;
}

/** What is said of the type itself holds before what is said of its kind, and that before what is said of all types. */
function isAccepted(ranges: ReadonlyMap<string, boolean>, type: string): boolean {
  return ranges.get(type) ?? ranges.get(type.replace(/\/.*/, '/*')) ?? ranges.get('*/*') ?? false;
}

/** Bytes of a message: more than any list that is offered. */
const mostBytes = 33_554_432;

/** An answer that came as a stream of events, as JSON: the last message, which is the answer itself. */
export async function inOneBody(response: Response): Promise<Response> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true || !response.body) return response;
  const frames = splitter({ maxLine: mostBytes });
  let last = '';
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) last = frames.push(piece).at(-1) ?? last;
  return new Response(frames.end().at(-1) ?? last, { status: response.status, headers: { 'content-type': 'application/json' } });
}
