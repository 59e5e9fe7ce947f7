import type { RunLimits } from '#core/run';

/** Rounds of research, with a review behind each. */
export const mostCycles = 8;
/** Researchers at once. */
export const atOnce = 5;

/** What a deep run may use. @param seconds the setting `limits.agentSeconds` */
export const deepLimits = (seconds: number): RunLimits => ({ steps: 200, calls: 200, seconds: Math.min(seconds, 1800), tokens: 2_000_000 });

/** How much of each limit research may use: the rest is for the report. */
const share = 0.8;

/** Why no further research is begun; undefined: it may go on. */
export function spentOf(limits: RunLimits, used: RunLimits): string | undefined {
  return (['seconds', 'tokens', 'steps', 'calls'] as const).flatMap((limit) => (used[limit] >= limits[limit] * share ? [names[limit]] : []))[0];
}

const names = { seconds: 'its time', tokens: 'its tokens', steps: 'its answers of models', calls: 'its calls of tools' } as const;
