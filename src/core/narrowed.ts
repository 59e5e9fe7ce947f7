import type { Caller } from './context.ts';

/**
 * Whether the credential is restricted by scopes, models, tools or an expiry. Such a credential cannot grant rights that it lacks itself: it creates no keys, sets no
 * passwords and makes no user an administrator.
 */
export function isNarrowed({ scopes, models, mcpTools, expires }: Pick<Caller, 'scopes' | 'models' | 'mcpTools' | 'expires'>): boolean {
  return scopes !== undefined || models !== undefined || mcpTools !== undefined || expires === true;
}
