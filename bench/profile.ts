/** Where Dragoman's time goes: V8's sampling profiler under load, after a warm-up. `npm run bench -- --profile [chat|stream|responses|embeddings]` */
import { basename, relative } from 'node:path';
import { chatBody, embeddingsBody, responseBody } from './bodies.ts';
import type { Contestant } from './contestants/index.ts';
import { cpuTime } from './processes.ts';
import type { Load, Rig } from './rig.ts';

const entries = 25;
const seconds = 8;
const warmUpSeconds = 5;
const samplingMicroseconds = 250;
const loads: readonly { question: string; what: string; load: Omit<Load, 'seconds'>; operation?: string }[] = [
  { question: 'chat', what: 'chat 1 KB', load: { body: chatBody({ bytes: 1000 }), clients: 32 } },
  { question: 'chat', what: 'chat 20 KB', load: { body: chatBody({ bytes: 20_000 }), clients: 32 } },
  { question: 'stream', what: 'stream of 200 chunks', load: { body: chatBody({ bytes: 1000, stream: true }), clients: 32 } },
  { question: 'responses', what: 'response 1 KB, not stored', load: { body: responseBody({ store: false }), clients: 32 }, operation: 'responses' },
  { question: 'responses', what: 'response 1 KB, stored', load: { body: responseBody({}), clients: 32 }, operation: 'responses' },
  { question: 'embeddings', what: '256 embeddings', load: { body: embeddingsBody, clients: 8 }, operation: 'embeddings' },
];

/** Prints the functions with the most self time, in microseconds per request. Main thread only; the profiler itself costs a few per cent. */
export async function profile(rig: Rig, asked: readonly string[]): Promise<void> {
  const names = rig.present(rig.options.who === undefined ? ['dragoman'] : ['floor', 'dragoman', 'dragoman, embedded']);
  await rig.withContestants(names, { inspected: true }, async (contestants) => {
    for (const { question, what, load, operation = 'chat/completions' } of loads)
      for (const contestant of asked.length === 0 || asked.includes(question) ? contestants : [])
        await show(rig, { ...contestant, path: contestant.path.replace('chat/completions', operation) }, what, load);
  });
}

async function show(rig: Rig, contestant: Contestant, what: string, load: Omit<Load, 'seconds'>): Promise<void> {
  await rig.clients(contestant, { ...load, seconds: warmUpSeconds });
  const inspector = await connect(contestant.inspector!);
  await inspector.ask('Profiler.enable');
  await inspector.ask('Profiler.setSamplingInterval', { interval: samplingMicroseconds });
  await inspector.ask('Profiler.start');
  const before = cpuTime(contestant.pid);
  const { requests } = await rig.clients(contestant, { ...load, seconds });
  const after = cpuTime(contestant.pid);
  const { profile } = (await inspector.ask('Profiler.stop')) as { profile: Profile };
  inspector.close();
  const each = (microseconds: number) => (microseconds / requests).toFixed(2);
  console.log(
    `\n${what}, ${contestant.name}: ${requests} requests, ${each(after.user - before.user)} µs user + ${each(after.system - before.system)} µs system each\n`,
  );
  for (const { place, microseconds } of ownTimes(profile).slice(0, entries)) console.log(`${each(microseconds).padStart(9)} µs  ${place}`);
}

/** Profiler.Profile of Chrome's DevTools protocol, as far as it is read here. */
interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number } }[];
  readonly samples: readonly number[];
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[];
}

/** Functions by self time, most first, without idle time. */
function ownTimes({ nodes, samples, timeDeltas }: Profile): { place: string; microseconds: number }[] {
  const places = new Map(nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  const times = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    const place = places.get(id)!;
    times.set(place, (times.get(place) ?? 0) + (timeDeltas[index + 1] ?? 0));
  }
  times.delete('(idle)');
  return Array.from(times, ([place, microseconds]) => ({ place, microseconds })).toSorted((a, b) => b.microseconds - a.microseconds);
}

function placeOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  const name = functionName || '(anonymous)';
  if (url === '') return name;
  const file = url.startsWith('file:') ? relative(`${import.meta.dirname}/..`, new URL(url).pathname) : url;
  const short = file.includes('node_modules/') ? file.slice(file.lastIndexOf('node_modules/') + 13) : file.startsWith('..') ? basename(file) : file;
  return `${name}  ${short}:${lineNumber + 1}`;
}

/** Connects to Node's inspector. */
async function connect(port: number) {
  const [{ webSocketDebuggerUrl }] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as [{ webSocketDebuggerUrl: string }];
  const socket = new WebSocket(webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  let asked = 0;
  return {
    ask: (method: string, params: object = {}) =>
      new Promise<unknown>((resolve) => {
        const id = ++asked;
        const onMessage = ({ data }: MessageEvent) => {
          const answer = JSON.parse(String(data)) as { id?: number; result?: unknown };
          if (answer.id !== id) return;
          socket.removeEventListener('message', onMessage);
          resolve(answer.result);
        };
        socket.addEventListener('message', onMessage);
        socket.send(JSON.stringify({ id, method, params }));
      }),
    close: () => socket.close(),
  };
}
