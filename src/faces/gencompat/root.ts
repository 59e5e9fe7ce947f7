export const root = '/server/gencompat';

/** The versions in the address that clients use, `v1` too, are one interface. */
export const base = `${root}/v1beta`;

/** What SDKs ask that are given the server's address alone. Of `/v1`, which is the chat interface's, only what names them in `x-goog-api-client` is meant. */
export const short = '/v1beta';
export const shared = '/v1';
export const namedBy = 'x-goog-api-client';
