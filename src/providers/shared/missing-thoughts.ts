import type { Part, Turn } from '#core/conversation';
import { own } from '#core/json';
import type { KeptThoughts } from '#core/thoughts';
import { isUnnamed, nameOfCall } from './call-names.ts';
import { Positions } from './call-positions.ts';
import type { ThoughtContext } from './endpoint-thoughts.ts';

/** Tool calls of a conversation that lack their thoughts, and the conversation with them. */

/** A tool call whose thoughts the client did not return. */
export interface Gap {
  /** Index of the turn, of the call in it, and of the first part behind the call before. */
  readonly turn: number;
  readonly at: number;
  readonly from: number;
  readonly name: string;
  /** Present where the client returned the call without an id. */
  readonly position?: string;
}

/** Most calls that are looked up for one request, the newest. */
const mostGaps = 500;

/** @returns the newest first */
export function gapsIn(turns: readonly Turn[], { dialect, returned }: Pick<ThoughtContext, 'dialect' | 'returned'>): readonly Gap[] {
  const gaps: Gap[] = [];
  const positions = new Positions(turns);
  for (let turn = turns.length - 1; turn >= 0 && gaps.length < mostGaps; turn--) {
    const { role, parts } = turns[turn]!;
    if (role !== 'model') continue;
    let from = 0;
    let ordinal = 0;
    for (const [at, part] of parts.entries()) {
      if (part.type !== 'tool-call') continue;
      const place = ordinal++;
      const first = from;
      from = at + 1;
      if (returned.callMembers.some((member) => own(part.extra, dialect)[member] !== undefined)) continue;
      const end = returned.isUnordered && !parts.slice(at + 1).some(({ type }) => type === 'tool-call') ? parts.length : at;
      if (parts.slice(first, end).some((one) => (one.type === 'thought' || one.type === 'foreign') && returned.isReturned(one))) continue;
      if (place > 0 && first === at && returned.callMembers.length === 0) continue; // of parallel calls the first has the thoughts
      let known: string | undefined;
      const position = () => (known ??= positions.of(turn, place, part.name, part.json));
      gaps.push({ turn, at, from: first, name: nameOfCall(part.id, position), ...(isUnnamed(part) ? { position: position() } : {}) });
      if (gaps.length === mostGaps) break;
    }
  }
  return gaps;
}

export function filled(turns: readonly Turn[], gaps: readonly Gap[], found: ReadonlyMap<string, KeptThoughts>): readonly Turn[] {
  if (found.size === 0) return turns;
  const byTurn = Map.groupBy(
    gaps.filter(({ name }) => found.has(name)),
    ({ turn }) => turn,
  );
  return turns.map((turn, at) => {
    const its = byTurn.get(at);
    return its ? { ...turn, parts: filledParts(turn.parts, its, found) } : turn;
  });
}

/** Thoughts take the place of those that the client returned without what the provider needs, which may be nothing but a signature of the call. */
function filledParts(parts: readonly Part[], gaps: readonly Gap[], found: ReadonlyMap<string, KeptThoughts>): readonly Part[] {
  const out: Part[] = [];
  let done = 0;
  for (const { at, from, name } of gaps) {
    const { dialect, first, last, call } = found.get(name)!;
    const between = parts.slice(from, at).filter(({ type }) => type !== 'thought');
    const part = parts[at]!;
    out.push(...parts.slice(done, from), ...first, ...between, ...last);
    out.push(part.type === 'tool-call' && call ? { ...part, extra: { ...part.extra, [dialect]: { ...call, ...own(part.extra, dialect) } } } : part);
    done = at + 1;
  }
  return [...out, ...parts.slice(done)];
}
