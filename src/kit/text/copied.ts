/**
 * A flat string of its own; half a surrogate pair becomes U+FFFD. One that was cut out of another (a sliced string of V8) keeps all of that in memory, and one
 * that was cut out or put together (a cons string) makes `JSON.stringify` leave its fast path: an object of 2 KB then takes 4 µs in place of 2.
 */
export const copied = (text: string): string => Buffer.from(text).toString('utf8');
