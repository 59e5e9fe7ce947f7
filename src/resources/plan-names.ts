import type { Access } from '#store/open';
import { invalid } from '#core/fault';

/** The existing plans, for callers that choose one by name. */
export interface PlanNames {
  /** Makes sure that there is a plan of this name, and that nobody deletes it before the transaction ends. @throws Fault `invalid` naming those that there are */
  readonly requirePlan: (inside: Access, name: string) => Promise<void>;
}

interface NamedPlans {
  hold(inside: Access, name: string): Promise<boolean>;
  list(): readonly { readonly name: string }[];
}

const mostNamed = 20;

export function planNamesOf(plans: NamedPlans): PlanNames {
  return {
    async requirePlan(inside, name) {
      if (await plans.hold(inside, name)) return;
      const names = plans.list().map((plan) => plan.name);
      const there = names.slice(0, mostNamed).join(', ') + (names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '');
      throw invalid('plan', `must name a plan: there is none called "${name}". There are: ${there}`);
    },
  };
}
