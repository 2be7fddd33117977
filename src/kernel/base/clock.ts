/** Where time comes from. Handed in, so that tests move it by hand and the kernel reads no platform clock. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Calls back once, at `atMs` or as soon after as it can; a time in the past means soon, never synchronously.
   * Holds for any distance in time. The returned function cancels; after it, nothing is called.
   * `background`: nobody waits for it, so it alone does not keep the process alive.
   */
  schedule(atMs: number, callback: () => void, options?: { readonly background?: boolean }): () => void;
}
