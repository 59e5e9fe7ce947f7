import type { GenerateCall } from './call.ts';
import { isObject, own, type Extra, type Json, type JsonObject } from './json.ts';
import { gatewayOwn } from './thoughts.ts';

/**
 * The extra fields of other dialects, which a target of this dialect ignores. A field that a sister dialect has under the same name is carried for both. The
 * extra fields of thoughts are not listed: they matter only if the thought itself can be sent back. A name that begins with a dot is a dialect's private note
 * and not a client field. A field of the request with its default value asks for nothing that would be lost.
 */
export function droppedExtra({ extra, turns, tools }: GenerateCall, dialect: string): readonly string[] {
  const names = new Set<string>();
  noteDropped(extra, dialect, names, isDefault);
  for (const turn of turns) {
    noteDropped(turn.extra, dialect, names);
    for (const part of turn.parts) {
      if (part.type === 'tool-result') for (const inner of part.parts) if ('extra' in inner) noteDropped(inner.extra, dialect, names);
      if (part.type === 'thought' || !('extra' in part)) continue;
      noteDropped(part.extra, dialect, names);
    }
  }
  for (const tool of tools) if (tool.type !== 'foreign') noteDropped(tool.extra, dialect, names);
  return [...names];
}

/** The defaults of request fields, as JSON: some clients send them always. https://platform.openai.com/docs/api-reference/chat/create */
const defaults: Readonly<Record<string, readonly string[]>> = {
  store: ['false'],
  service_tier: ['"auto"', '"default"'],
  modalities: ['["text"]'],
  verbosity: ['"medium"'],
  metadata: ['{}'],
};

/** Does a request field with this value ask for nothing? */
export const isDefault = (name: string, value: Json | undefined): boolean => Object.hasOwn(defaults, name) && defaults[name]!.includes(JSON.stringify(value));

/** The note of a dialect that has members of objects in the request, by the paths of the objects (dialects/shared/nested-members). */
export const unknownMembers = '.unknown';

function noteDropped(extra: Extra | undefined, dialect: string, names: Set<string>, isNothing?: typeof isDefault): void {
  if (extra === undefined) return;
  const understood = own(extra, dialect);
  for (const other in extra) {
    if (other === dialect || other === gatewayOwn) continue;
    noteUnknown(extra[other]![unknownMembers], names);
    for (const name in extra[other]) if (!name.startsWith('.') && !(name in understood) && !isNothing?.(name, extra[other][name])) names.add(name);
  }
}

function noteUnknown(objects: Json | undefined, names: Set<string>): void {
  if (!isObject(objects)) return;
  for (const [path, members] of Object.entries(objects)) for (const name in members as JsonObject) names.add(`${path}.${name}`);
}
