import { isDeepStrictEqual } from 'node:util';
import type { Json, JsonObject } from '#core/json';
import { LocalLessons, remember, type Lesson, type LessonsOf } from '#core/lessons';
import type { Clock } from '#kit/async/clock';

/** The quirks learned from the refusals of a provider's models. They expire after an hour, since providers change. */
export interface KnownQuirks<Quirks> {
  of(model: string): Quirks | undefined;
  /**
   * Must be called only when a request encoded with them was accepted: a refusal alone proves nothing. What is of one call alone (`thisCall`) is forgotten with it.
   * @param fields the refused ones
   */
  keep(model: string, quirks: Quirks, fields: readonly string[]): void;
  /** What was learned about the model, and until when that holds. */
  lesson(model: string): Lesson | undefined;
}

const keptMilliseconds = 3_600_000;

/**
 * @param base what is known of a model before it was asked: by the vendor at the provider's address and the model's name. Learned quirks begin with these
 * @param lessons where quirks are kept; absent: in this process alone
 */
export function knownQuirks<Quirks extends object>(
  clock: Clock,
  base: (model: string) => Quirks | undefined = () => undefined,
  lessons: LessonsOf = new LocalLessons(),
): KnownQuirks<Quirks> {
  const bases = new Map<string, Quirks | undefined>();
  const baseOf = (model: string) => {
    if (bases.has(model)) return bases.get(model);
    const quirks = base(model);
    remember(bases, model, quirks);
    return quirks;
  };
  const lessonOf = (model: string) => {
    const lesson = lessons.get(model);
    return lesson && lesson.until > clock.now() ? lesson : undefined;
  };
  const of = (model: string) => (lessonOf(model)?.quirks as Quirks | undefined) ?? baseOf(model); // `Lessons` gives back what this wire has kept at this version
  return {
    of,
    keep(model, { thisCall: _, ...quirks }: Quirks & OfOneCall, fields) {
      if (isDeepStrictEqual(quirks, of(model) ?? {})) return;
      const refused = [...new Set([...(lessonOf(model)?.fields ?? []), ...fields])];
      lessons.keep(model, { fields: refused, learned: difference(quirks, baseOf(model) ?? {}), quirks, until: clock.now() + keptMilliseconds });
    },
    lesson: lessonOf,
  };
}

interface OfOneCall {
  readonly thisCall?: unknown;
}

/** The members that differ. */
const difference = (quirks: object, base: object): JsonObject => {
  const before = new Map<string, unknown>(Object.entries(base));
  return Object.fromEntries(Object.entries(quirks).filter((entry): entry is [string, Json] => !isDeepStrictEqual(entry[1], before.get(entry[0]))));
};
