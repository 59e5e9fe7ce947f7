import type { Headers } from '#http/headers';

export const root = '/server/messages/v1';

/** What SDKs ask that are given the server's address alone. The models there are those of the chat interface, but for requests with the header `anthropic-version`. */
export const short = '/v1';
export const namedBy = 'anthropic-version';

/** The SDKs of this interface look for the id of a request under this name. */
export const idHeaders = (requestId: string): Headers => ['request-id', requestId];
