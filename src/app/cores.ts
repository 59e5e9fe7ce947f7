import { availableParallelism } from 'node:os';
import type { Settings } from '#config/index';

/** How much work a process does at once that keeps a core busy: one core is left for those who answer, and the processes of a machine share the others. */
export const busyCores = ({ workers }: Pick<Settings, 'workers'>): number => Math.max(1, Math.floor((availableParallelism() - 1) / workers));
