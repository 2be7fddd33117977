/**
 * The source of time. Code receives it as a parameter, so that tests control the time and the kernel reads no
 * platform clock.
 *
 * @advanced
 */
export interface Clock {
  /** Returns the current time in milliseconds since the epoch. */
  now(): number;
  /**
   * Calls `callback` once, at `atMs` or as soon afterwards as possible. It never calls it synchronously, even if
   * `atMs` has passed. Any delay is supported. The returned function cancels the call. With `background: true` the
   * timer does not keep the process alive.
   */
  schedule(atMs: number, callback: () => void, options?: { readonly background?: boolean }): () => void;
}

/**
 * The turns of the JavaScript event loop. Code receives it as a parameter, so that a simulation decides what runs
 * in which turn, and when a turn begins.
 */
export interface EventLoop {
  /** Calls `callback` in this turn, after the code that runs now and before any other turn. */
  soon(callback: () => void): void;
  /** Calls `callback` in this turn, when no code is left that continues from a settled promise. */
  whenBlocked(callback: () => void): void;
  /** Calls `callback` in the next turn, after due timers and network events were handled. */
  nextTurn(callback: () => void): void;
  /**
   * Returns the milliseconds of a clock that is never adjusted. Only differences between two results have a
   * meaning.
   */
  elapsed(): number;
}

/** The source of new ids. Each id is unique and consists of letters, digits, `-` and `_`. @advanced */
export interface IdSource {
  next(): string;
}

/** The source of randomness: numbers in [0, 1). Code receives it as a parameter, so that tests are deterministic. */
export interface Random {
  next(): number;
}

/**
 * Computes a digest of the content (SHA-256 in production). It is synchronous and returns the same text in every
 * process and release, because digests are stored (J4) and chained (E1).
 *
 * @advanced
 */
export type Hash = (content: string | Uint8Array) => string;
