import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

const domain = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i;

export function* plans({ plans, newUsers, providers }: Settings): Iterable<Trouble> {
  const lists = new Set(Object.values(providers).flatMap(({ residency }) => Object.keys(residency)));
  for (const [name, { residency }] of Object.entries(plans)) {
    const path = ['plans', name];
    if (!/^[a-z0-9][a-z0-9._-]{0,63}$/i.test(name))
      yield { path, name: true, silent: true, text: 'must have a name of at most 64 letters, digits, ".", "_" and "-".' };
    if (residency !== undefined && !lists.has(residency)) yield { path: [...path, 'residency'], text: 'must name a residency list of a provider.' };
  }
  if (newUsers.plan !== 'unlimited' && !plans[newUsers.plan]) yield { path: ['newUsers', 'plan'], text: 'must name a plan, or unlimited.' };
  for (const [at, one] of newUsers.domains.entries())
    if (!domain.test(one)) yield { path: ['newUsers', 'domains', at], text: 'must be a domain such as example.org.' };
}
