import type { McpDefinition } from '#kit/mcp/definitions';

/** Which calls a user is asked for: none, the first of each definition of a tool that may change things, or every one. */
export type Approval = 'never' | 'first' | 'always';

const strictness: readonly Approval[] = ['never', 'first', 'always'];

/** Of several, the strictest holds. */
export function strictest(...all: readonly (Approval | null | undefined)[]): Approval {
  return strictness[Math.max(0, ...all.map((one) => (one ? strictness.indexOf(one) : 0)))]!;
}

/** @param approved the digest that the user has approved; undefined: none */
export function needsApproval(approval: Approval, { isReadOnly, digest }: McpDefinition, approved: string | undefined): boolean {
  return approval === 'always' || (approval === 'first' && !isReadOnly && approved !== digest);
}
