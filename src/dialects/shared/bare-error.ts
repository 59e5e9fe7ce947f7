import { isObject } from '#core/json';
import { jsonOf } from './upstream-faults.ts';

/**
 * An error that a provider wrote into a stream of events without their framing, as servers do that fail while they stream: the error object, or a list of it
 * (as Google's do).
 *
 * @param text lines of which none is `data`
 * @returns the JSON of the error object, to be decoded as the data of a frame; undefined for anything else
 */
export function bareError(text: string): string | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  const body = jsonOf(text);
  const first: unknown = Array.isArray(body) ? body[0] : body;
  return isObject(first) && (isObject(first['error']) || first['object'] === 'error') ? JSON.stringify(first) : undefined;
}
