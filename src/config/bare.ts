/** An object without a prototype: a lookup finds own names only. */
export function bare<Value>(members: Iterable<readonly [string, Value]>): Record<string, Value> {
  const value = Object.create(null) as Record<string, Value>;
  for (const [name, inner] of members) value[name] = inner;
  return value;
}

/** A copy whose objects, at every depth, have no prototype. A value that another process sent has prototypes again. */
export function bareThroughout<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(bareThroughout) as Value;
  return bare(Object.entries(value).map(([name, inner]) => [name, bareThroughout(inner)] as const)) as Value;
}
