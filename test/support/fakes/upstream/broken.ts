/** Answers that never come, stop half-way, or lie about their length. */
import { collected, whole, type Bytes, type End, type HttpAnswer } from './answer.ts';
import type { Behaviour } from './behaviour.ts';
import { altered, good, ok } from './good.ts';

type Ending = 'fin' | 'reset';

/** The connection stays open and nothing is said. */
export const hang = (): Behaviour => bytes('', 'silence');

/** The connection ends without a byte. */
export const drop = (how: Ending = 'reset'): Behaviour => bytes('', how);

/** Drops a connection that has carried a request before, as an upstream does that closes an idle one while we write; else a good answer. */
export const dropReused = (how: Ending = 'reset'): Behaviour => ({
  name: 'dropReused',
  answer: (exchange) => (exchange.request.reused ? { raw: [], end: how } : good(exchange)),
});

/** Exact bytes in place of an answer, status line and all. */
export const bytes = (text: Bytes, end: 'fin' | 'reset' | 'silence' = 'fin'): Behaviour => ({
  name: 'bytes',
  answer: () => ({ raw: text.length > 0 ? [text] : [], end }),
});

/** A bare carriage return in a header, with another header behind it. */
export const brokenHead = (): Behaviour => bytes('HTTP/1.1 200 OK\r\nx-a: b\rset-cookie: evil=1\r\ncontent-length: 2\r\n\r\n{}');

/** Headers, this many events, then silence. */
export const headersThenHang = ({ afterEvents = 0 } = {}): Behaviour =>
  altered('headersThenHang', ok(), (answer) => ({ ...answer, body: first(answer, { afterEvents }), end: 'silence' }));

interface Where {
  /** Events of a stream; of a whole answer half is sent. */
  readonly afterEvents?: number;
  readonly afterBytes?: number;
}

/** A good answer that is cut off: its connection ends, without the terminator of the body. */
export const cut = ({ how = 'fin', ...where }: Where & { how?: Ending } = {}, base: Behaviour = ok()): Behaviour =>
  altered(`cut ${how}`, base, (answer) => cutOff(answer, how, first(answer, where)));

/** Cut between the bytes of one character. */
export const cutInCharacter = (how: Ending = 'reset'): Behaviour =>
  altered('cutInCharacter', ok({ text: 'Grüße 🐉 aus der Ferne' }), async (answer) => {
    const all = await collected(answer.body);
    return cutOff(answer, how, [all.subarray(0, all.indexOf('🐉') + 2)]);
  });

/** Cut in the middle of the JSON text of an event, after this many whole ones. */
export const cutInJson = ({ afterEvents = 2, how = 'reset' }: { afterEvents?: number; how?: Ending } = {}): Behaviour =>
  altered('cutInJson', ok(), (answer) => {
    const [half, ...before] = first(answer, { afterEvents: afterEvents + 1 }).toReversed();
    return cutOff(answer, how, [...before.toReversed(), half!.slice(0, half!.length / 2)]);
  });

/** All of a good answer in chunks, but the one that says that it is all. */
export const unterminated = (): Behaviour => altered('unterminated', ok(), (answer) => ({ ...answer, framing: 'chunked', end: 'fin' }));

/** All of a good answer, on a connection that stays open. */
export const neverEnds = (base: Behaviour = ok()): Behaviour => altered('neverEnds', base, (answer) => ({ ...answer, framing: 'chunked', end: 'silence' }));

/** A Content-Length of this many bytes more than come. */
export const lyingLength = (more = 100): Behaviour =>
  altered('lyingLength', ok(), async (answer) => {
    const all = await collected(answer.body);
    return { ...answer, body: [all], framing: all.length + more, end: 'fin' };
  });

/** A properly ended answer whose last character is half. */
export const truncatedUtf8 = (): Behaviour =>
  altered('truncatedUtf8', ok({ text: 'Grüße 🐉' }), async (answer) => {
    const all = await collected(answer.body);
    const at = all.indexOf('🐉');
    return whole(200, Buffer.concat([all.subarray(0, at + 2), all.subarray(at + 4)]), answer.headers);
  });

const cutOff = (answer: HttpAnswer, end: End, body: Bytes[]): HttpAnswer => ({ ...answer, body, end });

/** The first part of an answer whose pieces are all there. */
function first(answer: HttpAnswer, { afterEvents = 1, afterBytes }: Where): Bytes[] {
  const pieces = [...(answer.body as Iterable<Bytes>)];
  const whole = Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
  if (afterBytes !== undefined) return [whole.subarray(0, afterBytes)];
  return pieces.length > 1 ? pieces.slice(0, afterEvents) : [whole.subarray(0, whole.length / 2)];
}
