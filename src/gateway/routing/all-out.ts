import type { Fault } from '#core/fault';

/** What the caller hears when every target was tried: the shortest wait if any said to wait, else what the last one did that has the model. */
export function allOut(faults: readonly Fault[]): Fault | undefined {
  const limited = faults.filter((fault) => fault.code === 'rate-limited').toSorted((a, b) => (a.details.retryAfter ?? 1) - (b.details.retryAfter ?? 1))[0];
  return limited ?? faults.findLast(({ details }) => !details.absent) ?? faults.at(-1);
}
