import { Type, type Static, type TProperties, type TSchema } from 'typebox';

/** Seconds. The longest delay of a timer of the runtime (2³¹ − 1 ms). */
const longest = 2_147_483;

interface Options {
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

/** An optional object whose members are all optional. */
export const group = <Members extends TProperties>(description: string, members: Members) =>
  Type.Object(members, { additionalProperties: false, description, default: {} });

/** An object without a default of its own. */
export const record = <Members extends TProperties>(description: string, members: Members) =>
  Type.Object(members, { additionalProperties: false, description });

/** A map by names that the operator chooses. */
export const named = <Item extends TSchema>(description: string, item: Item, options: Options = {}) =>
  Type.Unsafe<Record<string, Static<Item>>>({ type: 'object', additionalProperties: item, description, default: {}, ...options });

export const list = <Item extends TSchema>(description: string, item: Item, options: Options = {}) =>
  Type.Array(item, { description, default: [], ...options });

/** A string; empty means not set. */
export const text = (description: string) => Type.String({ description, default: '' });

export const word = (description: string, options: Options = {}) => Type.String({ minLength: 1, description, ...options });

export const oneOf = <const Words extends readonly [string, ...string[]]>(description: string, words: Words, options: Options = {}) =>
  Type.Unsafe<Words[number]>({ type: 'string', enum: words, description, ...options });

export const yes = (description: string, value: boolean) => Type.Boolean({ description, default: value });

/** A number of seconds above 0. */
export const seconds = (description: string, value: number) =>
  Type.Number({ exclusiveMinimum: 0, maximum: longest, description: `${description} (seconds).`, default: value });

/** A number of seconds; the description says what 0 means. */
export const secondsOrNone = (description: string, value: number) =>
  Type.Number({ minimum: 0, maximum: longest, description: `${description} (seconds).`, default: value });

export const count = (description: string, unit: string, minimum: number, options: Options = {}) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description: `${description} (${unit}).`, ...options });

/** A price or a rate. The bound keeps what a call costs within a bigint of the database. */
export const amount = (description: string, unit: string, options: Options = {}) =>
  Type.Number({ minimum: 0, maximum: 1_000_000, description: `${description} (${unit}).`, ...options });

/** A spending limit, with the bound that it has over HTTP. */
export const spending = (description: string) => Type.Number({ minimum: 0, maximum: 1e12, description: `${description} (US dollars).` });

/** How long something is kept, at least 1. The bound keeps the end within the range of the database. */
export const age = (description: string, unit: 'days' | 'months', value: number) =>
  Type.Integer({ minimum: 1, maximum: unit === 'days' ? 1_000_000 : 20_000, description: `${description} (${unit}).`, default: value });
