/**
 * How many instructions of its own code a request takes, and where, counted by Valgrind in a warm process: the only figure that other work on the machine does
 * not change. The kernel's are not among them, and a mispredicted branch costs nothing here. Cache misses are simulated: lines of 64 bytes that are fetched into a
 * core's own second-level cache of 512 KB. On a machine whose third level is full of what its neighbours do, each takes 200 ns.
 * `npm run bench -- --instructions [chat|stream|responses|messages|embeddings] [--who floor,dragoman] [--before DIR]`
 */
import { spawnSync } from 'node:child_process';
import { createReadStream, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Contestant } from './contestants/index.ts';
import { installed } from './processes.ts';
import { askedFor, functionOf, loads, mostFirst } from './profile.ts';
import type { Load, Rig } from './rig.ts';

const entries = 50;
/** That are counted. The compilers and the collector run now and then, for many requests at once: of fewer, their part would be chance. */
const countedRequests = 3000;
/** At most. */
const [warmUpSeconds, countingSeconds] = [240, 240];
/** Native functions that compile others. */
const compiler = /compiler|maglev|turboshaft|baseline::|interpreter::|Sparkplug/;

/** Prints, in thousands of instructions a request, the sum and what each JavaScript function takes with the native code that it calls. */
export async function instructions(rig: Rig, asked: readonly string[]): Promise<void> {
  if (!installed('valgrind')) throw new Error('Counting instructions needs Valgrind (apt-get install valgrind).');
  const names = rig.present(rig.options.who === undefined ? ['dragoman'] : ['floor', 'dragoman', 'dragoman, embedded']);
  await rig.withContestants(names, { profiled: true, counted: true }, async (contestants) => {
    for (const kind of loads)
      for (const contestant of asked.length === 0 || asked.includes(kind.question) ? contestants : [])
        await show(rig, askedFor(contestant, kind), kind.what, kind.load);
    for (const { pid } of contestants) rmSync(`/tmp/perf-${pid}.map`, { force: true });
  });
}

async function show(rig: Rig, contestant: Contestant, what: string, load: Omit<Load, 'seconds'>): Promise<void> {
  const { pid, folder } = contestant;
  await rig.clients(contestant, { ...load, seconds: warmUpSeconds, each: Math.ceil((rig.options.warmUp ?? 20_000) / load.clients) });
  tell(pid, '-i', 'on');
  const { requests } = await rig.clients(contestant, { ...load, seconds: countingSeconds, each: Math.ceil(countedRequests / load.clients) });
  tell(pid, '-d');
  tell(pid, '-i', 'off');
  const counts = await countsIn(join(folder, `callgrind.out.${pid}.${dumpsOf(pid)}`), functionsIn(`/tmp/perf-${pid}.map`));
  const each = (count: number) => (count / requests / 1000).toFixed(2).padStart(9);
  const all = sum(counts.own.values());
  const compiling = sum(Array.from(counts.own, ([name, count]) => (compiler.test(name) ? count : 0)));
  const [code, read, written] = counts.misses.map((count) => Math.round(count / requests)) as [number, number, number];
  console.log(
    `\n${what}, ${contestant.name}: ${requests} requests, ${each(all - compiling).trim()} thousand instructions each, besides ${each(compiling).trim()} of compiling`,
  );
  console.log(`Lines fetched into the second-level cache: ${code} of code, ${read} of data read, ${written} of data written\n`);
  for (const [name, count] of mostFirst(byFunction(counts)).slice(0, entries)) console.log(`${each(count)}  ${name}`);
}

/** Callgrind numbers what it writes. */
const dumps = new Map<number, number>();

function dumpsOf(pid: number): number {
  const count = (dumps.get(pid) ?? 0) + 1;
  dumps.set(pid, count);
  return count;
}

const tell = (pid: number, ...words: readonly string[]) => spawnSync('callgrind_control', [...words, String(pid)], { stdio: 'ignore' });

