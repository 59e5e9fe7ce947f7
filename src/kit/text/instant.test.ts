import { expect, test } from 'vitest';
import { instantOf } from './instant.ts';

test.each([
  ['2026-11-01', Date.UTC(2026, 10, 1)],
  ['2026-11-01T12:00Z', Date.UTC(2026, 10, 1, 12)],
  ['2026-11-01T12:00:00.250Z', Date.UTC(2026, 10, 1, 12, 0, 0, 250)],
  ['2026-11-01T00:30:00+01:00', Date.UTC(2026, 9, 31, 23, 30)],
  ['2028-02-29', Date.UTC(2028, 1, 29)],
])('%s is an instant', (text, milliseconds) => {
  expect(instantOf(text)).toBe(milliseconds);
});

test.each([
  '',
  '2026',
  '2026-11',
  '2026-13-01',
  '2026-02-30',
  '2026-02-29',
  '2026-11-01T25:00Z',
  '2026-11-01T12:00',
  '1793491200',
  'Nov 1 2026',
  '2026-11-01 12:00Z',
  '+02026-11-01',
])('%j is none', (text) => {
  expect(instantOf(text)).toBeUndefined();
});
