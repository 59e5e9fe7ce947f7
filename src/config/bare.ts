/** An object in which nothing is found but its own names: it has no prototype. */
export function bare<Value>(members: Iterable<readonly [string, Value]>): Record<string, Value> {
  const value = Object.create(null) as Record<string, Value>;
  for (const [name, inner] of members) value[name] = inner;
  return value;
}

/** The same value with every object in it bare: what has come from another process as a plain copy has prototypes again. */
export function bareThroughout<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(bareThroughout) as Value;
  return bare(Object.entries(value).map(([name, inner]) => [name, bareThroughout(inner)] as const)) as Value;
}
