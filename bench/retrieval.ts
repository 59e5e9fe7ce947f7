/**
 * `npm run bench:retrieval`: how good and how fast the search in datasets is. Cranfield, and documents and questions of our own, give nDCG@10, MRR and recall@50 of
 * each channel and fused, on an embedded database; synthetic passages give latencies, on PostgreSQL and embedded. `--votes` asks a running server once more what its
 * users voted against, with the key of an administrator in DRAGOMAN_KEY.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { postgresPrograms, startPostgres } from './postgres.ts';
import { cores } from './processes.ts';
import { cranfield } from './retrieval/cranfield.ts';
import { latency } from './retrieval/latency.ts';
import { own } from './retrieval/own.ts';
import { printVotes, votesAgain } from './retrieval/votes.ts';

const { values } = parseArgs({
  options: {
    passages: { type: 'string', default: '100000' },
    embedded: { type: 'string', default: '10000' },
    lexical: { type: 'boolean', default: false },
    only: { type: 'string' },
    votes: { type: 'boolean', default: false },
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    programs: { type: 'string' }, // of another PostgreSQL, such as one with pgvector
    buffers: { type: 'string', default: '128MB' }, // its shared_buffers
  },
});

if (values.votes) {
  printVotes(await votesAgain(values.url, process.env['DRAGOMAN_KEY'] ?? ''));
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), 'dragoman-retrieval-'));
const runs = (part: string) => values.only === undefined || values.only === part;

async function latencies(): Promise<void> {
  const programs = values.programs ?? postgresPrograms();
  if (programs) {
    const server = await startPostgres(programs, folder, { core: cores.any, settings: [`shared_buffers=${values.buffers}`] });
    await latency(values.programs ?? 'PostgreSQL', { folder, count: Number(values.passages), databaseUrl: await server.database(), databasePid: server.pid });
    await server.stop();
  } else console.log('PostgreSQL is not installed here: it is not measured.');
  await latency('embedded', { folder, count: Number(values.embedded) });
}

try {
  if (runs('own')) await own(folder);
  if (runs('cranfield')) await cranfield(folder, values);
  if (runs('latency')) await latencies();
  console.log(
    `load average ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
