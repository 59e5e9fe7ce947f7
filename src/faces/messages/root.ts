import type { Headers } from '#http/headers';

export const root = '/server/messages/v1';

/** The SDKs of this interface look for the id of a request under this name. */
export const idHeaders = (requestId: string): Headers => ['request-id', requestId];
