import type { GenerateCall } from './call.ts';
import { isEmpty } from './json.ts';

/** What becomes of a field at a target: it arrives as it was meant; in other words or within bounds, as the note says; or not at all. */
export type FieldOutcome = { readonly fate: 'carried' } | { readonly fate: 'translated' | 'ignored'; readonly note: string };

/** The fields of a call in the words of the chat interface, and whether a call asks for something in them. */
const askedIn = {
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
  parallel_tool_calls: ({ parallelToolCalls, tools }) => parallelToolCalls === false && tools.length > 0,
  response_format: ({ output }) => output.type !== 'text',
  reasoning_effort: ({ reasoning }) => reasoning?.effort !== undefined,
} as const satisfies Record<string, (call: GenerateCall) => boolean>;

export type Field = keyof typeof askedIn;

/** What a wire has words for: one table for the warnings of an answer and for who asks beforehand. */
export interface FieldSupport {
  readonly dialect: string;
  readonly fields: Readonly<Record<Field, FieldOutcome>>;
  /** Fields that only another dialect understands and this one has under the same name, by that dialect. */
  readonly sisters?: Readonly<Record<string, ReadonlySet<string>>>;
}

export const carried: FieldOutcome = { fate: 'carried' };
export const translated = (note: string): FieldOutcome => ({ fate: 'translated', note });
export const ignored = (note: string): FieldOutcome => ({ fate: 'ignored', note });

/** Said of every field that a wire does not have. */
export const absent = "the provider's interface does not have this field.";

/** The same for a model that refuses some of the fields. */
export function without(support: FieldSupport, refused: readonly Field[]): FieldSupport {
  if (refused.length === 0) return support;
  return { ...support, fields: { ...support.fields, ...Object.fromEntries(refused.map((name) => [name, ignored('this model does not take it.')])) } };
}

const none: string[] = [];
const fieldNames = Object.keys(askedIn) as Field[];

/** What a call asks for and a target ignores, as `field: reason`. */
export function ignoredIn(call: GenerateCall, { fields }: FieldSupport): readonly string[] {
  let all: string[] = none;
  for (const name of fieldNames) {
    if (fields[name].fate !== 'ignored' || !askedIn[name](call)) continue;
    if (all === none) all = [];
    all.push(warning(name, fields[name]));
  }
  return all;
}

/** What is said where a field's note comes true, as `field: reason`. */
export function noteOn(name: Field, { fields }: FieldSupport): string {
  return warning(name, fields[name]);
}

const warning = (name: string, fate: FieldOutcome) => `${name}: ${'note' in fate ? fate.note : absent}`;

/**
 * What becomes of the fields of an interface at a target.
 *
 * @param dialect the interface's own
 * @param names its fields, each with what it is called here; undefined where only the dialect itself knows it
 */
export function outcomesOf(
  { dialect: spoken, fields, sisters }: FieldSupport,
  dialect: string,
  names: Readonly<Record<string, Field | undefined>>,
): Record<string, FieldOutcome> {
  const isHeard = (name: string) => spoken === dialect || sisters?.[dialect]?.has(name) === true;
  return Object.fromEntries(Object.entries(names).map(([name, field]) => [name, field ? fields[field] : isHeard(name) ? carried : ignored(absent)]));
}
