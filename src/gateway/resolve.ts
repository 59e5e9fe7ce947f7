import { Fault } from '#model/fault';
import type { Generate } from '#model/generate';
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
    const route = models().find(call.model);
    if (route?.kind !== 'chat') throw unknownModel(call.model);
    return inner({ ...call, route }, context);
  };
}

/** For a name behind which nothing stands. A long one is not repeated. */
export function unknownModel(name: string): Fault {
  const shown = name.length > 100 ? `${name.slice(0, 100)}…` : name;
  return new Fault('not-found', `The model \`${shown}\` does not exist or you do not have access to it.`, { field: 'model', reason: 'model' });
}
