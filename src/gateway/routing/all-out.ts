import type { Fault } from '#core/fault';

/** The fault that the caller gets when all targets have failed: the shortest wait if any named one, else that of the last target that has the model. */
export function allOut(faults: readonly Fault[]): Fault | undefined {
  const limited = faults.filter((fault) => fault.code === 'rate-limited').toSorted((a, b) => (a.details.retryAfter ?? 1) - (b.details.retryAfter ?? 1))[0];
  return limited ?? faults.findLast(({ details }) => !details.absent) ?? faults.at(-1);
}
