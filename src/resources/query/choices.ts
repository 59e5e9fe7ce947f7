import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import { Fault } from '#core/fault';
import { ignoring } from '#core/ignoring';
import { modelNamed, unknownModel, type KnownModels } from '#core/known-models';
import type { Model } from '#core/target';
import { unknownThing } from '#http/noun-route';
import type { UploadedFile } from '#http/uploads';
import type { QueryFields } from './fields.ts';
import { datasetsOf, mostPassages, type LookedUp } from './looked-up.ts';

export interface Asked {
  readonly caller: Caller;
  readonly fields: QueryFields;
  readonly files: readonly UploadedFile[];
  /** What the user wrote, for the log, where the message is made of it. */
  readonly asked?: string;
  /** The message with what has to be read for it, in place of that of the fields: called when it is known that the answer can be paid for. */
  readonly whole?: (() => Promise<string>) | undefined;
  /** What the answer is to be; absent: text. */
  readonly output?: GenerateCall['output'];
  /** Whether the answer is to come as a stream; absent: as the request says. */
  readonly streams?: true;
}

/** The persona of a question that names none. */
const defaultPersona = 1;

/** `openai_gpt` is what older clients send. */
const anyModel = new Set(['', 'auto', 'default', 'openai_gpt']);

/** The model that a request names: `auto`, `default`, `openai_gpt` and no name mean `usual`, unless the caller has a chat model or alias of that name. */
export function modelIn(given: string | null | undefined, usual: string, models: KnownModels): string {
  const name = given ?? '';
  const named = anyModel.has(name) ? models.find(name) : undefined;
  return anyModel.has(name) && !(named?.kind === 'chat' && models.list().includes(named)) ? usual : name;
}

/** The model that is to answer, or the first of those that the client chose. @throws Fault `invalid` where there is none of the name */
export function modelOf(name: string, models: KnownModels, { targets }: Context): Model | undefined {
  const model = modelNamed(models, targets?.[0] ?? name);
  if (targets || model?.kind === 'chat') return model;
  throw new Fault('invalid', unknownModel(name, models).message, { field: 'model', reason: 'model' });
}

export function lookedUpIn({ dataset, limit_references: limit, live }: QueryFields): LookedUp {
  return { datasets: datasetsOf(dataset), limit: Math.min(limit ?? mostPassages, mostPassages), live: live === 1 || live === 2 ? live : 0 };
}

const isId = (given: unknown): boolean => Number.isInteger(given) || (typeof given === 'string' && /^-?\d+$/.test(given));

/** The id, given as an integer or as digits; anything else is the default. @throws Fault `not-found` for an integer that cannot be an id */
export function personaIn(given: unknown): number {
  const id = isId(given) ? Number(given) : defaultPersona;
  if (id < 1 || !Number.isSafeInteger(id)) throw unknownThing('persona');
  return id;
}

/** How clients name the default persona. */
const usualPersonas = new Set<unknown>([undefined, null, '', 'default']);

/** Warns of fields of a question that have no effect. @throws Fault `invalid` where the client is strict */
export function warnOfUnusedFields(fields: QueryFields, context: Pick<Context, 'strict' | 'progress'>): void {
  const { datasets, limit, live } = lookedUpIn(fields);
  const { persona, usage, tool_choice: choice, deep_agent_id: earlier, prior_deep_agent_ids: prior } = fields;
  const isDeep = fields.mode === 'deep_agent';
  const notes: Readonly<Record<string, string | false>> = {
    persona: !isId(persona) && !usualPersonas.has(persona) && 'not an id, so the default persona answers',
    dataset: limit === 0 && datasets.length > 0 && nothingLookedUp,
    live: limit === 0 && live > 0 && nothingLookedUp,
    usage: isDeep && usage === true && 'the figures of a deep agent are those of its run',
    tool_choice: isDeep && !!choice && 'a deep agent calls no tools of its client',
    deep_agent_id: !isDeep && !!earlier && onlyDeep,
    prior_deep_agent_ids: !isDeep && !!prior && prior.length > 0 && onlyDeep,
  };
  ignoring(
    Object.entries(notes).flatMap(([field, why]) => (why === false ? [] : [`${field}: ${why}`])),
    context,
  );
}

const nothingLookedUp = 'limit_references is 0, so nothing is looked up';
const onlyDeep = 'used only with mode deep_agent';
