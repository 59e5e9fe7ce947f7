import { isObject, type Json } from '#core/json';

/** Is a value of a part that is not understood an address, or does it have one? Data URLs are none. */
export function isOrHasAddress(value: Json): boolean {
  if (typeof value === 'string') return isAddress(value);
  if (Array.isArray(value)) return (value as readonly Json[]).some(isOrHasAddress);
  return isObject(value) && Object.entries(value).some(([name, inner]) => !(typeof inner === 'string' && texts.has(name)) && isOrHasAddress(inner));
}

/** Members that are text to read, such as the output of a command: nothing opens them. */
const texts = new Set(['text', 'stdout', 'stderr', 'output']);

/** Clients of HTTP mend spaces behind the host, and in the name of a user before it: only a text with one in its host cannot be opened. */
const isAddress = (text: string): boolean => startsAsAddress.test(text) && !isProse.test(text);

const startsAsAddress = /^\s*(?:(?:https?|file):|[a-z][a-z0-9+.-]{0,30}:\/\/)/i;
const isProse = /^\s*(?:file: |[a-z][a-z0-9+.-]{0,30}:\/{0,3}[^\s/?#\\]* [^/?#\\@]*(?:[/?#\\]|$))/i;
