/* Mutants: the source is not changed. */

/** Puts another method in a class's place until the test is over. */
export function replaced<Kind extends object, Name extends keyof Kind>(of: Kind, name: Name, by: (original: Kind[Name]) => Kind[Name]): () => void {
  const before = Object.getOwnPropertyDescriptor(of, name)!;
  const original = of[name];
  Object.defineProperty(of, name, { value: by(original), configurable: true, writable: true });
  return () => Object.defineProperty(of, name, before);
}

/** A getter's value in place of another. */
export function reads<Kind extends object>(of: Kind, name: keyof Kind, by: (this: Kind) => unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(of, name)!;
  Object.defineProperty(of, name, { get: by, configurable: true });
  return () => Object.defineProperty(of, name, before);
}
