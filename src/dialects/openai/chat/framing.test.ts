import { describe, expect, test } from 'vitest';
import { splitter } from '#kit/upstream/sse';
import { chatRecordings } from '../../../../test/support/recordings.ts';

function frames(pieces: readonly Uint8Array[]): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 20 });
  const all: string[] = [];
  for (const piece of pieces) for (const frame of push(piece)) all.push(frame);
  for (const frame of end()) all.push(frame);
  return all;
}

/** A cut affects only its own frame and the next: long recordings are tested in runs of whole frames, so that the work does not grow quadratically. */
function stretches(bytes: Buffer): readonly Buffer[] {
  const end = bytes.indexOf('\n\n', 8000);
  return end < 0 ? [bytes] : [bytes.subarray(0, end + 2), ...stretches(bytes.subarray(end + 2))];
}

const same = (one: readonly string[], other: readonly string[]) => one.length === other.length && one.every((frame, at) => frame === other[at]);

describe('the frames of a recording are the same', () => {
  test.each(chatRecordings.streams)('$name, cut at every byte', ({ bytes }) => {
    const wrong: string[] = [];
    for (const stretch of stretches(bytes)) {
      const whole = frames([stretch]);
      for (let cut = 1; cut < stretch.length; cut++) {
        if (!same(frames([stretch.subarray(0, cut), stretch.subarray(cut)]), whole)) wrong.push(stretch.toString('utf8', cut - 10, cut + 10));
      }
    }
    expect(wrong).toEqual([]);
  });

  test.each(chatRecordings.streams)('$name, byte by byte', ({ bytes }) => {
    expect(frames(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toEqual(frames([bytes]));
  });
});
