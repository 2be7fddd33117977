/**
 * Returns the milliseconds of processor time that the work took in this process, including its collector and compiler
 * threads. Times on the clock cannot be compared on a shared machine, because work that is longer than a time slice
 * waits for other processes.
 */
export async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
