/*
 * Measures CPU time, since other processes may share the machine, and divides it by the speed of this machine: limits are written for one that does
 * `usualWork` in `referenceMilliseconds`. What is compared with another measurement is not divided (`unscaledCpuMilliseconds`).
 */

const items = Array.from({ length: 2000 }, (_, at) => ({ id: `item_${at}`, text: 'the quick brown fox '.repeat(4), numbers: [at, at / 3], inner: { at } }));
const text = JSON.stringify(items);

/** Typical work of the server: JSON, maps, and characters one by one. */
function usualWork(): number {
  const parsed = JSON.parse(text) as typeof items;
  const lengths = new Map(parsed.map((item) => [item.id, item.text.replaceAll('quick', 'slow').length]));
  let sum = lengths.size + JSON.stringify(parsed).length;
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) | 0;
  return sum;
}

const referenceMilliseconds = 2.1;
/** For so long a measurement of the machine's speed is used. */
const validMilliseconds = 10_000;
/** A machine that is slower than this is not told from a fault. */
const mostSlowness = 6;
let lastMeasured = { at: -Infinity, slowness: 1 };

/** How many times as long as on the machine that limits are written for the same work takes here and now; 1 on a faster one. */
export function slowness(): number {
  if (performance.now() - lastMeasured.at < validMilliseconds) return lastMeasured.slowness;
  if (lastMeasured.at === -Infinity) for (let round = 0; round < 20; round++) usualWork(); // compiled from then on
  const rounds = 25; // one alone is shorter than a tick of the clock of CPU time
  const took = unscaledCpuMilliseconds(() => {
    for (let round = 0; round < rounds; round++) usualWork();
  });
  lastMeasured = { at: performance.now(), slowness: Math.min(mostSlowness, Math.max(1, took / rounds / referenceMilliseconds)) };
  return lastMeasured.slowness;
}

/** Milliseconds of CPU time that this thread has had so far. */
function spent(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Milliseconds of CPU time that this thread takes for some work, as they are on this machine. */
export function unscaledCpuMilliseconds(work: () => void): number {
  const before = spent();
  work();
  return spent() - before;
}

/** Milliseconds of CPU time that this thread takes for some work. */
export const cpuMilliseconds = (work: () => void): number => unscaledCpuMilliseconds(work) / slowness();

/** Milliseconds of CPU time that this thread takes until some work is done, also for what else happens meanwhile, as they are on this machine. */
export async function unscaledCpuMillisecondsUntil(work: () => Promise<unknown>): Promise<number> {
  const before = spent();
  await work();
  return spent() - before;
}

/** Milliseconds of CPU time that this thread takes until some work is done, also for what else happens meanwhile. */
export const cpuMillisecondsUntil = async (work: () => Promise<unknown>): Promise<number> => (await unscaledCpuMillisecondsUntil(work)) / slowness();

/** Milliseconds of CPU time of the longest stretch between two turns of the event loop until some work is done. */
export async function longestStretch(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = spent();
  const look = () => {
    longest = Math.max(longest, spent() - before);
    before = spent();
  };
  const watch = setInterval(look, 1);
  try {
    await work();
    await new Promise((resolve) => setImmediate(resolve));
    look();
  } finally {
    clearInterval(watch);
  }
  return longest / slowness();
}
