/** CPU time of a chat completion, not streamed, with OpenAI's dialect on both sides. */
import { chatBody } from './bodies.ts';
import { costRows, type CostBars } from './cost-rows.ts';
import { atMost, stretch, type Question, type Row } from './question.ts';
import { costs } from './rounds.ts';

const kinds: readonly { what: string; bytes: number; bars: CostBars }[] = [
  {
    what: 'chat 1 KB, CPU µs',
    bytes: 1000,
    bars: ({ floor, nginx, portkey }) => [
      atMost('≤ 1.6 × floor', floor, 1.6),
      atMost('≤ 5 × nginx', nginx, 5),
      atMost('≥ 8 × less than Portkey', portkey, 1 / 8),
      stretch('the floor', floor, 1),
    ],
  },
  {
    what: 'chat 20 KB, CPU µs',
    bytes: 20_000,
    bars: ({ floor, portkey }) => [atMost('≤ 1.3 × floor', floor, 1.3), atMost('≥ 5 × less than Portkey', portkey, 1 / 5), stretch('the floor', floor, 1)],
  },
];

export const chat: Question = {
  name: 'chat',
  ask(rig) {
    const names = rig.present(['nginx', 'floor', 'portkey', 'dragoman', 'dragoman, embedded']);
    return rig.withContestants(names, {}, async (contestants) => {
      const rows: Row[] = [];
      for (const { what, bytes, bars } of kinds) rows.push(...costRows(what, await costs(rig, contestants, { body: chatBody({ bytes }), clients: 32 }), bars));
      return rows;
    });
  },
};
