import type { Usage } from './event.ts';

/** The sum of two usages, field by field; `extra` is that of the second. If one is estimated, so is the sum. */
export function sumOf(a: Usage, b: Usage): Usage {
  return {
    ...b,
    input: a.input + b.input,
    output: a.output + b.output,
    ...added('cached', a, b),
    ...added('cacheWrite', a, b),
    ...added('cacheWrite1h', a, b),
    ...added('thought', a, b),
    ...added('audioInput', a, b),
    ...added('audioOutput', a, b),
    ...added('searches', a, b),
    source: a.source === 'provider' ? b.source : a.source,
  };
}

/** The same where one of them may be unknown. */
export const sumOfKnown = (a: Usage | undefined, b: Usage | undefined): Usage | undefined => (a && b ? sumOf(a, b) : (b ?? a));

type Summed = 'cached' | 'cacheWrite' | 'cacheWrite1h' | 'thought' | 'audioInput' | 'audioOutput' | 'searches';

const added = (name: Summed, a: Usage, b: Usage): Partial<Usage> =>
  a[name] === undefined && b[name] === undefined ? {} : { [name]: (a[name] ?? 0) + (b[name] ?? 0) };
