/** Applies `make` to a value that is usually there at once. `await` would yield to the microtask queue even then. */
export const whenKnown = <Value, Made>(value: Value | Promise<Value>, make: (value: Value) => Made): Made | Promise<Awaited<Made>> =>
  value instanceof Promise ? (value.then(make) as Promise<Awaited<Made>>) : make(value);
