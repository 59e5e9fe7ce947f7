export const byteOrderMark = [0xef, 0xbb, 0xbf] as const;

/** Bytes of the mark at this place: 3, or 0 without one. */
export const byteOrderMarkLength = (bytes: Uint8Array, at: number = 0): number => (byteOrderMark.every((byte, index) => bytes[at + index] === byte) ? 3 : 0);
