/** The clients of `load.c` for machines without a C compiler: the same options, the same line of JSON, ten times the cost. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const option = { type: 'string' } as const;
const { values } = parseArgs({
  options: {
    port: option,
    path: option,
    body: option,
    headers: option,
    clients: option,
    seconds: option,
    each: option,
    ramp: option,
    together: option,
    rate: option,
  },
});
const body = readFileSync(values.body ?? '/dev/null');
const headerLines = values.headers === undefined ? [] : readFileSync(values.headers, 'utf8').split('\r\n').filter(Boolean);
const headers = Object.fromEntries(headerLines.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]));
const clients = Number(values.clients ?? 1);
const rate = Number(values.rate ?? 0);
const each = Number(values.each ?? 0) || Infinity;
const agent = new Agent({ keepAlive: true, maxSockets: clients });
const firsts: number[] = [];
const wholes: number[] = [];
let failed = 0;
let lines = 0;

const begun = performance.now();
const until = begun + Number(values.seconds ?? 3) * 1000;
if (values.together === '1')
  for (let sent = 0; sent < each && performance.now() < until; sent++) {
    await Promise.all(Array.from({ length: clients }, ask));
    await setTimeout(20);
  }
else if (rate > 0) {
  const open = new Set<Promise<void>>();
  for (let due = 0; performance.now() < until; await setTimeout(1))
    for (; due < ((performance.now() - begun) / 1000) * rate && open.size < clients; due++) {
      const asking = ask().finally(() => open.delete(asking));
      open.add(asking);
    }
  await Promise.all(open);
} else
  await Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      await setTimeout((index * Number(values.ramp ?? 0) * 1000) / clients);
      for (let sent = 0; sent < each && performance.now() < until; sent++) await ask();
    }),
  );
const times = (all: number[]) => {
  const sorted = all.toSorted((a, b) => a - b);
  return { p50: sorted[Math.floor((sorted.length - 1) * 0.5)] ?? 0, p99: sorted[Math.floor((sorted.length - 1) * 0.99)] ?? 0 };
};
console.log(
  JSON.stringify({
    requests: wholes.length,
    failed,
    unfinished: 0,
    lines,
    seconds: (performance.now() - begun) / 1000,
    first: times(firsts),
    whole: times(wholes),
  }),
);
agent.destroy();

async function ask(): Promise<void> {
  const asked = performance.now();
  let first = 0;
  const good = await new Promise<boolean>((resolve) => {
    const asking = request(
      {
        agent,
        host: '127.0.0.1',
        port: values.port,
        path: values.path ?? '/',
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
      },
      (response) => {
        response.on('data', (bytes: Buffer) => {
          first ||= performance.now();
          lines += bytes.toString('latin1').split('data: ').length - 1;
        });
        response.on('end', () => resolve(response.statusCode === 200));
        response.on('error', () => resolve(false));
      },
    );
    asking.on('error', () => resolve(false));
    asking.end(body);
  });
  if (!good) return void failed++;
  const ended = performance.now();
  firsts.push((first || ended) - asked);
  wholes.push(ended - asked);
}
