/** Memory of an idle gateway that has answered once. */
import { setTimeout } from 'node:timers/promises';
import { open, type Name } from './contestants/index.ts';
import { residentMegabytes } from './processes.ts';
import { atMost, type Bar, type Question, type Row } from './question.ts';

const restMilliseconds = 8000;

export const memory: Question = {
  name: 'memory',
  ask(rig) {
    return rig.withUpstream({}, async (upstreamPort) => {
      const rows: Row[] = [];
      for (const name of rig.present(['nginx', 'floor', 'portkey', 'dragoman', 'dragoman, embedded'])) {
        const place = { folder: rig.place(), upstreamPort, postgres: rig.postgres, before: rig.options.before };
        for (const start of name === 'dragoman, embedded' ? ['first start', 'second start'] : [undefined]) {
          const contestant = await open(name, place);
          await setTimeout(restMilliseconds);
          const value = residentMegabytes(contestant.pid);
          const launcher = contestant.launcherPid === undefined ? 0 : residentMegabytes(contestant.launcherPid) - value; // with all that it has started
          await contestant.stop();
          rows.push({ what: 'idle memory, MB', who: name, value, ...(start && { note: start }), bars: barsOf(name, value) });
          if (launcher > 0 && !start) rows.push({ what: 'idle memory of its launcher, MB', who: name, value: launcher });
        }
      }
      rows.push(...databaseRow(rows));
      return rows;
    });
  },
};

/** What the embedded database takes: the process with it less the one that has PostgreSQL beside it. */
function databaseRow(rows: readonly Row[]): Row[] {
  const of = (who: Name) => rows.findLast((row) => row.who === who && row.what === 'idle memory, MB')?.value;
  const [embedded, without] = [of('dragoman, embedded'), of('dragoman')];
  return embedded && without ? [{ what: 'idle memory of the embedded database, MB', who: 'dragoman, embedded', value: embedded - without }] : [];
}

function barsOf(name: Name, megabytes: number): readonly Bar[] {
  if (name === 'dragoman') return [atMost('≤ 130 MB', megabytes, 130)];
  if (name === 'dragoman, embedded') return [atMost('≤ 450 MB', megabytes, 450)];
  return [];
}
