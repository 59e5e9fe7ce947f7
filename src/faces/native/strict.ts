import type { TSchema } from 'typebox';
import { Fault } from '#core/fault';

const longestName = 100;

/** @param input the fields that the operation knows; one with `x-ignored` is accepted and not heeded @throws Fault `invalid` naming the first field that would be ignored */
export function refuseIgnored(given: Readonly<Record<string, unknown>>, input: TSchema & { readonly properties?: Readonly<Record<string, object>> }): void {
  const { properties = {} } = input;
  const isHeeded = (name: string) => Object.hasOwn(properties, name) && !('x-ignored' in properties[name]!);
  const ignored = Object.entries(given).find(([name, value]) => value !== null && !isHeeded(name))?.[0];
  if (ignored === undefined) return;
  const field = ignored.slice(0, longestName);
  throw new Fault('invalid', `${field} is ignored here.`, { field });
}
