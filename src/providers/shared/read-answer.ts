import type { ProviderSide, WireTypes } from '#dialects/dialect';
import { bareErrors } from '#dialects/shared/bare-error';
import type { Decoder } from '#dialects/shared/decoder';
import { UpstreamError, type UpstreamResponse } from '#kit/upstream/response';
import { mostFrameBytes, splitter } from '#kit/upstream/sse';
import { speaks, type GenerateEvent, type Events } from '#core/event';
import { Fault } from '#core/fault';
import { parseAsWritten } from '#kit/json/numbers';
import { BadJson } from '#kit/json/scan';
import { foreignLimits, isQuick } from '#kit/json/foreign';
import { readLargeJson } from '#kit/json/large';
import { answerFault, asRefusal, type AwaitingWords } from './post.ts';

/** Reading of answers, in any dialect. */

/**
 * The events of a stream. Those before its content come with it, so that an answer which begins with a refusal leaves no trace.
 * @throws Fault; with `key` or `asRefusal` only where nothing was yielded
 */
export async function* streamed(awaiting: AwaitingWords, frames: Decoder): AsyncGenerator<Events> {
  const lines = splitter({ maxLine: mostFrameBytes, bare: bareErrors() });
  const opening: Opening = { held: [] };
  try {
    for (let bytes = await awaiting.take(); bytes; bytes = await orComplete(awaiting.take(), () => frames.isComplete(), undefined)) {
      yield* decoded(lines.push(bytes), frames, awaiting, opening);
    }
    yield* decoded(lines.end(), frames, awaiting, opening);
    const last = frames.end();
    yield opening.held ? [...opening.held, ...last] : last;
  } catch (error) {
    const { held } = opening;
    const usage = frames.counted();
    const fault = held ? asRefusal(answerFault(error, false), usage) : answerFault(error, true);
    if (fault instanceof Fault && (fault.details.key || fault.details.asRefusal)) throw fault;
    if (held && held.length > 0) yield held;
    if (usage) yield [{ type: 'usage', usage: { ...usage, source: 'partial' } }];
    throw fault;
  }
}

/** Waits for more of an answer, or for its end; the connection of a complete one may break off or be silent for too long: then it resolves with `end`. */
export const orComplete = <Result, End>(waiting: Promise<Result>, isComplete: () => boolean, end: End): Promise<Result | End> =>
  waiting.catch((error: unknown) => {
    if (error instanceof UpstreamError && isComplete()) return end;
    throw error;
  });

/** The events before the content of an answer; undefined once there is content. */
interface Opening {
  held: GenerateEvent[] | undefined;
}

/** The events of these lines, yielded together. Events before a malformed line are yielded before its fault is thrown. */
function* decoded(lines: readonly string[], frames: Decoder, awaiting: AwaitingWords, opening: Opening): Generator<Events> {
  const events: GenerateEvent[] = opening.held ?? [];
  try {
    for (const line of lines) events.push(...frames.decode(line));
  } finally {
    const isHeld = opening.held !== undefined && !events.some(speaks);
    if (!isHeld) {
      opening.held = undefined;
      awaiting.spoke();
    }
    awaiting.ends(frames.mayEnd());
    if (frames.isOver()) awaiting.over();
    if (!isHeld && events.length > 0) yield events;
  }
}

/** A response without a content type counts as an event stream. */
export function isEventStream({ headers }: UpstreamResponse): boolean {
  const type = headers['content-type'];
  return type === undefined || type.toLowerCase().startsWith('text/event-stream');
}

/** Is a response of another type an event stream all the same? Some proxies call one `text/plain` or `application/octet-stream`. */
export async function beginsWithEvents(response: UpstreamResponse): Promise<boolean> {
  return eventField.test(Buffer.from(await response.beginning(mostBeginning)).toString('utf8'));
}

const mostBeginning = 16;
const eventField = /^\uFEFF?\s*(?:data|event|id|retry)?:/;

/** The JSON that bytes are. @throws Fault `upstream-failed` */
export const jsonOf = (bytes: Uint8Array, reading: Reading = {}): unknown => (isQuick(bytes) ? parsed(bytes, reading) : parsedLarge(bytes, reading));

type Reading = Pick<ProviderSide<WireTypes>, 'callMarker'>;

/** Parses bytes that are quick to parse. The fault has no cause, since the message of JSON.parse quotes the text. @throws Fault `upstream-failed` */
export function parsed(bytes: Uint8Array, { callMarker }: Reading = {}): unknown {
  const text = bufferOf(bytes).toString('utf8');
  try {
    return callMarker !== undefined && text.includes(callMarker) ? parseAsWritten(text) : JSON.parse(text);
  } catch {
    throw notJson(text.slice(0, 100));
  }
}

/** The same for bytes that are looked at before they are parsed, in several turns. @throws Fault `upstream-failed` */
export async function parsedLarge(bytes: Uint8Array, { callMarker }: Reading = {}): Promise<unknown> {
  try {
    const numbersAsWritten = callMarker !== undefined && bufferOf(bytes).includes(callMarker);
    return (await readLargeJson(bytes, { ...foreignLimits, numbersAsWritten })).value;
  } catch (error) {
    throw error instanceof BadJson ? notJson(Buffer.from(bytes.subarray(0, 100)).toString('utf8')) : error;
  }
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength);

/** @param beginning of the answer */
const notJson = (beginning: string) =>
  new Fault(
    'upstream-failed',
    beginning.trimStart().startsWith('<')
      ? 'The provider answered with a web page instead of JSON: its base URL may be wrong.'
      : 'The answer of the provider is not JSON, or is too complex to parse.',
    { elsewhere: true },
  );
