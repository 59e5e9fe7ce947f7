import { Fault } from '#model/fault';
import type { Caller, Generate } from '#model/generate';
import type { Model } from '#model/target';
import type { RoutedCall } from './calls.ts';

/** The models that can be asked for, by name. */
export interface Models {
  find(name: string): Model | undefined;
  list(): readonly Model[];
}

/**
 * Finds what stands behind the model name of a call.
 *
 * @throws Fault `not-found`, reason `model`
 */
export function resolved(models: () => Models, inner: Generate<RoutedCall>): Generate {
  return (call, context) => {
    const route = modelsFor(models(), context.caller).find(call.model);
    if (route?.kind !== 'chat') throw unknownModel(call.model);
    return inner({ ...call, route }, context);
  };
}

/** The models as a caller sees them: to a key that is narrowed to some, no other exists. A model may be named by its alias there, and asked by it. */
export function modelsFor(models: Models, { models: names }: Caller): Models {
  if (names === undefined) return models;
  return {
    find(name) {
      const model = models.find(name);
      return model && (names.includes(name) || names.includes(model.name)) ? model : undefined;
    },
    list: () => [...new Map(names.flatMap((name) => models.find(name) ?? []).map((model) => [model.name, model])).values()],
  };
}

/** For a name behind which nothing stands. A long one is not repeated. */
export function unknownModel(name: string): Fault {
  const shown = name.length > 100 ? `${name.slice(0, 100)}…` : name;
  return new Fault('not-found', `The model \`${shown}\` does not exist or you do not have access to it.`, { field: 'model', reason: 'model' });
}
