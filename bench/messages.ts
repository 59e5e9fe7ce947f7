/** CPU time of an answer that is not streamed, with Anthropic's messages on both sides, and with Google's dialect on both. */
import { contentBody, messageBody } from './bodies.ts';
import { costRows, type CostBars } from './cost-rows.ts';
import { atMost, stretch, type Question, type Row } from './question.ts';
import { costs } from './rounds.ts';

const bars: CostBars = ({ floor }) => [atMost('≤ 1.8 × floor', floor, 1.8), stretch('1.5 × floor', floor, 1.5)];

const kinds: readonly { what: string; path: string; body: string }[] = [
  { what: 'message 1 KB, CPU µs', path: '/v1/messages', body: messageBody },
  { what: 'generateContent 1 KB on a Vertex provider, CPU µs', path: '/v1beta/models/gemini-2.5-flash:generateContent', body: contentBody },
];

export const messages: Question = {
  name: 'messages',
  ask(rig) {
    return rig.withContestants(rig.present(['nginx', 'floor', 'dragoman', 'dragoman, embedded']), {}, async (contestants) => {
      const rows: Row[] = [];
      for (const { what, path, body } of kinds) {
        const there = contestants.map((contestant) => ({ ...contestant, path }));
        rows.push(...costRows(what, await costs(rig, there, { body, clients: 32 }), bars));
      }
      return rows;
    });
  },
};
