const day = 86_400_000;

/** Whether this is the IANA name of a time zone: no offset, which databases and runtimes read with opposite signs. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Whether its hours begin with those of UTC, at any time between the two (milliseconds since 1970) of which there may be usage. */
export function hasWholeHours(name: string, from: number, to: number): boolean {
  if (name === 'UTC') return true;
  const format = new Intl.DateTimeFormat('en', { timeZone: name, timeZoneName: 'longOffset' });
  const isWhole = (at: number) => !/:(?!00)\d\d/.test(format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? '');
  const [begin, end] = [Math.max(from, Date.UTC(2020)), Math.min(to, Date.UTC(2040))];
  for (let at = begin; at < end; at += 30 * day) if (!isWhole(at)) return false;
  return isWhole(end);
}
