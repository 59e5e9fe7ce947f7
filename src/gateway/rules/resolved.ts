import { isConversation, type Call } from '#core/routed-call';
import { choiceHeaders } from '#core/choice-headers';
import type { Task } from '#core/task';
import { Fault, nothingAllowed } from '#core/fault';
import { modelNamed, shownName, unknownModel, type KnownModels } from '#core/known-models';
import { gathered, inBothVerbs, wholeAnswer, type Generate } from '#core/generate';
import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import type { Events } from '#core/event';
import { narrowedTo, within, type Model } from '#core/target';
import type { ResolvedCall } from './alternatives.ts';
import { warned } from './warned.ts';

/** The available models, by name. */
export interface Models extends KnownModels {
  /** The default engine for unknown embedding models; absent if there is none, or if the caller may not use it. */
  readonly embedding: Model | undefined;
}

/**
 * Resolves the model name of a call, or the names that the caller chose in its place.
 * @param models as the caller sees them
 * @throws Fault `not-found`, reason `model`, also for another model that the provider is to ask; `unsupported` for a task that no target of the model supports,
 * and for one that needs a provider where there is none; `invalid` for an unknown model among the chosen ones
 */
export function resolved(models: (caller: Caller) => Models, inner: Generate<ResolvedCall>): Generate<Call> {
  const stream = (call: Call, context: Context): AsyncIterable<Events> => {
    const visible = models(context.caller);
    requireModels(call, visible);
    if (context.targets) return inner(asChosen(context.targets, call, visible), context);
    if (isConversation(call)) return inner(asNamed(call, visible), context);
    const { route, warnings } = taskRoute(call, visible, context.caller);
    const answer = inner({ ...call, route }, context);
    return warnings.length > 0 ? warned(answer, { before: warnings }) : answer;
  };
  return inBothVerbs(stream, (call, context) => {
    if (context.targets || !isConversation(call)) return gathered(stream(call, context));
    const visible = models(context.caller);
    requireModels(call, visible);
    return wholeAnswer(inner, asNamed(call, visible), context);
  });
}

/** @throws Fault `not-found` where the provider is to ask a model that a caller with few models may not use */
function requireModels(call: Call, models: Models): void {
  if (!isConversation(call) || !call.otherModels || !models.isNarrowed) return;
  for (const { model, field } of call.otherModels) {
    if (modelNamed(models, model)?.kind === 'chat') continue;
    const { code, message, details } = unknownModel(model, models);
    throw new Fault(code, message, { ...details, field });
  }
}

function asChosen(targets: readonly string[], call: Call, models: Models): ResolvedCall {
  const routes = chosen(targets, call, models);
  if (isConversation(call)) requireTokens(call, routes);
  return { ...call, route: routes[0]!, alternatives: { routes, models } };
}

function asNamed(call: GenerateCall, models: Models): ResolvedCall {
  const route = modelNamed(models, call.model);
  if (route?.kind !== 'chat') throw unknownModel(call.model, models);
  requireTokens(call, [route]);
  return route.larger === undefined ? { ...call, route } : { ...call, route, alternatives: { routes: [route], models } };
}

/** @throws Fault `invalid` where no token may be generated and no target has the client's own interface, in which that may fill a cache */
function requireTokens({ sampling, dialect }: GenerateCall, routes: readonly Model[]): void {
  if (sampling.maxTokens !== 0) return;
  if (!routes.some(({ targets }) => targets.some(({ target }) => target.supports?.dialect === dialect))) throw nothingAllowed();
}

