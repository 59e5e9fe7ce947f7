import { availableParallelism, totalmem } from 'node:os';
import type { Settings } from '#config/index';

/** What the processes of a server share. */
export interface Machine {
  readonly cores: number;
  /** Bytes, or as many as the container may use. */
  readonly memory: number;
}

/** Bytes of a thread of the built-in embedding model, and the share of the memory that all of them may take. */
const threadBytes = 250 * 2 ** 20;
const memoryShare = 1 / 4;

/** How much work a process does at once that keeps a core busy: one core is left for those who answer, and the processes of a machine share the others. */
export const busyCores = ({ workers }: Pick<Settings, 'workers'>, { cores }: Pick<Machine, 'cores'> = thisMachine()): number =>
  Math.max(1, Math.floor((cores - 1) / workers));

/** Threads of the built-in embedding model in a process: as many as it may keep cores busy, if there is memory for them. */
export const embeddingThreads = (settings: Pick<Settings, 'workers'>, machine = thisMachine()): number =>
  Math.max(1, Math.min(busyCores(settings, machine), Math.floor((machine.memory * memoryShare) / settings.workers / threadBytes)));

function thisMachine(): Machine {
  const limit = process.constrainedMemory(); // 0 where it is not known
  return { cores: availableParallelism(), memory: Math.min(totalmem(), limit === 0 ? Infinity : limit) };
}
