import type { Caller } from './context.ts';

/** Whether a credential may do what one of these scopes covers. */
export const hasScope = ({ scopes }: Pick<Caller, 'scopes'>, any: readonly string[]): boolean => !scopes || any.some((scope) => scopes.includes(scope));
