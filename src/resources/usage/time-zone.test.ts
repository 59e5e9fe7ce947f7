import { expect, test } from 'vitest';
import { timeZoneOf } from './time-zone.ts';

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
