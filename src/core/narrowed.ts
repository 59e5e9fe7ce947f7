import type { Caller } from './context.ts';

/**
 * Is the credential a narrowed one, by scopes, models or an expiry? Such a credential gives nobody what it does not have itself: it makes no keys, sets no
 * passwords and makes nobody an administrator.
 */
export function isNarrowed({ scopes, models, expires }: Pick<Caller, 'scopes' | 'models' | 'expires'>): boolean {
  return scopes !== undefined || models !== undefined || expires === true;
}
