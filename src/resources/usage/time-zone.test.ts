import { expect, test } from 'vitest';
import { monthIn, timeZoneOf } from './time-zone.ts';

test.each(['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5'])('%s is passed to the database as it is', (name) => {
  expect(timeZoneOf(name)).toBe(name);
});

test.each([
  ['CET', 2],
  ['EET', 3],
  ['WET', 1],
  ['MET', 2],
  ['EST5EDT', -4],
  ['Japan', 9],
  ['utc', 0],
])('%s is the time zone of a place, %d hours from UTC in July', (name, hours) => {
  const zone = timeZoneOf(name)!;
  expect(zone === 'UTC' || zone.includes('/')).toBe(true);
  expect(new Intl.DateTimeFormat('en', { timeZone: zone, hour: 'numeric', hourCycle: 'h23' }).format(Date.UTC(2026, 6, 1, 12))).toBe(
    String(12 + hours).padStart(2, '0'),
  );
});

test.each(['IST', 'ist', 'BST', 'JST', 'PST', '+05:30', '', 'Mars/Olympus'])('%j is none', (name) => {
  expect(timeZoneOf(name)).toBeUndefined();
});

test.each([
  ['UTC', '2026-12-01T02:00Z', '2026-12-01T00:00Z', '2027-01-01T00:00Z'],
  ['America/New_York', '2026-12-01T02:00Z', '2026-11-01T04:00Z', '2026-12-01T05:00Z'],
  ['America/New_York', '2026-12-01T05:00Z', '2026-12-01T05:00Z', '2027-01-01T05:00Z'],
  ['Europe/Berlin', '2026-11-30T23:30Z', '2026-11-30T23:00Z', '2026-12-31T23:00Z'],
  ['Europe/Berlin', '2026-10-05T00:00Z', '2026-09-30T22:00Z', '2026-10-31T23:00Z'],
  ['Asia/Kolkata', '2026-12-31T18:30Z', '2026-12-31T18:30Z', '2027-01-31T18:30Z'],
  ['America/Asuncion', '2017-10-05T00:00Z', '2017-10-01T04:00Z', '2017-11-01T03:00Z'], // the clocks were put forward on October 1 at midnight
  ['America/Havana', '2012-04-05T00:00Z', '2012-04-01T05:00Z', '2012-05-01T04:00Z'],
])('the month in %s at %s is from %s to %s', (name, at, from, to) => {
  expect(monthIn(name, Date.parse(at))).toEqual({ from: Date.parse(from), to: Date.parse(to) });
});
