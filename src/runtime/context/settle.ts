/** How one piece of work ended, for whoever waits for several and stops for none. */
export async function settledResult<Value>(
  work: () => Value | Promise<Value>,
): Promise<PromiseSettledResult<Value>> {
  try {
    return { status: "fulfilled", value: await work() };
  } catch (reason) {
    return { status: "rejected", reason };
  }
}
