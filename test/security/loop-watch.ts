import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Preloaded into a server process (`node --import`): measures what its event loop does at a stretch, and its memory. A stretch is the processor time of the main
 * thread, in milliseconds, between two calls of a timer that is due in every turn of the loop: all tasks of a turn together, and the garbage that they made.
 * The clock on the wall is not asked: on a machine that is busy with other things it counts what they do. Any message is answered by what was seen since the one before,
 * and the message `collect` by what is resident once the garbage is collected.
 */
export interface Watched {
  /** The longest stretch (milliseconds). */
  readonly stretch: number;
  /** The most memory that was resident (bytes). */
  readonly resident: number;
}

/** The timer comes a millisecond after its last call at the earliest: turns that are shorter than this are counted together, none is counted in part. */
const period = 1;
/** Calls from one look at the memory to the next. */
const looks = 16;

const worked = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let stretch = 0;
let resident = 0;
let before = worked();
let calls = 0;

setInterval(() => {
  stretch = Math.max(stretch, worked() - before);
  if (calls++ % looks === 0) resident = Math.max(resident, process.memoryUsage.rss());
  before = worked();
}, period).unref();

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as NonNullable<typeof global.gc>;

process.on('message', (message) => {
  if (message === 'collect') {
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    resident = 0;
    before = worked();
  }
  process.send?.({ stretch, resident: Math.max(resident, process.memoryUsage.rss()) } satisfies Watched);
  stretch = 0;
  resident = 0;
});
process.channel?.unref();
