/** CPU time of a response with the Responses dialect on both sides: stored, which is the default, and not stored. */
import { responseBody } from './bodies.ts';
import { costRows, type CostBars } from './cost-rows.ts';
import { atMost, stretch, type Question, type Row } from './question.ts';
import { costs } from './rounds.ts';

const chunks = 200;

const kinds: readonly { what: string; body: string; lines?: number; bars: CostBars }[] = [
  {
    what: 'response 1 KB, not stored, CPU µs',
    body: responseBody({ store: false }),
    bars: ({ floor }) => [atMost('≤ 1.65 × floor', floor, 1.65), stretch('the floor', floor, 1)],
  },
  { what: 'response 1 KB, stored, CPU µs', body: responseBody({}), bars: ({ floor }) => [atMost('≤ 3 × floor', floor, 3)] },
  { what: 'response as a stream of 200 chunks, not stored, CPU µs', body: responseBody({ stream: true, store: false }), lines: chunks + 2, bars: () => [] },
];

export const responses: Question = {
  name: 'responses',
  ask(rig) {
    return rig.withContestants(rig.present(['nginx', 'floor', 'dragoman', 'dragoman, embedded']), { chunks }, async (contestants) => {
      const elsewhere = contestants.map((contestant) => ({ ...contestant, path: contestant.path.replace('chat/completions', 'responses') }));
      const rows: Row[] = [];
      for (const { what, body, lines, bars } of kinds)
        rows.push(...costRows(what, await costs(rig, elsewhere, { body, clients: 32, lines, ...(lines ? { warmUp: 3000 } : {}) }), bars));
      return rows;
    });
  },
};
