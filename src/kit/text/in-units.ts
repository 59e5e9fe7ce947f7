/** A number with its unit, which is given in the plural: `1 request`, `2 requests`. */
export const inUnits = (amount: number, units: string): string => `${amount} ${amount === 1 ? units.replace(/s$/, '') : units}`;
