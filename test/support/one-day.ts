/*
 * For each test file: limits are of calendar days and months, UTC, and a test that begins in the last moments of a day would spend of two of them. It waits for
 * the next day, which happens to at most one run a day.
 */
import { beforeAll, beforeEach } from 'vitest';

const dayMilliseconds = 86_400_000;
/** More than a test takes, and less than a hook may. */
const lastMoments = 100_000;

/** As they are now: a test may replace them. */
const { now } = Date;
const later = setTimeout;

const nextDay = async (): Promise<void> => {
  const left = dayMilliseconds - (now() % dayMilliseconds);
  if (left <= lastMoments) await new Promise((resolve) => later(resolve, left + 20)); // a timer may be early by a millisecond
};

beforeAll(nextDay);
beforeEach(nextDay);
