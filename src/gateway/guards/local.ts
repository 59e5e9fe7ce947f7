import type { Patterns, Sought } from '#kit/patterns/index';
import { entityOf, placeholder } from '#kit/patterns/entities';
import type { CheckSettings, Evaluate, Verdict } from './check.ts';

/** Searches for a pattern of the operator, or for personal data, on this machine. */
export function local({ name, kind, pattern = '', entities = [], action }: CheckSettings, finding: Patterns): Evaluate {
  const sought: Sought =
    kind === 'regex' ? { type: 'pattern', pattern, mask: placeholder(name) } : { type: 'entities', entities: entities.flatMap((one) => entityOf(one) ?? []) };
  return async (texts, { runs, context }) => {
    const yesOrNo = action !== 'mask';
    const { caller, signal } = context;
    const found = await finding.look({ sought, texts: yesOrNo ? [...texts, ...runs] : texts, yesOrNo }, { owner: String(caller.userId), signal });
    return found.map((left): Verdict => (left === undefined ? undefined : action === 'mask' ? { action, text: left } : { action }));
  };
}
