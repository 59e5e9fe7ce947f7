import { Type } from 'typebox';

/** One line of text, in which something is to be seen. */
const pattern = '^(?=.*\\S)[^\\p{C}]*$';

/** A name, a title: what people know a thing by. @param maxLength characters @param what what it must be: `a title` */
export const lineField = (maxLength: number, what = 'a name') =>
  Type.String({ minLength: 1, maxLength, pattern, expected: `must be ${what}, without control characters in it, and not blank` });
