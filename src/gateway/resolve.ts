import { isConversation, type Call } from '#model/call';
import type { Errand } from '#model/errand';
import { Fault } from '#model/fault';
import type { Context, Generate } from '#model/generate';
import type { Model } from '#model/target';
import type { RoutedCall } from './calls.ts';

/** The models that can be asked for, by name. */
export interface Models {
  find(name: string): Model | undefined;
  list(): readonly Model[];
  /** The engine for embedding names that nobody knows. */
  readonly embedding: Model;
}

/**
 * Finds what stands behind the model name of a call.
 *
 * @throws Fault `not-found`, reason `model`; `unsupported` for an errand that no target of the model can do
 */
export function resolved(models: () => Models, inner: Generate<RoutedCall>): Generate<Call> {
  return (call, context) => {
    if (!isConversation(call)) return errand(call, context, models(), inner);
    const route = models().find(call.model);
    if (route?.kind !== 'chat') throw unknownModel(call.model);
    return inner({ ...call, route }, context);
  };
}

/** An embedding name that nobody knows is answered by the default engine, which is said. */
async function* errand(call: Errand, context: Context, models: Models, inner: Generate<RoutedCall>): ReturnType<Generate> {
  const found = models.find(call.model);
  const fallsBack = call.kind === 'embedding' && found?.kind !== 'embedding';
  const model = fallsBack ? models.embedding : found;
  const targets = model?.targets.filter(({ target }) => call.able(target)) ?? [];
  if (!model || targets.length === 0) throw new Fault('unsupported', call.unable, { field: 'model' });
  const said = fallsBack ? [`model: ${shown(call.model)} is no embedding model here, ${model.name} answers`] : [];
  for await (const event of inner({ ...call, route: { ...model, targets } }, context))
    yield event.type === 'started' && said.length > 0 ? { ...event, ignored: [...said, ...event.ignored] } : event;
}

/** For a name behind which nothing stands. */
export function unknownModel(name: string): Fault {
  return new Fault('not-found', `The model \`${shown(name)}\` does not exist or you do not have access to it.`, { field: 'model', reason: 'model' });
}

/** A long name is not repeated. */
const shown = (name: string) => (name.length > 100 ? `${name.slice(0, 100)}…` : name);
