import type { Context } from './context.ts';
import { Fault } from './fault.ts';

/** Warnings of one kind name this many fields at most. */
const mostNamed = 20;

/** Warns of fields of the request that are not heeded. @param fields as `field: reason`. @throws Fault `invalid` where the client is strict */
export function ignoring(fields: readonly string[], { strict, progress }: Pick<Context, 'strict' | 'progress'>): void {
  const named = fields.slice(0, mostNamed);
  if (strict && named.length > 0)
    throw new Fault('invalid', `Not every field of the request can be heeded: ${named.join('; ')}.`, { field: named[0]!.split(':', 1)[0]! });
  warn(named, progress);
}

/** Adds warnings to an answer whose head is not sent yet. @param notes as `field: reason` */
export function warn(notes: readonly string[], progress: Context['progress']): void {
  if (notes.length > 0) (progress.warnings ??= []).push(...notes.slice(0, mostNamed));
}

/** Warns of tools that a request enables and that are not there. @throws Fault as `ignoring` */
export const ignoringTools = (unknown: readonly string[], context: Pick<Context, 'strict' | 'progress'>): void =>
  ignoring(
    unknown.map((name) => `enabled_mcp_tools: ${name}: there is no such tool`),
    context,
  );
