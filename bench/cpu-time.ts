/**
 * Milliseconds of processor time that the work took in this process, those of its collector and compiler threads included. On a machine that is
 * shared, work longer than a time slice waits for others and shorter work does not: their times on the clock cannot be compared.
 */
export async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
