/** Latency that the gateway adds: for a single client, and for 16 that together ask 500 times a second. */
import { chatBody } from './bodies.ts';
import { atMost, stretch, type Bar, type Question, type Row } from './question.ts';
import type { Load } from './rig.ts';
import { added, waits } from './rounds.ts';

interface Bars {
  readonly p50: readonly Bar[];
  readonly p99: readonly Bar[];
}

const kinds: readonly { who: string; load: Pick<Load, 'clients' | 'rate'>; bars: (p50: number, p99: number) => Bars }[] = [
  {
    who: 'one client',
    load: { clients: 1 },
    bars: (p50, p99) => ({ p50: [atMost('≤ 0.35 ms', p50, 0.35), stretch('≤ 0.25 ms', p50, 0.25)], p99: [stretch('≤ 1 ms', p99, 1)] }),
  },
  { who: '16 clients, 500 a second', load: { clients: 16, rate: 500 }, bars: (_, p99) => ({ p50: [], p99: [atMost('≤ 1.5 ms', p99, 1.5)] }) },
];

export const latency: Question = {
  name: 'latency',
  ask(rig) {
    const names = rig.present(['nginx', 'floor', 'portkey', 'dragoman', 'dragoman, embedded']);
    return rig.withContestants(names, {}, async (contestants, upstreamPort) => {
      const rows: Row[] = [];
      for (const { who, load, bars } of kinds) {
        for (const one of await waits(rig, contestants, upstreamPort, { body: chatBody({ bytes: 1000 }), ...load })) {
          const p50 = added(one, ({ whole }) => whole.p50);
          const p99 = added(one, ({ whole }) => whole.p99);
          const held = one.name === 'dragoman' ? bars(p50, p99) : { p50: [], p99: [] };
          rows.push({ what: `added latency p50, ${who}, ms`, who: one.name, value: p50, bars: held.p50 });
          rows.push({ what: `added latency p99, ${who}, ms`, who: one.name, value: p99, bars: held.p99 });
        }
      }
      return rows;
    });
  },
};
