import type { Fault } from '#core/fault';

/**
 * The fault for the caller when all targets have failed: the one with the shortest wait, if any names a wait, else that of the last target that has the model
 * and accepts our credentials.
 */
export function allOut(faults: readonly Fault[]): Fault | undefined {
  const limited = faults.filter((fault) => fault.code === 'rate-limited').toSorted((a, b) => (a.details.retryAfter ?? 1) - (b.details.retryAfter ?? 1))[0];
  const present = faults.filter(({ details }) => !details.absent);
  return limited ?? present.findLast(({ details }) => !details.key) ?? present.at(-1) ?? faults.at(-1);
}
