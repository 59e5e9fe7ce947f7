/*
 * Processor time is asked, as the machine may be busy with other things, and stated as on the machine that the limits are written for: a machine that is
 * three times as slow takes three times as long for everything.
 */

const items = Array.from({ length: 2000 }, (_, at) => ({ id: `item_${at}`, text: 'the quick brown fox '.repeat(4), numbers: [at, at / 3], inner: { at } }));
const text = JSON.stringify(items);

/** What the program does much of: JSON, maps, and characters one by one. Some 3 ms. */
function usualWork(): number {
  const parsed = JSON.parse(text) as typeof items;
  const lengths = new Map(parsed.map((item) => [item.id, item.text.replaceAll('quick', 'slow').length]));
  let sum = lengths.size + JSON.stringify(parsed).length;
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) | 0;
  return sum;
}

/** Milliseconds of `usualWork` on the machine that limits are written for. */
const usual = 3;
/** Milliseconds for which a machine is taken to be as slow as it was. */
const lasting = 5000;
let known = { at: -Infinity, slowness: 1 };

/** How many times as long as on the machine that limits are written for the same work takes here and now; 1 on a faster one. */
export function slowness(): number {
  if (performance.now() - known.at < lasting) return known.slowness;
  // Pieces of work so short are seldom interrupted, and the median of them is not: the clock of a thread's processor time ticks too rarely for them.
  const times = Array.from({ length: 25 }, () => {
    const begun = performance.now();
    usualWork();
    return performance.now() - begun;
  });
  known = { at: performance.now(), slowness: Math.max(1, times.toSorted((a, b) => a - b)[12]! / usual) };
  return known.slowness;
}

/** Milliseconds of processor time that this thread has had so far, as they are on this machine. */
function spent(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Milliseconds of processor time that this thread takes for some work. */
export function cpuMilliseconds(work: () => void): number {
  const before = spent();
  work();
  return (spent() - before) / slowness();
}

/** Milliseconds of processor time that this thread takes until some work is done, also for what else happens meanwhile. */
export async function cpuMillisecondsUntil(work: () => Promise<unknown>): Promise<number> {
  const before = spent();
  await work();
  return (spent() - before) / slowness();
}

/** Milliseconds of processor time of the longest stretch between two turns of the event loop until some work is done. */
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
    return longest / slowness();
  } finally {
    clearInterval(watch);
  }
}
