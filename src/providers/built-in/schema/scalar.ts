import type { Json, JsonObject } from '#core/json';
import type { Findings } from '../findings.ts';
import { formats, lengthOf, numberOf, type Schema } from './conforms.ts';
import type { Work } from './work.ts';

/** The sources of values. */
export interface Given {
  readonly findings: Findings;
  /** The question: the value of a `query`, a `question`, a `prompt`. */
  readonly question: string;
  /** The answer in prose: the value of an `answer`, a `summary`, a `text`. */
  readonly prose: () => string;
}

/** The place in the schema for which a value is made. */
export interface SchemaPosition {
  readonly name: string;
  readonly path: string;
  readonly depth: number;
  /** The references that lead here: each is followed only once. */
  readonly refs: readonly string[];
  /** Counts the attempts to make another value for the same schema. */
  readonly variant: number;
}

/** The context for making one value. */
export interface Making {
  readonly given: Given;
  readonly work: Work;
  is(schema: Schema, value: Json): boolean;
  fail(position: SchemaPosition, why: string): undefined;
}

const longestText = 1 << 16;

/** A member of an enumeration: the one that the message gives for the property or mentions, else the default, else the first. */
export function memberFor(schema: JsonObject, members: readonly Json[], position: SchemaPosition, making: Making): Json | undefined {
  const { enum: _, ...others } = schema;
  const allowed = members.slice(0, 1000).filter((one) => making.is(others, one));
  const { findings } = making.given;
  const stated = findings.labelled(position.name)?.toLowerCase();
  const texts = allowed.filter((one) => typeof one === 'string');
  const { work } = making;
  const meant =
    texts.find((one) => work.spend(0.5 + one.length / 100) && one.toLowerCase() === stated) ??
    texts.find((one) => one !== '' && work.spend(8 + one.length / 8) && findings.mentions(one));
  if (allowed.length === 0) return making.fail(position, 'none of its values is allowed');
  const inOrder = allowed.includes(schema['default'] as Json) ? [schema['default']!, ...allowed] : allowed;
  return position.variant === 0 && meant !== undefined ? meant : inOrder[position.variant % inOrder.length];
}

export function truthFor(schema: JsonObject, position: SchemaPosition, { given }: Making): boolean {
  const stated = given.findings.labelled(position.name);
  if (stated !== undefined && /^(?:true|yes|on)(?!\p{L})/iu.test(stated)) return true;
  if (stated !== undefined && /^(?:false|no|not|off)(?!\p{L})/iu.test(stated)) return false;
  return (schema['default'] === true) !== (position.variant % 2 === 1);
}

/** A number: the one with the property's name, else the next allowed one of the message, else the default, an example, or the allowed one nearest to 0. */
export function numberFor(schema: JsonObject, whole: boolean, position: SchemaPosition, making: Making): number | undefined {
  const fits = (value: unknown): value is number => Number.isFinite(value) && (!whole || Number.isInteger(value)) && making.is(schema, value as number);
  if (position.variant === 0) {
    const { findings } = making.given;
    const stated = /[-+]?\d{1,15}(?:,\d{3}){0,5}(?:\.\d{1,15})?/.exec(findings.labelled(position.name) ?? '')?.[0];
    const found = [Number(stated?.replaceAll(',', ''))].find(fits) ?? findings.number(fits) ?? [schema['default'], ...examplesOf(schema)].find(fits);
    if (found !== undefined) return found;
  }
  const step = stepOf(numberOf(schema, 'multipleOf'), whole);
  const low = Math.max(numberOf(schema, 'minimum') ?? -Infinity, numberOf(schema, 'exclusiveMinimum') ?? -Infinity);
  const high = Math.min(numberOf(schema, 'maximum') ?? Infinity, numberOf(schema, 'exclusiveMaximum') ?? Infinity);
  const near = [0, low, high, (low + high) / 2, low + 1, high - 1].filter(Number.isFinite);
  const first = (step > 0 ? near.flatMap((one) => [0, 1, -1].map((by) => (Math.ceil(one / step) + by) * step)) : near).find(fits);
  if (first === undefined) return making.fail(position, 'no number lies within its bounds');
  const apart = step || (Number.isFinite(high - low) ? (high - low) / 1000 : 1);
  return [first + position.variant * apart, first - position.variant * apart].find(fits) ?? making.fail(position, 'it has too few numbers');
}

/** The distance between allowed numbers: multiples of 0.4 are integers every 2. */
function stepOf(multiple: number | undefined, whole: boolean): number {
  if (multiple === undefined || multiple <= 0) return whole ? 1 : 0;
  if (!whole || Number.isInteger(multiple)) return multiple;
  for (let times = 2; times <= 1000; times++) if (Number.isInteger(multiple * times)) return multiple * times;
  return multiple;
}

