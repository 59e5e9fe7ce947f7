import type { GenerateCall } from './call.ts';
import { own, type Extra } from './json.ts';

/**
 * The fields that only other dialects would have understood: a target of this dialect ignores them. Those of thoughts are left out: whether a thought
 * itself can be given back decides.
 * A field that a sister dialect has under the same name is carried for both.
 * A name that begins with a dot is a dialect's note to itself and no field of the client.
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
  for (const tool of tools) if (tool.type === 'function') noteDropped(tool.extra, dialect, names);
  return [...names];
}

function noteDropped(extra: Extra | undefined, dialect: string, names: Set<string>): void {
  if (extra === undefined) return;
  const heard = own(extra, dialect);
  for (const other in extra) {
    if (other === dialect) continue;
    for (const name in extra[other]) if (!name.startsWith('.') && !(name in heard)) names.add(name);
  }
}
