import type { Caller } from './context.ts';
import { Fault } from './fault.ts';

/** Whether a credential may do what one of these scopes covers. */
export const hasScope = ({ scopes }: Pick<Caller, 'scopes'>, any: readonly string[]): boolean => !scopes || any.some((scope) => scopes.includes(scope));

/** @throws Fault `forbidden`, which names the first of them */
export function requireScope(caller: Pick<Caller, 'scopes'>, ...any: readonly [string, ...string[]]): void {
  if (!hasScope(caller, any)) throw new Fault('forbidden', `This key lacks the scope ${any[0]}.`, { reason: 'scope' });
}
