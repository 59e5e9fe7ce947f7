import { describe, expect, test } from 'vitest';
import { testClock } from '../../test/support/fakes/clock.ts';
import { EventStream } from './event-stream.ts';
import type { Exchange } from './exchange.ts';

/** A stream into a list of what went out, over time that a test moves. */
function opened() {
  const clock = testClock();
  const out: string[] = [];
  const exchange = {
    opened: false,
    open(_status: number, headers: readonly string[]) {
      this.opened = true;
      out.push(`head ${headers.includes('x-early') ? 'early' : 'in time'}`);
    },
    write(text: string) {
      out.push(text);
      return true;
    },
    end: (last: string) => void out.push(last, 'end'),
    drained: () => Promise.resolve(),
  };
  const stream = new EventStream(exchange as unknown as Exchange, {
    clock,
    holdSeconds: 10,
    keepAlive: ': alive\n\n',
    contentType: 'text/event-stream',
    headers: (early) => (early ? ['x-early', '1'] : []),
  });
  return { clock, out, stream };
}

describe('an event stream', () => {
  test('says nothing before the first event, for ten seconds', () => {
    const { clock, out, stream } = opened();
    clock.advance(9999);
    expect(out).toEqual([]);
    stream.write('first');
    expect(out).toEqual(['head in time', 'first']);
  });

  test('after ten seconds of silence opens with a keep-alive, then one every fifteen seconds, until the first event', () => {
    const { clock, out, stream } = opened();
    clock.advance(10_000);
    expect(out).toEqual(['head early', ': alive\n\n']);
    clock.advance(30_000);
    expect(out).toHaveLength(4);
    stream.write('first');
    expect(out.at(-1)).toBe('first');
  });

  test('is kept alive between events too, and only when fifteen seconds went by without one', () => {
    const { clock, out, stream } = opened();
    stream.write('one');
    clock.advance(10_000);
    stream.write('two');
    clock.advance(14_999);
    expect(out).toEqual(['head in time', 'one', 'two']);
    clock.advance(1);
    expect(out.at(-1)).toBe(': alive\n\n');
  });

  test('says nothing after its end', () => {
    const { clock, out, stream } = opened();
    stream.write('one');
    stream.end('last');
    clock.advance(60_000);
    expect(out).toEqual(['head in time', 'one', 'last', 'end']);
  });
});
