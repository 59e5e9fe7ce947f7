import type { GenerateCall } from './call.ts';
import type { Turn } from './conversation.ts';
import { isEmpty } from './json.ts';

/** The outcome of a field at a target: carried as it was meant, translated (in other words or within bounds, as the note says), or ignored. */
export type FieldOutcome = { readonly fate: 'carried' } | { readonly fate: 'translated' | 'ignored'; readonly note: string };

/** The fields of a call by their chat completion names, each with a test of whether a call uses it. */
const usedIn = {
  temperature: ({ sampling }) => sampling.temperature !== undefined,
  top_p: ({ sampling }) => sampling.topP !== undefined,
  top_k: ({ sampling }) => sampling.topK !== undefined,
  max_tokens: ({ sampling }) => sampling.maxTokens !== undefined,
  frequency_penalty: ({ sampling }) => (sampling.frequencyPenalty ?? 0) !== 0,
  presence_penalty: ({ sampling }) => (sampling.presencePenalty ?? 0) !== 0,
  n: ({ sampling }) => (sampling.candidates ?? 1) > 1,
  seed: ({ sampling }) => sampling.seed !== undefined,
  stop: ({ sampling }) => sampling.stop !== undefined,
  logprobs: ({ sampling }) => sampling.logprobs !== undefined,
  logit_bias: ({ sampling }) => !isEmpty(sampling.logitBias ?? {}),
  tools: ({ tools }) => tools.length > 0,
  tool_choice: ({ toolChoice }) => toolChoice !== undefined,
  parallel_tool_calls: ({ parallelToolCalls, takesOneCall, tools }) => parallelToolCalls === false && !takesOneCall && tools.length > 0,
  response_format: ({ output }) => output.type !== 'text',
  reasoning_effort: ({ reasoning }) => reasoning?.effort !== undefined,
} as const satisfies Record<string, (call: GenerateCall) => boolean>;

export type Field = keyof typeof usedIn;

/** The fields that a wire supports: one table, for the warnings of an answer and for clients that ask beforehand. */
export interface FieldSupport {
  readonly dialect: string;
  readonly fields: Readonly<Record<Field, FieldOutcome>>;
  /** Fields of another dialect that this dialect has under the same name, by that other dialect. */
  readonly sisters?: Readonly<Record<string, ReadonlySet<string>>>;
}

export const carried: FieldOutcome = { fate: 'carried' };
export const translated = (note: string): FieldOutcome => ({ fate: 'translated', note });
export const ignored = (note: string): FieldOutcome => ({ fate: 'ignored', note });

/** Why a target ignores a field that it lacks. */
export const absentIn = (target: string) => `${target} ${lacking}`;
const lacking = 'does not have this field';

/** The note for every field that a wire lacks. */
export const absent = `${absentIn("the provider's interface")}.`;

/** The field support for a model that refuses some of the fields. */
export function without(support: FieldSupport, refused: readonly Field[]): FieldSupport {
  if (refused.length === 0) return support;
  return { ...support, fields: { ...support.fields, ...Object.fromEntries(refused.map((name) => [name, ignored('this model does not take it.')])) } };
}

/**
 * The request fields of a wire that a target may or may not support, each with its name in a call; undefined for a field that only this wire has.
 * @param all the members of its requests. @param others those that it has under another name. @param always those that every call has
 */
export const requestFieldsOf = (all: object, others: Readonly<Record<string, Field>>, always: readonly string[]): Readonly<Record<string, Field | undefined>> =>
  Object.fromEntries(
    Object.keys(all)
      .filter((name) => !always.includes(name))
      .map((name) => [name, name in usedIn ? (name as Field) : others[name]]),
  );

/** Fields that are not used with every value, each with a test of whether the client sent it. */
const sentIn: Readonly<Partial<Record<Field, (call: GenerateCall) => boolean>>> = {
  frequency_penalty: ({ sampling }) => sampling.frequencyPenalty !== undefined,
  presence_penalty: ({ sampling }) => sampling.presencePenalty !== undefined,
  n: ({ sampling }) => sampling.candidates !== undefined,
  logit_bias: ({ sampling }) => sampling.logitBias !== undefined,
  parallel_tool_calls: ({ parallelToolCalls }) => parallelToolCalls !== undefined,
};

export const isSent = (name: Field, call: GenerateCall): boolean => (sentIn[name] ?? usedIn[name])(call);

/** Does a note, `name: reason`, say that the target lacks a member of the client's request, and not a field of the call that may have the same name? */
export const isMemberNote = (note: string, name: string, call: GenerateCall): boolean =>
  note.includes(lacking, name.length) && !(Object.hasOwn(usedIn, name) && isSent(name as Field, call));

const none: string[] = [];
const fieldNames = Object.keys(usedIn) as Field[];

/** The fields that a call uses and a target ignores, as `field: reason`, and a warning for provider searches whose results are lost. */
export function ignoredIn(call: GenerateCall, { fields }: FieldSupport): readonly string[] {
  let all: string[] = none;
  for (const name of fieldNames) {
    if (fields[name].fate !== 'ignored' || !usedIn[name](call)) continue;
    if (all === none) all = [];
    all.push(warning(name, fields[name]));
  }
  return call.turns.some(hasLostSearch) ? [...all, lostSearch] : all;
}

const lostSearch = 'web_search_call: the results of an earlier provider search are not sent to the model again.';
const hasLostSearch = ({ parts }: Turn): boolean => parts.some((part) => part.type === 'search' && part.isLost);

/** The warning for a field whose note applies, as `field: reason`. */
export const noteOn = (name: Field, { fields }: FieldSupport): string => warning(name, fields[name]);

const warning = (name: string, fate: FieldOutcome) => `${name}: ${'note' in fate ? fate.note : absent}`;

/**
 * The outcome of each field of an interface at a target.
 * @param dialect the dialect of the interface
 * @param names the fields of the interface, each with its name in the table; undefined if only the dialect itself knows it
 */
export function outcomesOf(
  { dialect: spoken, fields, sisters }: FieldSupport,
  dialect: string,
  names: Readonly<Record<string, Field | undefined>>,
): Record<string, FieldOutcome> {
  const isUnderstood = (name: string) => spoken === dialect || sisters?.[dialect]?.has(name) === true;
  return Object.fromEntries(Object.entries(names).map(([name, field]) => [name, field ? fields[field] : isUnderstood(name) ? carried : ignored(absent)]));
}
