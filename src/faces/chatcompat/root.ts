export const root = '/server/chatcompat/v1';

/** The base address that everybody types first. */
export const short = '/v1';
