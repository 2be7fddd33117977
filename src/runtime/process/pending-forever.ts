/**
 * Returns a promise that never settles. The code of a dropped task awaits it, so that no further part of the code
 * runs, not even `catch` or `finally`.
 */
export function pendingForever(): Promise<never> {
  return new Promise<never>(() => {});
}
