import type { Clock } from '#kit/async/clock';
import { invalid } from '#core/fault';

/** Now, in ISO 8601 to the second. */
export const timestamp = (clock: Clock): string => new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');

/** The sentence by which a model knows the date. @throws Fault `invalid` for a time zone that there is not */
export function dateIn(timeZone: string | undefined, clock: Clock): string {
  const zone = timeZone ?? 'UTC';
  try {
    const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
    return `Today is ${format.format(clock.now())} (${zone}).`;
  } catch {
    throw invalid('timezone', 'must be the IANA name of a time zone, such as Europe/Paris');
  }
}
