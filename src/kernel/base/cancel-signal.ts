/** The part of a platform's `AbortSignal` that the kernel relies on. */
interface MinimalSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * The signal that cancels a tool or a model call. It is the platform's `AbortSignal` where the program's types know
 * that type, so it can be passed to `fetch`; the kernel, which is compiled without platform types, uses
 * `MinimalSignal`.
 */
export type CancelSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } }
  ? Signal
  : MinimalSignal;
