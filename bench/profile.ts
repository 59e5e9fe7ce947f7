/**
 * Where the CPU time of a gateway goes under load, by the stacks that Linux's `perf` samples, after a warm-up.
 * `npm run bench -- --profile [chat|stream|responses|messages|embeddings] [--who floor,dragoman]`
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { chatBody, contentBody, embeddingsBody, messageBody, responseBody } from './bodies.ts';
import type { Contestant } from './contestants/index.ts';
import { cpuTime, installed } from './processes.ts';
import type { Load, Rig } from './rig.ts';
import { warmUp } from './rounds.ts';

const entries = 30;
const seconds = 8;
const samplesPerSecond = 3000;
/** Characters of a native function. */
const longestName = 100;
/** Enough for code to be compiled for good. */
const warmUpRequests = 40_000;

interface Kind {
  readonly question: string;
  readonly what: string;
  readonly load: Omit<Load, 'seconds'>;
  /** Of the OpenAI interface. Absent: chat completions. */
  readonly operation?: string;
  /** Of another interface. */
  readonly path?: string;
}

export const loads: readonly Kind[] = [
  { question: 'chat', what: 'chat 1 KB', load: { body: chatBody({ bytes: 1000 }), clients: 32 } },
  { question: 'chat', what: 'chat 20 KB', load: { body: chatBody({ bytes: 20_000 }), clients: 32 } },
  { question: 'stream', what: 'stream of 200 chunks', load: { body: chatBody({ bytes: 1000, stream: true }), clients: 32 } },
  { question: 'responses', what: 'response 1 KB, not stored', load: { body: responseBody({ store: false }), clients: 32 }, operation: 'responses' },
  { question: 'responses', what: 'response 1 KB, stored', load: { body: responseBody({}), clients: 32 }, operation: 'responses' },
  { question: 'messages', what: 'message 1 KB', load: { body: messageBody, clients: 32 }, path: '/v1/messages' },
  { question: 'messages', what: 'generateContent 1 KB', load: { body: contentBody, clients: 32 }, path: '/v1beta/models/gemini-2.5-flash:generateContent' },
  { question: 'embeddings', what: '256 embeddings', load: { body: embeddingsBody, clients: 8 }, operation: 'embeddings' },
];

/** Prints, in microseconds a request, what each JavaScript function takes with the native code and the kernel that it calls itself, and what other threads take. */
export async function profile(rig: Rig, asked: readonly string[]): Promise<void> {
  if (!installed('perf')) throw new Error('A profile needs perf (apt-get install linux-perf).');
  const names = rig.present(rig.options.who === undefined ? ['dragoman'] : ['floor', 'dragoman', 'dragoman, embedded']);
  await rig.withContestants(names, { profiled: true }, async (contestants) => {
    for (const kind of loads)
      for (const contestant of asked.length === 0 || asked.includes(kind.question) ? contestants : [])
        await show(rig, askedFor(contestant, kind), kind.what, kind.load);
    for (const { pid } of contestants) rmSync(`/tmp/perf-${pid}.map`, { force: true }); // where V8 tells perf the names of its functions
  });
}

/** The contestant at the address of this kind of request. */
export const askedFor = (contestant: Contestant, { path, operation = 'chat/completions' }: Kind): Contestant => ({
  ...contestant,
  path: path ?? contestant.path.replace('chat/completions', operation),
});

async function show(rig: Rig, contestant: Contestant, what: string, load: Omit<Load, 'seconds'>): Promise<void> {
  await warmUp(rig, contestant, load, rig.options.warmUp ?? warmUpRequests);
  const file = join(rig.folder, 'perf.data');
  const recording = spawn('perf', ['record', '-g', '-F', String(samplesPerSecond), '-p', String(contestant.pid), '-o', file, '--', 'sleep', String(seconds)], {
    stdio: 'ignore',
  });
  const before = cpuTime(contestant.pid);
  const { requests } = await rig.clients(contestant, { ...load, seconds });
  const after = cpuTime(contestant.pid);
  if (recording.exitCode === null) await once(recording, 'exit');
  const user = (after.user - before.user) / requests;
  const system = (after.system - before.system) / requests;
  console.log(`\n${what}, ${contestant.name}: ${requests} requests, ${user.toFixed(1)} µs user + ${system.toFixed(1)} µs system each\n`);

  const { samples, threads, functions } = await read(file);
  const each = (count: number) => ((count / samples) * (user + system)).toFixed(2);
  for (const [name, count] of mostFirst(threads).slice(0, 4)) console.log(`${each(count).padStart(9)} µs  thread ${name}`);
  console.log();
  for (const [name, { all, callees }] of mostFirst(functions, ({ all }) => all).slice(0, entries)) {
    const most = mostFirst(callees).slice(0, 3);
    console.log(`${each(all).padStart(9)} µs  ${name}${most.map(([callee, count]) => `\n${' '.repeat(14)}${each(count)} ${callee}`).join('')}`);
  }
}

interface Spent {
  all: number;
  /** By what ran at the end of the stack. */
  readonly callees: Map<string, number>;
}

/** Counts the samples of a recording: by thread, and those of the main one by the innermost JavaScript function of their stack. */
async function read(file: string) {
  const script = spawn('perf', ['script', '-i', file, '-F', 'comm,ip,sym,dso'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const threads = new Map<string, number>();
  const functions = new Map<string, Spent>();
  let samples = 0;
  let thread = '';
  let last: string | undefined;
  let own: string | undefined;
  const take = () => {
    if (thread === '') return;
    samples++;
    add(threads, thread);
    if (isMain(thread)) {
      const name = own ?? '(no JavaScript)';
      const spent = functions.get(name) ?? { all: 0, callees: new Map<string, number>() };
      functions.set(name, spent);
      spent.all++;
      add(spent.callees, last === own ? 'itself' : (last ?? '?'));
    }
    thread = '';
  };
  for await (const line of createInterface({ input: script.stdout })) {
    if (line === '') take();
    else if (line.startsWith('\t')) {
      const [, symbol = '', object = ''] = /^\s+[0-9a-f]+ (.*) \(([^()]*)\)$/.exec(line) ?? [];
      const name = functionOf(symbol);
      last ??= name ?? (object.includes('kernel') ? `kernel: ${symbol}` : symbol.slice(0, longestName));
      own ??= name;
    } else {
      thread = line.trim();
      last = own = undefined;
    }
  }
  take();
  return { samples, threads, functions };
}

const isMain = (thread: string) => thread === 'node' || thread.includes('MainThread');

/** The name of a JavaScript function, whichever of V8's compilers made it; `undefined` for other code. */
export function functionOf(symbol: string): string | undefined {
  const [, name, place = ''] = /^JS:[*+~^']*(\S*) ?(.*)$/.exec(symbol) ?? [];
  if (name === undefined) return undefined;
  const path = place.replace(/^file:\/\//, '');
  const short = path.startsWith('/') ? relative(join(import.meta.dirname, '..'), path) : path;
  return `${name || '(anonymous)'}  ${short.replace('node_modules/', '')}`;
}

const add = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);

export const mostFirst = <Value>(values: ReadonlyMap<string, Value>, of = (value: Value) => Number(value)) =>
  Array.from(values).toSorted(([, a], [, b]) => of(b) - of(a));