/** The models that the caller chose, with the targets that support the call. */
function chosen(names: readonly string[], call: Call, models: Models): readonly Model[] {
  const refused = (text: string) => new Fault('invalid', `${choiceHeaders.targets} names ${text}.`, { field: choiceHeaders.targets });
  return names.map((name) => {
    const model = modelNamed(models, name);
    if (!model) throw refused(`\`${shownName(name)}\`, which does not exist or you do not have access to it`);
    if (isConversation(call) ? model.kind === 'chat' : call.kind !== 'embedding' || model.kind === 'embedding') {
      const targets = isConversation(call) ? model.targets : model.targets.filter(({ target }) => call.able(target));
      if (targets.length > 0) return narrowedTo(model, targets);
    }
    throw refused(`\`${shownName(name)}\`, which cannot do this`);
  });
}

/** The model for a task, with the targets that support it. An unknown embedding model is replaced by the default one, with a warning. */
function taskRoute(call: Task, models: Models, caller: Caller): { readonly route: Model; readonly warnings: readonly string[] } {
  const found = modelNamed(models, call.model);
  const fallsBack = call.kind === 'embedding' && found?.kind !== 'embedding';
  const model = fallsBack ? models.embedding : found;
  const targets = model?.targets.filter(({ target }) => call.able(target)) ?? [];
  if (!model && call.kind === 'embedding') throw unknownModel(call.model, models, 'embedding');
  if (!model && (models.hasProviders || caller.models !== undefined)) throw unknownModel(call.model, models, call.of);
  if (!model || targets.length === 0) throw new Fault('unsupported', call.unable, { field: 'model' });
  const warnings = fallsBack ? [`model: ${shownName(call.model)} is not an embedding model here, so ${model.name} answers instead`] : [];
  return { route: narrowedTo(model, targets), warnings };
}

/**
 * The models as a caller sees them: for a key that is restricted to some models, no others exist. A restriction may list a model by its name or by an alias,
 * and the model may be requested by both. `*` in it stands for all.
 */
export function modelsFor(models: Models, { models: names }: Pick<Caller, 'models'>): Models {
  if (names === undefined || names.includes('*')) return models;
  const permits = ({ name }: Model) => names.includes(name) || names.some((one) => models.find(one)?.name === name);
  return {
    hasProviders: models.hasProviders,
    isNarrowed: true,
    preferred: models.preferred,
    find(name) {
      const model = models.find(name);
      return model && (names.includes(name) || permits(model)) ? model : undefined;
    },
    embedding: models.embedding && permits(models.embedding) ? models.embedding : undefined,
    list: () => [...new Map(names.flatMap((name) => models.find(name) ?? []).map((model) => [model.name, model])).values()],
  };
}

/**
 * The models for a caller whose calls must not leave these lists of regions: only places within all of the lists can be asked, and a model without any such
 * place does not exist.
 */
export function modelsWithin(models: Models, lists: readonly string[]): Models {
  const inside = narrowed.get(models) ?? new Map<string, Models>();
  const key = JSON.stringify(lists);
  const found = inside.get(key) ?? insideOf(models, lists);
  narrowed.set(models, inside.set(key, found));
  return found;
}

/** Created once per plan, until the settings change. */
const narrowed = new WeakMap<Models, Map<string, Models>>();

function insideOf(models: Models, lists: readonly string[]): Models {
  const known = new WeakMap<Model, { readonly model: Model | undefined }>();
  const inside = (model: Model | undefined): Model | undefined => {
    if (!model) return undefined;
    const before = known.get(model);
    if (before) return before.model;
    const targets = model.targets.flatMap((group) => lists.reduce<typeof group | undefined>((left, list) => left && within(left, list), group) ?? []);
    const one = { model: targets.length === 0 ? undefined : narrowedTo(model, targets) };
    known.set(model, one);
    return one.model;
  };
  let list: { readonly of: readonly Model[]; readonly models: readonly Model[] } | undefined;
  return {
    hasProviders: models.hasProviders,
    preferred: models.preferred,
    find: (name) => inside(models.find(name)),
    embedding: inside(models.embedding),
    list() {
      const all = models.list();
      if (list?.of !== all) list = { of: all, models: all.flatMap((model) => inside(model) ?? []) };
      return list.models;
    },
  };
}
