import fc from 'fast-check';

/** A member deep in a value, and what it becomes. */
type Change = readonly [path: readonly string[], to: unknown];

/** Up to two changes of recorded JSON, each to something that may stand in an answer or not. @param paths such as `choices.0.message` */
export const drawnChanges = (paths: readonly string[]): fc.Arbitrary<readonly Change[]> =>
  fc.array(fc.tuple(fc.constantFrom(...paths.map((path) => path.split('.'))), fc.constantFrom(...odd)), { maxLength: 2 });

const odd: readonly unknown[] = [undefined, null, 0, 1, '', 'x', 'stop', 'length', 'error', 'priority', [], {}, { message: 'x', type: 'y' }];

/** A copy of the value with these changes, where there is something that can have them. */
export function changed(value: unknown, changes: readonly Change[]): unknown {
  const copy = structuredClone(value);
  for (const [path, to] of changes) change(copy, path, to);
  return copy;
}

function change(value: unknown, [name, ...rest]: readonly string[], to: unknown): void {
  if (value === null || typeof value !== 'object') return;
  if (rest.length === 0) Reflect.set(value, name!, structuredClone(to)); // the next change may be one of it
  else change(Reflect.get(value, name!), rest, to);
}
