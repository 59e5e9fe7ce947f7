/** `npm run bench`: measures the questions and prints one table. */
import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { admission } from './admission.ts';
import { ablation } from './ablation/index.ts';
import { bombed } from './bombs.ts';
import { chat } from './chat.ts';
import { coldStart } from './cold-start.ts';
import { embeddings } from './embeddings.ts';
import { firstChunk } from './first-chunk.ts';
import { instructions } from './instructions.ts';
import { journal } from './journal.ts';
import { latency } from './latency.ts';
import { limits } from './limits.ts';
import { memory } from './memory.ts';
import { messages } from './messages.ts';
import { profile } from './profile.ts';
import type { Question, Row } from './question.ts';
import { openRig } from './rig.ts';
import { responses } from './responses.ts';
import { runs } from './runs.ts';
import { slowStreams } from './slow-streams.ts';
import { stream } from './stream.ts';
import { table } from './table.ts';
import { translated } from './translated.ts';
import { workers } from './workers.ts';

const { isCurrent } = (await import(new URL('../bin/stamp.js', import.meta.url).href)) as { isCurrent: () => boolean };

const questions: readonly Question[] = [
  chat,
  stream,
  translated,
  responses,
  messages,
  embeddings,
  latency,
  firstChunk,
  slowStreams,
  coldStart,
  memory,
  workers,
  limits,
  admission,
  journal,
  runs,
  bombed,
];
const longestMinutes = 40;

const usage = `npm run bench -- [QUESTION…] [options]

Questions: ${questions.map(({ name }) => name).join(', ')}. Default: all.

  --rounds N     rounds, in each of which every contestant has a turn (5)
  --seconds N    seconds of load per turn (3)
  --warm-up N    requests that warm each contestant up, at most (30,000; 3,000 streams)
  --who A,B      measure only these contestants: nginx, floor, portkey, dragoman
  --before DIR   measure another checkout of Dragoman too (run npm ci in it first)
  --json         print JSON instead of the table
  --without A,B  what mechanisms cost: each is switched off in turn in one warm process (A+B: together)
  --profile      profile instead of measuring: where Dragoman's CPU time goes
  --instructions count instructions instead of measuring: what a request takes whatever else the machine does
  --portkey      install Portkey outside the project first
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    'warm-up': { type: 'string' },
    who: { type: 'string' },
    before: { type: 'string' },
    without: { type: 'string' },
    json: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    instructions: { type: 'boolean', default: false },
    portkey: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const unknown = positionals.filter((name) => questions.every((question) => question.name !== name));
if (values.help || unknown.length > 0) {
  console.error(unknown.length > 0 ? `There is no question ${unknown.join(', ')}.\n\n${usage}` : usage);
  process.exit(values.help ? 0 : 2);
}
if (process.platform !== 'linux') {
  console.error('The bench runs on Linux only: it reads /proc and pins processes with taskset.');
  process.exit(1);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1)); // what was started ends with this process
setTimeout(() => process.exit(1), longestMinutes * 60_000).unref();

if (values.portkey && spawnSync('sh', [join(import.meta.dirname, 'portkey.sh')], { stdio: ['ignore', 'inherit', 'inherit'] }).status !== 0) process.exit(1);

const rig = await openRig({
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmUp: values['warm-up'] === undefined ? undefined : Number(values['warm-up']),
  before: values.before,
  who: values.who?.split(','),
}).catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
try {
  const busy = loadavg()[0]!;
  if (busy > 0.5) rig.remarks.add(`The machine was busy before the bench started (load ${busy.toFixed(2)}): trust the ratios, not the figures.`);
  if (!isCurrent())
    rig.remarks.add(
      'dist/ is not of these sources, so that Dragoman ran from them: a start and memory at rest are those of the built program after "npm run build".',
    );
  if (values.profile) await profile(rig, positionals);
  else if (values.instructions) await instructions(rig, positionals);
  else if (values.without !== undefined)
    await ablation(rig, values.without.split(','), positionals.find((one) => one === 'stream' || one === 'responses') ?? 'chat');
  else await measure();
} finally {
  await rig.close();
}

async function measure(): Promise<void> {
  const rows: Row[] = [];
  for (const question of questions) {
    if (positionals.length > 0 && !positionals.includes(question.name)) continue;
    console.error(`${question.name} …`);
    try {
      rows.push(...(await question.ask(rig)));
    } catch (error) {
      rig.remarks.add(`${question.name} could not be measured: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const remarks = [...rig.remarks];
  console.log(values.json ? JSON.stringify({ rows, remarks }, undefined, 2) : [table(rows), ...remarks.map((remark) => `- ${remark}`)].join('\n'));
}
