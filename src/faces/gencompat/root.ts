export const root = '/server/gencompat';

/** The versions in the address that clients use: one interface. */
export const versions = ['v1beta', 'v1'] as const;
