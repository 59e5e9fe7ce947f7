/** CPU time of 256 embeddings of 1,536 floats (4.7 MB), passed through unparsed. */
import { embeddingsBody } from './bodies.ts';
import { costRows } from './cost-rows.ts';
import { atMost, type Question } from './question.ts';
import { costs } from './rounds.ts';

export const embeddings: Question = {
  name: 'embeddings',
  ask(rig) {
    const names = rig.present(['nginx', 'dragoman', 'dragoman, embedded']);
    return rig.withContestants(names, {}, async (contestants) => {
      const elsewhere = contestants.map((contestant) => ({ ...contestant, path: contestant.path.replace('chat/completions', 'embeddings') }));
      return costRows('256 embeddings, CPU µs', await costs(rig, elsewhere, { body: embeddingsBody, clients: 8, warmUp: 500 }), ({ nginx }) => [
        atMost('≤ 2 × nginx', nginx, 2),
      ]);
    });
  },
};
