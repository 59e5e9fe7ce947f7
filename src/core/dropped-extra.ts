import type { GenerateCall } from './call.ts';
import { own, type Extra } from './json.ts';
import { gatewayOwn } from './thoughts.ts';

/**
 * The extra fields of other dialects, which a target of this dialect ignores. A field that a sister dialect has under the same name is carried for both. The
 * extra fields of thoughts are not listed: they matter only if the thought itself can be sent back. A name that begins with a dot is a dialect's private note
 * and not a client field.
 */
export function droppedExtra({ extra, turns, tools }: GenerateCall, dialect: string): readonly string[] {
  const names = new Set<string>();
  noteDropped(extra, dialect, names);
  for (const turn of turns) {
    noteDropped(turn.extra, dialect, names);
    for (const part of turn.parts) {
      if (part.type === 'thought' || !('extra' in part)) continue;
      noteDropped(part.extra, dialect, names);
    }
  }
  for (const tool of tools) if (tool.type !== 'foreign') noteDropped(tool.extra, dialect, names);
  return [...names];
}

function noteDropped(extra: Extra | undefined, dialect: string, names: Set<string>): void {
  if (extra === undefined) return;
  const understood = own(extra, dialect);
  for (const other in extra) {
    if (other === dialect || other === gatewayOwn) continue;
    for (const name in extra[other]) if (!name.startsWith('.') && !(name in understood)) names.add(name);
  }
}
