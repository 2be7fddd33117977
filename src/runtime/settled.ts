/** How one promise ended, for whoever waits for several and stops for none. */
export function settle<Value>(work: Promise<Value>): Promise<PromiseSettledResult<Value>> {
  return work.then(
    (value) => ({ status: "fulfilled", value }),
    (reason: unknown) => ({ status: "rejected", reason }),
  );
}
