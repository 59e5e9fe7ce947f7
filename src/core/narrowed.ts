import type { Caller } from './context.ts';

/**
 * Whether the credential is restricted by scopes, models or an expiry. Such a credential cannot grant rights that it lacks itself: it creates no keys, sets no
 * passwords and makes no user an administrator.
 */
export function isNarrowed({ scopes, models, expires }: Pick<Caller, 'scopes' | 'models' | 'expires'>): boolean {
  return scopes !== undefined || models !== undefined || expires === true;
}
