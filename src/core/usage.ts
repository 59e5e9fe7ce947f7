import type { Usage } from './event.ts';

/** The sum of two usages, each field by itself; `extra` is that of the second. What one of them estimates, the sum does. */
export function sumOf(a: Usage, b: Usage): Usage {
  return {
    ...b,
    input: a.input + b.input,
    output: a.output + b.output,
    ...added('cached', a, b),
    ...added('cacheWrite', a, b),
    ...added('cacheWrite1h', a, b),
    ...added('thought', a, b),
    source: a.source === 'provider' ? b.source : a.source,
  };
}

const added = (name: 'cached' | 'cacheWrite' | 'cacheWrite1h' | 'thought', a: Usage, b: Usage): Partial<Usage> =>
  a[name] === undefined && b[name] === undefined ? {} : { [name]: (a[name] ?? 0) + (b[name] ?? 0) };
