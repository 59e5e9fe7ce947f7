/** Milliseconds of this thread's own CPU time that a piece of work takes, however busy the machine is. */
export function cpuMilliseconds(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
