import type { Fault } from '#core/fault';

/**
 * The fault for the caller when all targets have failed: the one with the shortest wait, if any names a wait, else that of the last target that has the model.
 */
export function allOut(faults: readonly Fault[]): Fault | undefined {
  const limited = faults.filter((fault) => fault.code === 'rate-limited').toSorted((a, b) => (a.details.retryAfter ?? 1) - (b.details.retryAfter ?? 1))[0];
  return limited ?? faults.findLast(({ details }) => !details.absent) ?? faults.at(-1);
}
