const day = 86_400_000;

/** Abbreviations that are not IANA names: the runtime and databases read them as different places. */
const abbreviations: ReadonlySet<string> = new Set(
  'ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST'.split(' '),
);

/**
 * The time zone of an IANA name, as databases read it: they take `CET` and the like for an offset that knows no summer time, so such a name becomes that of a
 * place. Undefined for what is no such name, which includes offsets, since databases and runtimes read them with opposite signs.
 */
export function timeZoneOf(name: string): string | undefined {
  if (!/^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/.test(name) || abbreviations.has(name.toUpperCase())) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
    return name.includes('/') ? name : timeZone;
  } catch {
    return undefined;
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

/** The month in which something is, there: when it begins and when the next one does, in milliseconds since 1970. */
export function monthIn(name: string, at: number): { readonly from: number; readonly to: number } {
  const first = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(name).with({ day: 1 }).startOfDay();
  return { from: first.epochMilliseconds, to: first.add({ months: 1 }).startOfDay().epochMilliseconds };
}
