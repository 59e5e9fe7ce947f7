/** How long 32 clients that ask at the same moment wait for their first chunk, beyond what the provider itself takes. */
import { chatBody } from './bodies.ts';
import { atMost, stretch, type Question } from './question.ts';
import { added, waits } from './rounds.ts';

const chunks = 20;

export const firstChunk: Question = {
  name: 'first-chunk',
  ask(rig) {
    const names = rig.present(['nginx', 'floor', 'portkey', 'dragoman']);
    return rig.withDoors(names, { chunks, pause: 10_000 }, async (doors, upstreamPort) => {
      const load = { body: chatBody({ bytes: 1000, stream: true }), clients: 32, together: true };
      const found = await waits(rig, doors, upstreamPort, load, chunks + 2);
      return found.map((one) => {
        const p50 = added(one, ({ first }) => first.p50);
        const bars = one.name === 'dragoman' ? [atMost('≤ 1.5 ms', p50, 1.5), stretch('≤ 0.8 ms', p50, 0.8)] : [];
        return { what: 'first chunk, 32 clients at once, added p50 ms', who: one.name, value: p50, bars };
      });
    });
  },
};
