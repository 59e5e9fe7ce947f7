import type { Models } from '#gateway/rules/resolved';
import type { CallJournal } from '#ledger/journal/journal';
import type { Metrics } from '#telemetry/metrics';

/** A journal whose settled calls are counted in the metrics. */
export function counted(journal: CallJournal, metrics: Pick<Metrics, 'settled'>, models: () => Pick<Models, 'find' | 'list'>): CallJournal {
  let listed: readonly unknown[] = [];
  let names: ReadonlySet<string> = new Set();
  const nameOf = (written: string): string => {
    const list = models().list();
    if (list !== listed) {
      listed = list;
      names = new Set(list.map(({ name }) => name));
    }
    if (names.has(written)) return written;
    const name = models().find(written)?.name;
    return name !== undefined && names.has(name) ? name : 'other'; // a name that only "*" takes is the client's
  };
  return {
    began: (call) => journal.began(call),
    spoke: (requestId, step, outputTokens) => journal.spoke(requestId, step, outputTokens),
    settled(row) {
      metrics.settled(row, nameOf(row.model));
      return journal.settled(row);
    },
    get trouble() {
      return journal.trouble;
    },
  };
}
