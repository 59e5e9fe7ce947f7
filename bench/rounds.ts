/** Measures in rounds, in each of which every contestant has its turn, so that other load on the machine affects all alike. */
import { setTimeout } from 'node:timers/promises';
import type { Contestant, Name } from './contestants/index.ts';
import { cpuTime } from './processes.ts';
import type { Load, Rig, Seen } from './rig.ts';

/** One contestant's figures, one for each round. CPU in microseconds a request. */
export interface Cost {
  readonly name: Name;
  /** CPU of the first requests after the start, and how many there were. */
  cold: { readonly cpu: number; readonly requests: number };
  /** Requests before the first round. */
  warmedBy: number;
  readonly cpu: number[];
  readonly system: number[];
  readonly database: number[];
}

export interface CostLoad extends Omit<Load, 'seconds'> {
  /** Lines that a stream must have. */
  readonly lines?: number | undefined;
  /** Requests of this kind before the first round: code is compiled by how often it runs. */
  readonly warmUp?: number;
}

/** CPU time that a request costs each contestant. */
export async function costs(rig: Rig, contestants: readonly Contestant[], { lines = 0, warmUp = usualWarmUp, ...load }: CostLoad): Promise<Cost[]> {
  const { rounds, seconds } = rig.options;
  const found: Cost[] = [];
  for (const contestant of contestants) found.push(await warmed(rig, contestant, load, Math.min(warmUp, rig.options.warmUp ?? Infinity)));
  for (let round = 0; round < rounds; round++) {
    for (const turn of contestants.keys()) {
      const at = (turn + round) % contestants.length;
      const contestant = contestants[at]!;
      const cost = found[at]!;
      const before = spent(contestant);
      const seen = await rig.clients(contestant, { ...load, seconds });
      await rest(contestant);
      const after = spent(contestant);
      complain(rig, contestant.name, seen, lines);
      const answered = Math.max(1, seen.requests);
      cost.cpu.push((after.user + after.system - before.user - before.system) / answered);
      cost.system.push((after.system - before.system) / answered);
      cost.database.push((after.database - before.database) / answered);
    }
  }
  return found;
}

/** Sends a contestant requests until it has had enough. The first of them are measured: on a new start they show what compiling costs. */
async function warmed(rig: Rig, contestant: Contestant, load: Omit<Load, 'seconds'>, requests: number): Promise<Cost> {
  const before = spent(contestant);
  const cold = await rig.clients(contestant, { ...load, seconds: 1 });
  const after = spent(contestant);
  const cpu = (after.user + after.system - before.user - before.system) / Math.max(1, cold.requests);
  const warmedBy = cold.requests + (await warmUp(rig, contestant, load, requests - cold.requests));
  return { name: contestant.name, cold: { cpu, requests: cold.requests }, warmedBy, cpu: [], system: [], database: [] };
}

/** @returns how many requests it was sent: fewer where it takes longer than a minute */
export async function warmUp(rig: Rig, contestant: Contestant, load: Omit<Load, 'seconds'>, requests: number): Promise<number> {
  let sent = 0;
  const deadline = performance.now() + longestWarmUpMilliseconds;
  while (sent < requests && performance.now() < deadline) sent += (await rig.clients(contestant, { ...load, seconds: 2 })).requests;
  await rest(contestant);
  return sent;
}

/** CPU microseconds a request in one turn. */
export async function spentBy(rig: Rig, contestant: Contestant, load: Omit<Load, 'seconds'>, seconds: number): Promise<number> {
  const before = spent(contestant);
  const seen = await rig.clients(contestant, { ...load, seconds });
  await rest(contestant);
  const after = spent(contestant);
  complain(rig, contestant.name, seen, 0);
  return (after.user + after.system - before.user - before.system) / Math.max(1, seen.requests);
}

const usualWarmUp = 30_000;
const longestWarmUpMilliseconds = 60_000;

/** What the clients of one contestant measured, and in the same rounds clients of the provider itself. */
export interface Waits {
  readonly name: Name;
  readonly seen: Seen[];
  readonly direct: Seen[];
}

/** How long clients wait at each contestant, and at the provider itself. */
export async function waits(rig: Rig, contestants: readonly Contestant[], upstreamPort: number, load: Omit<Load, 'seconds'>, lines = 0): Promise<Waits[]> {
  const { rounds, seconds } = rig.options;
  const direct: Seen[] = [];
  const found = contestants.map(({ name }): Waits => ({ name, seen: [], direct }));
  for (const contestant of contestants) await rig.clients(contestant, { ...load, clients: warmUpClients, together: false, rate: 0, seconds: warmUpSeconds });
  for (let round = 0; round < rounds; round++) {
    direct.push(await rig.clients({ port: upstreamPort, path: '/', headers: [] }, { ...load, seconds }));
    for (const [at, contestant] of contestants.entries()) {
      const seen = await rig.clients(contestant, { ...load, seconds });
      complain(rig, contestant.name, seen, lines);
      found[at]!.seen.push(seen);
    }
  }
  return found;
}

/** Milliseconds that a contestant adds: the median over the rounds of its quantile less the provider's. */
export function added({ seen, direct }: Waits, milliseconds: (seen: Seen) => number): number {
  return median(seen.map((one, round) => milliseconds(one) - milliseconds(direct[round]!)));
}

const warmUpSeconds = 4;
/** Many, because paused streams are few a second and code is compiled by how often it runs. */
const warmUpClients = 256;

/** Remarks failed requests and streams with lines missing: they would look cheap. */
export function complain(rig: Rig, name: Name, seen: Seen, lines: number): void {
  if (seen.failed + seen.unfinished > 0)
    rig.remarks.add(`${name}: ${seen.failed} of ${seen.requests + seen.failed} requests failed, ${seen.unfinished} did not end.`);
  else if (lines > 0 && seen.lines < seen.requests * lines)
    rig.remarks.add(`${name}: ${seen.lines} lines in ${seen.requests} streams, expected ${lines} each.`);
}

function spent({ pid, databasePid }: Contestant) {
  const database = databasePid === undefined ? { user: 0, system: 0 } : cpuTime(databasePid);
  return { ...cpuTime(pid), database: database.user + database.system };
}

const quietMilliseconds = 600;
const longestRestMilliseconds = 20_000;
const restlessMicroseconds = 20_000;

/** Waits until a contestant and its database are idle: what they write afterwards belongs to the requests that caused it. */
async function rest(contestant: Contestant): Promise<void> {
  const deadline = performance.now() + longestRestMilliseconds;
  for (let before = total(contestant); performance.now() < deadline;) {
    await setTimeout(quietMilliseconds);
    const now = total(contestant);
    if (now - before <= restlessMicroseconds) return;
    before = now;
  }
}

const total = (contestant: Contestant) => Object.values(spent(contestant)).reduce((sum, one) => sum + one, 0);

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return sorted.length === 0 ? NaN : (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2;
}

/** Median of the ratios within each round. */
export function ratio(of: readonly number[], to: readonly number[] | undefined): number | undefined {
  return to && median(of.map((value, round) => value / to[round]!));
}