/** A text: the one with the property's name, in its format or from the message; else the default, an example, one made from the pattern, or `unknown`. */
export function textFor(schema: JsonObject, position: SchemaPosition, making: Making): string | undefined {
  const shortest = lengthOf(schema, 'minLength') ?? 0;
  const longest = Math.min(lengthOf(schema, 'maxLength') ?? longestText, longestText);
  if (shortest > longestText) return making.fail(position, `it is longer than ${longestText} characters`);
  const fits = (value: unknown): value is string => typeof value === 'string' && making.is(schema, value);
  const found = position.variant === 0 ? foundText(schema, position, making, fits) : undefined;
  if (found !== undefined) return found;
  const formed = samples.get(schema['format'])?.(position.variant);
  const candidates = formed === undefined ? [unknown(position.variant, shortest, longest), ...patterned(schema, shortest, position.variant, making)] : [formed];
  return (
    candidates.find(fits) ?? making.fail(position, 'pattern' in schema ? 'its pattern is not understood or contradicts the rest' : 'no text conforms to it')
  );
}

function unknown(variant: number, shortest: number, longest: number): string {
  const word = variant === 0 ? 'unknown' : `unknown ${variant + 1}`;
  return word.length > longest ? `${variant || word}`.slice(0, Math.max(0, longest)) : word.padEnd(shortest, '.');
}

function foundText(schema: JsonObject, position: SchemaPosition, { given, work }: Making, fits: (value: unknown) => value is string): string | undefined {
  const { findings, question, prose } = given;
  const labelled = findings.labelled(position.name);
  if (fits(labelled)) return labelled;
  const { format } = schema;
  const formed = typeof format === 'string' && formats.has(format) ? findings.formed(format) : undefined;
  if (fits(formed)) return formed;
  const word = lastWord(position.name);
  const whole = asks.test(word) ? question : answers.test(word) && work.spend(100) ? prose() : undefined;
  const cut = whole?.slice(0, Math.min(2000, lengthOf(schema, 'maxLength') ?? 2000)).toWellFormed();
  if (fits(cut)) return cut;
  const fallback = [schema['default'], ...(format === undefined ? [findings.text(places.test(word), fits)] : []), ...examplesOf(schema)];
  return fallback.find(fits);
}

const lastWord = (name: string) =>
  name
    .slice(-100)
    .split(/[_\-\s]/)
    .at(-1)!
    .replace(/^.*\p{Ll}(?=\p{Lu})/u, '')
    .toLowerCase();
const asks = /^(?:query|question|prompt|input|message|q|search|request|instruction|task)$/;
const answers = /^(?:text|answer|response|reply|output|result|content|summary|explanation|description|reasoning|thought|body|comment)$/;
const places = /^(?:city|town|place|location|country|region|state|destination|address|where|area)$/;

/** Texts that match the pattern, with increasing repetitions until they are long enough. */
function patterned(schema: JsonObject, shortest: number, variant: number, { work }: Making): string[] {
  const pattern = typeof schema['pattern'] === 'string' ? work.pattern(schema['pattern']) : undefined;
  const found: string[] = [];
  for (let extra = 0; pattern && extra <= longestText; extra = extra * 2 || 1) {
    const sample = pattern.sample(extra, variant, work);
    if (!work.spend(1 + sample.length / 100) || (sample === found[0] && extra > 2)) break;
    found.unshift(...(sample.length < shortest ? [sample.padEnd(shortest, 'a')] : [sample, sample.slice(0, shortest)]));
    if (sample.length > shortest + 64) break;
  }
  return found.toReversed();
}

const examplesOf = (schema: JsonObject): readonly unknown[] =>
  Array.isArray(schema['examples']) ? schema['examples'].slice(0, 20) : 'example' in schema ? [schema['example']] : [];

const samples: ReadonlyMap<unknown, (variant: number) => string> = new Map(
  Object.entries({
    'date-time': (variant: number) => new Date(variant * 1000).toISOString().replace('.000', ''),
    date: (variant: number) => new Date(variant * 86_400_000).toISOString().slice(0, 10),
    time: (variant: number) => `${new Date(variant * 1000).toISOString().slice(11, 19)}Z`,
    duration: (variant: number) => `PT${variant}S`,
    email: (variant: number) => `nobody${variant || ''}@example.com`,
    hostname: (variant: number) => `host${variant || ''}.example.com`,
    uri: (variant: number) => `https://example.com/${variant || ''}`,
    url: (variant: number) => `https://example.com/${variant || ''}`,
    'uri-reference': (variant: number) => `/${variant || ''}`,
    iri: (variant: number) => `https://example.com/${variant || ''}`,
    uuid: (variant: number) => `00000000-0000-0000-0000-${String(variant).padStart(12, '0')}`,
    ipv4: (variant: number) => `127.0.0.${1 + (variant % 254)}`,
    ipv6: (variant: number) => `::${(variant + 1).toString(16)}`,
    regex: () => '.*',
    'json-pointer': (variant: number) => (variant ? `/${variant}` : ''),
  }),
);
