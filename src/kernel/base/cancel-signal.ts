/** The part of a platform's `AbortSignal` that the kernel relies on. */
export interface MinimalSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * What is handed to tools and models to stop on. Where the platform's types know `AbortSignal` this is that, so it can
 * be given to `fetch`; the kernel, which sees no platform, uses the minimal one.
 */
export type CancelSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } }
  ? Signal
  : MinimalSignal;
