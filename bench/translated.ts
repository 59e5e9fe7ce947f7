/** CPU time of a stream of 200 chunks between dialects, and with Google's dialect on both sides. */
import { chatBody, contentBody } from './bodies.ts';
import type { Contestant } from './contestants/index.ts';
import { costRows } from './cost-rows.ts';
import { atMost, stretch, type Bar, type Question, type Row } from './question.ts';
import { costs, median, type Cost } from './rounds.ts';

const chunks = 200;
const content = (model: string) => `/server/gencompat/v1beta/models/${model}:streamGenerateContent?alt=sse`;

const kinds: readonly { what: string; path?: string; body: string; lines: number; bars?: (microseconds: number) => readonly Bar[] }[] = [
  {
    what: 'stream of 200 chunks, OpenAI face on a Vertex provider, CPU µs',
    body: chatBody({ bytes: 1000, stream: true, model: 'gemini-2.5-flash' }),
    lines: chunks + 2,
    bars: (microseconds) => [atMost('≤ 1,500 µs', microseconds, 1500), stretch('≤ 900 µs', microseconds, 900)],
  },
  { what: 'stream of 200 chunks, Gemini face on a Vertex provider, CPU µs', path: content('gemini-2.5-flash'), body: contentBody, lines: chunks + 1 },
  { what: 'stream of 200 chunks, Gemini face on an OpenAI provider, CPU µs', path: content('gpt-4o-mini'), body: contentBody, lines: chunks + 1 },
];

export const translated: Question = {
  name: 'translated',
  ask(rig) {
    return rig.withContestants(rig.present(['dragoman', 'dragoman, embedded']), { chunks }, async (contestants) => {
      const rows: Row[] = [];
      for (const { what, path, body, lines, bars } of kinds) {
        const found = await costs(
          rig,
          contestants.map((contestant): Contestant => ({ ...contestant, path: path ?? contestant.path })),
          { body, clients: 32, lines, warmUp: 3000 },
        );
        rows.push(...costRows(what, found, () => bars?.(median(pickCpu(found))) ?? []));
      }
      return rows;
    });
  },
};

/** The bars are for PostgreSQL. */
const pickCpu = (found: readonly Cost[]) => found.find(({ name }) => name === 'dragoman')?.cpu ?? [];
