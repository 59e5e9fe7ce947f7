import { Fault } from './fault.ts';

/** The existing plans, for callers that choose one by name. */
export interface PlanNames {
  readonly hasPlan: (name: string) => Promise<boolean>;
  /** The names of all plans. */
  readonly unknownPlan: (name: string) => Fault;
}

const mostNamed = 20;

export function planNamesOf(plans: { has(name: string): Promise<boolean>; list(): readonly { readonly name: string }[] }): PlanNames {
  return {
    hasPlan: plans.has,
    unknownPlan(name) {
      const names = plans.list().map((plan) => plan.name);
      const there = names.slice(0, mostNamed).join(', ') + (names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '');
      return new Fault('invalid', `plan must name a plan: there is none called "${name}". There are: ${there}.`, { field: 'plan' });
    },
  };
}
