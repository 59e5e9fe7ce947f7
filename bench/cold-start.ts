/** Time from the start of the command to the first answer, on a data folder used before. Nothing is pinned, as in everyday use. */
import { open } from './contestants/index.ts';
import { atMost, stretch, type Question, type Row } from './question.ts';
import { median } from './rounds.ts';

export const coldStart: Question = {
  name: 'cold-start',
  ask(rig) {
    return rig.withUpstream({}, async (upstreamPort) => {
      const rows: Row[] = [];
      for (const name of rig.present(['dragoman', 'dragoman, embedded'])) {
        const databaseUrl = name === 'dragoman' ? await rig.postgres?.database() : undefined;
        const place = {
          folder: rig.place(),
          upstreamPort,
          postgres: rig.postgres,
          before: rig.options.before,
          unpinned: true,
          ...(databaseUrl && { databaseUrl }),
        };
        const seconds: number[] = [];
        for (let starts = 0; starts <= rig.options.rounds; starts++) {
          const begun = performance.now();
          const contestant = await open(name, place);
          seconds.push((performance.now() - begun) / 1000);
          await contestant.stop();
        }
        const [first = NaN, ...later] = seconds;
        const again = median(later);
        const bars = name === 'dragoman, embedded' ? [atMost('≤ 1.5 s', again, 1.5), stretch('≤ 0.8 s', again, 0.8)] : [];
        rows.push({ what: 'second start to first answer, s', who: name, value: again, note: `first start ${first.toFixed(2)}`, bars });
      }
      return rows;
    });
  },
};
