/** Memory of 5,000 streams that are open at the same time, with a chunk a second each. */
import { chatBody } from './bodies.ts';
import type { Contestant } from './contestants/index.ts';
import { residentMegabytes } from './processes.ts';
import { atMost, stretch, type Question, type Row } from './question.ts';
import type { Rig } from './rig.ts';
import { complain } from './rounds.ts';

const streams = 5000;
const chunks = 20;

export const slowStreams: Question = {
  name: 'slow-streams',
  async ask(rig) {
    const rows: Row[] = [];
    for (const name of rig.present(['nginx', 'floor', 'portkey', 'dragoman']))
      rows.push(await rig.withContestants([name], { chunks, pause: 1_000_000 }, ([contestant]) => held(rig, contestant!)));
    return rows;
  },
};

/** The most memory a contestant had while it served the streams. */
async function held(rig: Rig, contestant: Contestant): Promise<Row> {
  const before = residentMegabytes(contestant.pid);
  let peak = before;
  const watching = setInterval(() => (peak = Math.max(peak, residentMegabytes(contestant.pid))), 200);
  const load = { body: chatBody({ bytes: 1000, stream: true }), clients: streams, each: 1, ramp: 8, seconds: 40 };
  const seen = await rig.clients(contestant, load).finally(() => clearInterval(watching));
  complain(rig, contestant.name, seen, chunks + 2);
  const kilobytes = ((peak - before) * 1000) / streams;
  const bars = [{ says: 'all served', held: seen.requests === streams }, atMost('≤ 500 MB', peak, 500), stretch('≤ 60 KB each', kilobytes, 60)];
  return {
    what: '5,000 slow streams, MB',
    who: contestant.name,
    value: peak,
    note: `${seen.requests} served, ${Math.round(kilobytes)} KB each`,
    bars: contestant.name === 'dragoman' ? bars : [],
  };
}
