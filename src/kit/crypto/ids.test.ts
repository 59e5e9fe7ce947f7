import { expect, test, vi } from 'vitest';
import { requestId } from './ids.ts';

test('request ids of later milliseconds sort behind earlier ones, and none is like another', () => {
  vi.useFakeTimers();
  try {
    const ids: string[] = [];
    for (const at of ['2026-11-22T00:00:00Z', '2026-11-22T00:00:00.001Z', '2026-11-22T00:01:02.037Z', '2027-01-01', '2081-01-01']) {
      vi.setSystemTime(new Date(at));
      ids.push([requestId(), requestId(), requestId()].toSorted()[0]!);
    }
    expect(ids).toEqual(ids.toSorted());
    for (const id of ids) expect(id).toMatch(/^req_[0-9A-Za-z]{22}$/);
  } finally {
    vi.useRealTimers();
  }
  expect(new Set(Array.from({ length: 10_000 }, requestId)).size).toBe(10_000);
});
