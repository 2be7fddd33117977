/**
 * A promise that never settles. The code of a dropped task awaits it, so that nothing of the code runs on, not even
 * `catch` or `finally`.
 */
export function pendingForever(): Promise<never> {
  return new Promise<never>(() => {});
}
