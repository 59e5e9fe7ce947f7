/** Time to the first chunk that the gateway adds: for 32 clients each at its own pace, and for 32 that all ask in the same moment. */
import { chatBody } from './bodies.ts';
import { atMost, stretch, type Question, type Row } from './question.ts';
import { added, waits } from './rounds.ts';

const chunks = 20;

export const firstChunk: Question = {
  name: 'first-chunk',
  ask(rig) {
    const names = rig.present(['nginx', 'floor', 'portkey', 'dragoman']);
    return rig.withContestants(names, { chunks, pause: 10_000 }, async (contestants, upstreamPort) => {
      const rows: Row[] = [];
      for (const together of [false, true]) {
        const load = { body: chatBody({ bytes: 1000, stream: true }), clients: 32, together };
        for (const one of await waits(rig, contestants, upstreamPort, load, chunks + 2)) {
          const p50 = added(one, ({ first }) => first.p50);
          const bars = one.name === 'dragoman' && !together ? [atMost('≤ 1.5 ms', p50, 1.5), stretch('≤ 0.8 ms', p50, 0.8)] : [];
          rows.push({ what: `first chunk, 32 clients ${together ? 'in one moment' : 'at once'}, added p50 ms`, who: one.name, value: p50, bars });
        }
      }
      return rows;
    });
  },
};
