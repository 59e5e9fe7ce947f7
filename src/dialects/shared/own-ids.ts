import type { Turn } from '#core/conversation';
import { DistinctIds } from './distinct-ids.ts';

interface Place {
  readonly turn: number;
  readonly at: number;
}

/** Calls with one id, none of which had its result when the last one was made, and the results behind them. */
interface Run {
  readonly id: string;
  readonly calls: Place[];
  readonly results: Place[];
}

/** The turns with an id of its own for each call of which several wait for results of one id: the results are theirs in order. The same turns where none do. */
export function withOwnIds(turns: readonly Turn[]): readonly Turn[] {
  const { runs, ids } = runsIn(turns);
  if (runs.length === 0) return turns;
  const renamed = turns.map(({ parts }) => [...parts]);
  const rename = ({ turn, at }: Place, id: string) => {
    renamed[turn]![at] = { ...renamed[turn]![at]!, id } as Turn['parts'][number];
  };
  const distinct = new DistinctIds(ids);
  for (const { id, calls, results } of runs) {
    const own = calls.map((_, at) => (at === 0 ? id : distinct.next(id)));
    for (const [at, call] of calls.entries()) rename(call, own[at]!);
    const from = firstAnswered(calls, results.length);
    for (const [at, result] of results.entries()) rename(result, own[Math.min(from + at, own.length - 1)]!);
  }
  return turns.map((turn, at) => ({ ...turn, parts: renamed[at]! }));
}

/** Where there are fewer results than calls, those of the last turn have them. */
function firstAnswered(calls: readonly Place[], results: number): number {
  if (results >= calls.length) return 0;
  const last = calls.findIndex(({ turn }) => turn === calls.at(-1)!.turn);
  return Math.min(last, calls.length - results);
}

/** Those with several calls, and all ids. */
function runsIn(turns: readonly Turn[]): { readonly runs: readonly Run[]; readonly ids: Iterable<string> } {
  const open = new Map<string, Run>();
  const runs = new Set<Run>();
  for (const [turn, { parts }] of turns.entries()) {
    for (const [at, part] of parts.entries()) {
      if (part.type !== 'tool-call' && part.type !== 'tool-result') continue;
      const known = open.get(part.id);
      if (part.type === 'tool-result') known?.results.push({ turn, at });
      else if (!known || known.results.length > 0) open.set(part.id, { id: part.id, calls: [{ turn, at }], results: [] });
      else {
        known.calls.push({ turn, at });
        runs.add(known);
      }
    }
  }
  return { runs: [...runs], ids: open.keys() };
}
