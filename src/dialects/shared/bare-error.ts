import { isObject } from '#core/json';
import { isQuick } from '#kit/json/foreign';
import { valueIn } from '#kit/json/value-in';

/**
 * Finds the error that a provider wrote into a stream of events without their framing, as servers do that fail while they stream: the error object, or a list
 * of it (as Google's do). Only the first text that looks like JSON is read: a stream of others would hold up everybody.
 * @returns a function of the lines of a frame of which none is `data`, for one stream: the JSON of the error object, to be decoded as the data of a frame;
 * undefined for anything else
 */
export function bareErrors(): (lines: string) => string | undefined {
  let isOver = false;
  return (lines) => {
    if (isOver || !isQuick(lines) || !/^\s*[[{]/.test(lines)) return undefined;
    isOver = true;
    const body = valueIn(lines);
    const first: unknown = Array.isArray(body) ? body[0] : body;
    return isObject(first) && (isObject(first['error']) || first['object'] === 'error') ? JSON.stringify(first) : undefined;
  };
}
