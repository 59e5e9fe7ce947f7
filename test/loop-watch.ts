/**
 * Preloaded into a server process (`node --import`): measures what its event loop does at a stretch, in milliseconds of work of this thread, so that a machine that is
 * busy with other things counts for nothing, and its memory. Any message is answered by what was seen since the one before.
 */
export interface Watched {
  /** The longest stretch without a turn of the event loop (milliseconds of work). */
  readonly longest: number;
  /** The most memory that was resident (bytes). */
  readonly resident: number;
}

/** A timer fires at the first turn of the loop after its time: the work between two of its calls is that of one stretch, and this much at most besides. */
const period = 5;

const worked = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let longest = 0;
let resident = 0;
let before = worked();
let calls = 0;

setInterval(() => {
  const at = worked();
  longest = Math.max(longest, at - before - period);
  if (calls++ % 8 === 0) resident = Math.max(resident, process.memoryUsage.rss());
  before = worked();
}, period).unref();

process.on('message', () => {
  process.send?.({ longest, resident: Math.max(resident, process.memoryUsage.rss()) } satisfies Watched);
  longest = 0;
  resident = 0;
});
process.channel?.unref();
