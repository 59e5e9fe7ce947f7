/** What one sees of a mailbox in ASCII, as browsers check it: an address that only looks like another one is none. https://html.spec.whatwg.org/#e-mail-state-(type=email) */
export const emailAddress =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

export const longestEmailAddress = 254;
