import { Type } from 'typebox';

/* Fields for what people write. */

/** A text of several lines: the database has no place for the character 0. */
export const multiline = { pattern: '^[^\\u0000]*$', expected: 'must be a text without the character U+0000' } as const;

/** No line break and nothing invisible, but for the joiners of emoji and of Persian and Indian scripts: between Latin letters they would make names look alike. */
const fit = '(?:[^\\p{C}\\u2028\\u2029]|(?<=[^\\u0000-\\u024F])[\\u200C\\u200D](?=[^\\u0000-\\u024F]))*';

/** The same where line breaks and tabs, and halves of characters, are taken out later. */
export const cutText = '^[^\\u0000-\\u0008\\u000B\\u000C\\u000E-\\u001F\\u007F-\\u009F\\u202A-\\u202E\\u2066-\\u2069\\uFFFE\\uFFFF]*$';

/** One line of text, which may be blank. */
export const anyLine = `^${fit}$`;

/** A name, a title: what people know a thing by. Something is to be seen of it. @param maxLength characters @param what what it must be: `a title` */
export const lineField = (maxLength: number, what = 'a name') =>
  Type.String({ minLength: 1, maxLength, pattern: `^(?=.*[^\\s\\p{C}])${fit}$`, expected: `must be ${what}, without control characters in it, and not blank` });

/** What one sees of a mailbox in ASCII, as browsers check it: an address that only looks like another one is none. https://html.spec.whatwg.org/#e-mail-state-(type=email) */
const address = "[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*";
const addressField = { maxLength: 254, expected: 'must be an e-mail address such as ada@example.org, in ASCII' };

export const emailAddress = Type.String({ ...addressField, pattern: `^${address}$` });

/** The same with white space around it, as it comes out of the clipboard. */
export const pastedAddress = Type.String({ ...addressField, pattern: `^\\s*${address}\\s*$` });

/** A password that somebody chooses. */
export const newPassword = Type.String({ minLength: 8, maxLength: 256, description: 'The new password: it is kept as a salted hash, and never shown.' });
