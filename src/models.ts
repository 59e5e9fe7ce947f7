import type { Settings } from '#config';
import type { Models } from './gateway/resolve.ts';
import type { Model, Target, TargetGroup } from '#model/target';
import { tierOf } from '#model/tier';

export interface ModelsParts {
  readonly settings: Settings;
  readonly builtIn: Target;
  /** A model at a provider of the settings; `undefined` where this version does not speak its dialect, or it is nowhere to be had within the residency. */
  readonly targets: (
    provider: string,
    model: string,
    settings: { readonly mostTokens: number | undefined; readonly residency: string | undefined },
  ) => TargetGroup | undefined;
  /** Unix seconds, shown as the age of every model. */
  readonly created: number;
}

/** The models of the settings by name and alias, the built-in one, and `"*"` for every other name. */
export function modelsOf({ settings, builtIn, targets: targetsAt, created }: ModelsParts): Models {
  const builtInModel: Model = {
    name: 'built-in',
    kind: 'chat',
    targets: [{ target: builtIn }],
    limits: {},
    rate: even,
    price: free,
    created,
    ownedBy: 'dragoman',
  };
  const named = new Map<string, Model>([['built-in', builtInModel]]);
  const aliases = new Map<string, Model>();
  const { '*': any, ...models } = settings.models;
  for (const [name, model] of Object.entries(models)) {
    const targets = targetsOf(model, name);
    if (targets.length === 0) continue;
    const made = modelOf(name, model, targets);
    named.set(name, made);
    for (const alias of model.aliases ?? []) aliases.set(alias, made);
  }
  const list = [...named.values()];

  return {
    list: () => list,
    find(name) {
      const found = named.get(name) ?? aliases.get(name);
      if (found || !any) return found;
      const targets = targetsOf(any, name);
      return targets.length === 0 ? undefined : modelOf(name, any, targets);
    },
  };

  function targetsOf({ targets, limits, residency }: Settings['models'][string], name: string): Model['targets'] {
    return targets.flatMap(({ provider, model: upstream = name, weight }) => {
      const found = provider === 'built-in' ? { target: builtIn } : targetsAt(provider, upstream, { mostTokens: limits.output, residency });
      return found ? [{ ...found, ...(weight === undefined ? {} : { weight }) }] : [];
    });
  }

  function modelOf(name: string, model: Settings['models'][string], targets: Model['targets']): Model {
    const { kind, limits, rate, price, tier = tierOf(name), residency } = model;
    return {
      name,
      kind,
      targets,
      limits,
      rate,
      ...(price ? { price } : {}),
      ...(tier ? { tier } : {}),
      ...(residency ? { residency } : {}),
      created,
      ownedBy: targets[0]!.target.provider,
    };
  }
}

const even = { input: 1, output: 1 };
const free = { input: 0, output: 0 };