/** The names of JavaScript functions by the addresses of their code, as V8 writes them for perf. */
function functionsIn(file: string): (address: number) => string | undefined {
  const places = readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [start = '', size = '', ...name] = line.split(' ');
      return size === '' ? [] : [{ start: Number.parseInt(start, 16), size: Number.parseInt(size, 16), name: name.join(' ') }];
    })
    .toSorted((a, b) => a.start - b.start);
  return (address) => {
    let low = 0;
    for (let high = places.length; low < high;) {
      const middle = (low + high) >> 1;
      if (places[middle]!.start <= address) low = middle + 1;
      else high = middle;
    }
    const found = places[low - 1];
    return found && address < found.start + found.size + codeHead ? found.name : undefined;
  };
}

/** Bytes before the first instruction of a piece of code. */
const codeHead = 64;

interface Counts {
  /** Instructions of each function alone. */
  readonly own: Map<string, number>;
  /** Lines fetched into the second-level cache, without those of the compilers: of code, and of data that is read and written. */
  readonly misses: readonly [number, number, number];
  /** Instructions of each function that another called, with all that it called in turn. */
  readonly calls: Map<string, Map<string, number>>;
}

/** Reads what Callgrind wrote. https://valgrind.org/docs/manual/cl-format.html */
async function countsIn(file: string, named: (address: number) => string | undefined): Promise<Counts> {
  const names = new Map<string, string>();
  const nameOf = (text: string): string => {
    const [, id = '', name] = /^\((\d+)\)(?: (.*))?$/.exec(text) ?? [];
    if (name !== undefined) names.set(id, (name.startsWith('0x') ? named(Number.parseInt(name, 16)) : undefined) ?? name.replace(/'\d+$/, ''));
    return names.get(id) ?? '?';
  };
  const misses: [number, number, number] = [0, 0, 0];
  const counts: Counts = { own: new Map(), misses, calls: new Map() };
  let caller = '';
  let callee: string | undefined;
  for await (const line of createInterface({ input: createReadStream(file) })) {
    if (line.startsWith('fn=')) caller = nameOf(line.slice(3));
    else if (line.startsWith('cfn=')) callee = nameOf(line.slice(4));
    else if (/^[\d+*-]/.test(line)) {
      const costs = line.split(' ').map(Number);
      const count = costs[1]!;
      if (callee === undefined) {
        add(counts.own, caller, count);
        if (!compiler.test(caller)) for (const at of misses.keys()) misses[at]! += costs[firstMiss + at] ?? 0;
      } else if (callee !== caller) {
        const callers = counts.calls.get(callee) ?? new Map<string, number>();
        counts.calls.set(callee, callers);
        add(callers, caller, count);
      }
      callee = undefined;
    }
  }
  return counts;
}

/** Where `ILmr DLmr DLmw` stand in a line, behind its place and `Ir Dr Dw I1mr D1mr D1mw`; zeros at its end are left out. */
const firstMiss = 7;

const isJavaScript = (name: string) => name.startsWith('JS:');

/** Gives what native functions took to the JavaScript functions that called them, in proportion to what they took for each: about right where one calls another in turn. */
function byFunction({ own, calls }: Counts): Map<string, number> {
  const found = new Map<string, number>();
  let left = new Map<string, number>();
  for (const [name, count] of own)
    if (!compiler.test(name)) add(isJavaScript(name) ? found : left, isJavaScript(name) ? (functionOf(name) ?? name) : name, count);
  for (let depth = 0; left.size > 0; depth++) {
    const next = new Map<string, number>();
    for (const [name, count] of left) {
      const callers = calls.get(name);
      const all = callers ? sum(callers.values()) : 0;
      if (!callers || all === 0 || depth > deepest) add(found, `(not called by JavaScript) ${name}`, count);
      else
        for (const [caller, part] of callers) {
          const share = (count * part) / all;
          if (share >= 1) add(isJavaScript(caller) ? found : next, isJavaScript(caller) ? (functionOf(caller) ?? caller) : caller, share);
        }
    }
    left = next;
  }
  return found;
}

const deepest = 40;

const add = (counts: Map<string, number>, name: string, count: number) => counts.set(name, (counts.get(name) ?? 0) + count);

function sum(counts: Iterable<number>): number {
  let all = 0;
  for (const count of counts) all += count;
  return all;
}
