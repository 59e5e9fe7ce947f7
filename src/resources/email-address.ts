import { Type } from 'typebox';

/** What one sees of a mailbox in ASCII, as browsers check it: an address that only looks like another one is none. https://html.spec.whatwg.org/#e-mail-state-(type=email) */
const address = "[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*";
const shared = { maxLength: 254, expected: 'must be an e-mail address such as ada@example.org, in ASCII' };

export const emailAddress = Type.String({ ...shared, pattern: `^${address}$` });

/** The same with white space around it, as it comes out of the clipboard. */
export const pastedAddress = Type.String({ ...shared, pattern: `^\\s*${address}\\s*$` });
