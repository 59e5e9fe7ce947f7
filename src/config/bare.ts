/** An object in which nothing is found but its own names: it has no prototype. */
export function bare<Value>(members: Iterable<readonly [string, Value]>): Record<string, Value> {
  const value = Object.create(null) as Record<string, Value>;
  for (const [name, inner] of members) value[name] = inner;
  return value;
}
