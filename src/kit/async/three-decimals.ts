/** Milliseconds to the microsecond: clocks give more digits than anybody can use. */
export const threeDecimals = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1000;
