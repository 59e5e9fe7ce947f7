/** What comes of a value that is nearly always there at once. `await` would let go of the thread for it all the same. */
export const whenKnown = <Value, Made>(value: Value | Promise<Value>, make: (value: Value) => Made): Made | Promise<Awaited<Made>> =>
  value instanceof Promise ? (value.then(make) as Promise<Awaited<Made>>) : make(value);
