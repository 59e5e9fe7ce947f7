import type { JsonObject } from './json.ts';

/** What the refusals of a provider taught about one of its models. */
export interface Lesson {
  /** The fields that the provider refused, as it calls them. */
  readonly fields: readonly string[];
  /** What changed in how requests are encoded, by quirk. */
  readonly learned: JsonObject;
  /** All quirks of the model, with those that were known before. */
  readonly quirks: object;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** Several lessons about one model as one, which holds as long as the first of them to end. */
export function joinedLesson(all: readonly (Lesson | undefined)[]): Lesson | undefined {
  const lessons = all.filter((one) => one !== undefined);
  if (lessons.length < 2) return lessons[0];
  return {
    fields: [...new Set(lessons.flatMap(({ fields }) => fields))],
    learned: Object.assign({}, ...lessons.map(({ learned }) => learned)) as JsonObject,
    quirks: lessons[0]!.quirks,
    until: Math.min(...lessons.map(({ until }) => until)),
  };
}

/** The lessons about the models of one provider on one wire. */
export interface LessonsOf {
  /** From memory. */
  get(model: string): Lesson | undefined;
  keep(model: string, lesson: Lesson): void;
}

export interface Lessons {
  /** @param address of the provider: lessons of another address do not count */
  of(provider: string, wire: string, address: string): LessonsOf;
}

/** Clients may choose names of models: limits on their number and length bound the memory. */
const mostNames = 1000;
const longestName = 500;

export class LocalLessons implements LessonsOf {
  readonly #lessons = new Map<string, Lesson>();

  get(model: string): Lesson | undefined {
    return this.#lessons.get(model);
  }

  keep(model: string, lesson: Lesson): void {
    remember(this.#lessons, model, lesson);
  }

  clear(): void {
    this.#lessons.clear();
  }
}

/** Sets a value by the name of a model; the oldest makes room. */
export function remember<Value>(values: Map<string, Value>, model: string, value: Value): void {
  if (model.length > longestName) return;
  values.delete(model);
  values.set(model, value);
  const [oldest] = values.keys();
  if (values.size > mostNames) values.delete(oldest!);
}
