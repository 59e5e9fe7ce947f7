/** What the values of a message count as: a key that no other object has takes so long to parse as four of them. */
export const weights = { string: 1, list: 1, object: 1, key: 4 };
