import { instantOf } from '#kit/text/instant';
import { invalid } from '#core/fault';

/** An instant that a client wrote → milliseconds since 1970. @throws Fault `invalid` */
export function instantIn(field: string, text: string): number {
  const found = instantOf(text);
  if (found === undefined) throw invalid(field, 'must be a time in ISO 8601 such as 2026-11-01 or 2026-11-01T12:00:00Z');
  return found;
}
