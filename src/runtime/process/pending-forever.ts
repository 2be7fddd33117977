/** What the code of a dropped task is given: nothing of it runs on, also no `catch` or `finally`. */
export function never(): Promise<never> {
  return new Promise<never>(() => {});
}
