/** The methods and fields of a platform's `AbortSignal` that the kernel uses. */
interface MinimalSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * The signal that cancels a tool or a model call. In programs whose types include `AbortSignal`, it is that type
 * and can be passed to `fetch`. The kernel is compiled without platform types and uses `MinimalSignal`.
 */
export type CancelSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } }
  ? Signal
  : MinimalSignal;
