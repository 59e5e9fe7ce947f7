import type { Caller } from './context.ts';

type Narrowing = Pick<Caller, 'scopes' | 'models' | 'mcpTools'>;

/**
 * Whether the credential is restricted by scopes, models, tools, an expiry or limits of its own. Such a credential cannot grant rights that it lacks itself: it creates no keys, sets no
 * passwords and makes no user an administrator.
 */
export function isNarrowed({ scopes, models, mcpTools, expiresAt, keyLimits }: Narrowing & Pick<Caller, 'expiresAt' | 'keyLimits'>): boolean {
  return (scopes ?? models ?? mcpTools ?? keyLimits ?? expiresAt) !== undefined;
}

/** Whether a credential may do all that another one may, of the same user. */
export function covers(one: Narrowing, other: Narrowing): boolean {
  const isWithin = (wide: readonly string[] | undefined, narrow: readonly string[] | undefined) =>
    !wide || narrow?.every((name) => wide.includes(name)) === true;
  return isWithin(one.scopes, other.scopes) && isWithin(one.models, other.models) && isWithin(one.mcpTools, other.mcpTools);
}
