import { expect, test } from 'vitest';
import type { PlainAsked } from '#http/noun-route';
import { allUsage, usageRoutes, type UsageReading } from './routes.ts';

test('the current month is that of the time zone in which days are cut', async () => {
  const asked: object[] = [];
  const usage = async (wanted: object) => {
    asked.push(wanted);
    return [];
  };
  const reading = { usage } as unknown as UsageReading;
  const timeNow = async () => Date.parse('2026-12-01T02:00Z');
  const route = usageRoutes(reading, timeNow, allUsage).find(({ path }) => path === '/server/admin/usage')!;
  for (const words of ['groupBy=day', 'groupBy=day&tz=America/New_York', 'tz=America/New_York&from=2026-11-15', 'tz=Asia/Kolkata&to=2026-12-02'])
    await route.answer({ caller: {}, params: {}, query: new URLSearchParams(words) } as unknown as PlainAsked);
  const span = (from: string, to: string) => expect.objectContaining({ from: Date.parse(from), to: Date.parse(to) }) as object;
  expect(asked).toEqual([
    span('2026-12-01', '2027-01-01'),
    span('2026-11-01T04:00Z', '2026-12-01T05:00Z'),
    span('2026-11-15', '2026-12-01T05:00Z'),
    span('2026-11-30T18:30Z', '2026-12-02'),
  ]);
});
