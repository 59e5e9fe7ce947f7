/** CPU time of a stream of 200 chunks, with OpenAI's dialect on both sides. */
import { chatBody } from './bodies.ts';
import { costRows } from './cost-rows.ts';
import { atMost, stretch, type Question } from './question.ts';
import { costs } from './rounds.ts';

const chunks = 200;

export const stream: Question = {
  name: 'stream',
  ask(rig) {
    const names = rig.present(['nginx', 'floor', 'portkey', 'dragoman', 'dragoman, embedded']);
    return rig.withContestants(names, { chunks }, async (contestants) => {
      const found = await costs(rig, contestants, { body: chatBody({ bytes: 1000, stream: true }), clients: 32, lines: chunks + 2, warmUp: 3000 });
      return costRows('stream of 200 chunks, CPU µs', found, ({ floor }) => [atMost('≤ 1.6 × floor', floor, 1.6), stretch('the floor', floor, 1)]);
    });
  },
};
