import type { Patterns, Sought } from '#kit/patterns/index';
import type { Upstreams } from '#kit/upstream/pool';
import type { Guards } from '../rules/guarded.ts';
import { type Check, type CheckSettings, type Evaluate, holdsFor, type Verdict } from './check.ts';
import { http } from './http.ts';
import { moderation, type ModerationDeps } from './moderation.ts';
import { entityOf, placeholder } from '#kit/patterns/entities';

export interface GuardsDeps extends ModerationDeps {
  readonly finding: Patterns;
  readonly upstreams: Upstreams;
}

/** The configured checks, prepared once. */
export function openGuards(settings: readonly CheckSettings[], deps: GuardsDeps): Guards {
  const all = settings.map((one) => ({
    // A check that names a model by an alias applies to all its names.
    settings: { ...one, models: one.models.map((name) => deps.find(name)?.name ?? name) },
    check: { ...one, evaluate: lookOf(one, deps) } satisfies Check,
  }));
  return {
    of(call, caller) {
      if (all.length === 0) return undefined;
      const holding = all.filter((one) => holdsFor(one.settings, call, caller));
      if (holding.length === 0) return undefined;
      const at = (when: CheckSettings['when'][number]) => holding.flatMap((one) => (one.settings.when.includes(when) ? [one.check] : []));
      return { before: at('before'), after: at('after') };
    },
  };
}

function lookOf(settings: CheckSettings, { finding, upstreams, ...parts }: GuardsDeps): Evaluate {
  switch (settings.kind) {
    case 'regex':
    case 'pii':
      return local(settings, finding);
    case 'moderation':
      return moderation(settings, parts);
    case 'http':
      return http(settings, upstreams);
    default:
      return settings.kind satisfies never;
  }
}

/** Searches for a pattern of the operator, or for personal data, on this machine. */
function local({ name, kind, pattern = '', entities = [], action }: CheckSettings, finding: Patterns): Evaluate {
  const sought: Sought =
    kind === 'regex' ? { type: 'pattern', pattern, mask: placeholder(name) } : { type: 'entities', entities: entities.flatMap((one) => entityOf(one) ?? []) };
  return async (texts, { runs, context }) => {
    const yesOrNo = action !== 'mask';
    const { caller, signal } = context;
    const found = await finding.look({ sought, texts: yesOrNo ? [...texts, ...runs] : texts, yesOrNo }, { owner: String(caller.userId), signal });
    return found.map((left): Verdict => (left === undefined ? undefined : action === 'mask' ? { action, text: left } : { action }));
  };
}
