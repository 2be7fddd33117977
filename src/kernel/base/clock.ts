/** The source of time. It is injected, so that tests control it and the kernel reads no platform clock. */
export interface Clock {
  /** Returns the current time in milliseconds since the epoch. */
  now(): number;
  /**
   * Calls `callback` once, at `atMs` or as soon afterwards as possible, and never synchronously, even if `atMs` has
   * passed. Any delay is supported. The returned function cancels the call. With `background: true` the timer does not
   * keep the process alive.
   */
  schedule(atMs: number, callback: () => void, options?: { readonly background?: boolean }): () => void;
}
