/** Latency that the gateway adds for a single client. */
import { chatBody } from './bodies.ts';
import { atMost, stretch, type Question } from './question.ts';
import { added, waits } from './rounds.ts';

export const latency: Question = {
  name: 'latency',
  ask(rig) {
    const names = rig.present(['nginx', 'floor', 'portkey', 'dragoman', 'dragoman, embedded']);
    return rig.withContestants(names, {}, async (contestants, upstreamPort) => {
      const found = await waits(rig, contestants, upstreamPort, { body: chatBody({ bytes: 1000 }), clients: 1 });
      return found.flatMap((one) => {
        const p50 = added(one, ({ whole }) => whole.p50);
        const p99 = added(one, ({ whole }) => whole.p99);
        const bars = one.name === 'dragoman' ? [atMost('≤ 0.35 ms', p50, 0.35), stretch('≤ 0.25 ms', p50, 0.25)] : [];
        return [
          { what: 'added latency p50, one client, ms', who: one.name, value: p50, bars },
          { what: 'added latency p99, one client, ms', who: one.name, value: p99 },
        ];
      });
    });
  },
};
