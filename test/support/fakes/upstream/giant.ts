/** Answers too large for anybody. They are made while they are sent and stop when the caller leaves. */
import { whole, type HttpAnswer } from './answer.ts';
import type { Behaviour, Exchange } from './behaviour.ts';
import { altered, good, ok, stream } from './good.ts';

const block = 'a'.repeat(1 << 16);

/** A body that never ends: events of a stream, or one JSON string. */
export const endless = (): Behaviour => ({
  name: 'endless',
  answer: (exchange) => {
    const { asked, wire } = exchange;
    if (!asked.stream) return { ...good(exchange), body: repeated(block, Infinity, '{"choices":[{"message":{"content":"'), framing: 'chunked' };
    const said = good(exchange, { text: 'more ' }).body as string[];
    const speaks = said.find((frame) => frame.includes('more '))!;
    return stream(repeated(speaks, Infinity, wire.last ? said[0]! : ''));
  },
});

/** One `data:` line of this many bytes without its end. */
export const longLine = (bytes = 100e6): Behaviour => ({
  name: 'longLine',
  answer: () => stream(repeated(block, Math.ceil(bytes / block.length), 'data: {"x":"')),
});

/** This many small events, a thousand a packet, and a good end. */
export const manyEvents = (count = 1e6): Behaviour =>
  altered('manyEvents', ok({ text: 'x ' }), (answer) => {
    const frames = [...(answer.body as Iterable<string>)];
    if (frames.length === 1) return answer;
    const at = frames.findIndex((frame) => frame.includes('x '));
    const thousand = frames[at]!.repeat(1000);
    return { ...answer, body: joined(frames.slice(0, at), repeated(thousand, count / 1000), frames.slice(at + 1)), framing: 'chunked' };
  });

/** This many choices, whatever was asked. */
export const manyChoices = (count = 100_000): Behaviour => ({
  name: 'manyChoices',
  answer: (exchange: Exchange) => good({ ...exchange, asked: { ...exchange.asked, candidates: count } }, { text: 'x' }),
});

/** A good answer in front of JSON of this many levels; in a stream it is an event of its own, before the end. */
export const deepJson = (depth = 10_000): Behaviour => withMember('deepJson', () => `${'['.repeat(depth)}${']'.repeat(depth)}`);

/** The same in front of this JSON. */
export const withMember = (name: string, json: () => string): Behaviour =>
  altered(name, ok(), (answer, { asked, wire }) => {
    const member = `"more":${json()}`;
    const pieces = [...(answer.body as Iterable<string>)];
    if (!asked.stream)
      return whole(
        200,
        pieces.join('').replace(/\}$/u, () => `,${member}}`),
        answer.headers,
      );
    const end = wire.last ? -1 : pieces.length;
    return { ...answer, body: [...pieces.slice(0, end), `data: {${member}}\n\n`, ...pieces.slice(end)] } satisfies HttpAnswer;
  });

function* repeated(piece: string, count: number, before = ''): Generator<string> {
  if (before) yield before;
  for (let sent = 0; sent < count; sent++) yield piece;
}

function* joined(...parts: Iterable<string>[]): Generator<string> {
  for (const part of parts) yield* part;
}
