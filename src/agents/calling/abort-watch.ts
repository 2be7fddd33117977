import { CancellationError, Fault, type CancelSignal, type RunHandle } from "../../kernel/index.ts";

/** Cancels a run when the abort signal of its caller aborts. */
export class AbortWatch {
  readonly #signal: CancelSignal;
  readonly #failure = Promise.withResolvers<never>();
  #error: Fault | undefined;
  #listener: (() => void) | undefined;

  constructor(signal: CancelSignal) {
    this.#signal = signal;
    // The failure reaches the caller through `untilEnd` and `check`.
    this.#failure.promise.catch(() => undefined);
  }

  /** Throws `cancelled` if the signal is aborted already, so that no run is created. */
  assertNotAborted(): void {
    if (this.#signal.aborted)
      throw new CancellationError(`no run was started, because the signal is aborted: ${this.#reason}`);
  }

  /** Watches the signal until `stop`. Cancels at once if the signal aborted while the run was created. */
  start(run: Pick<RunHandle, "cancel">): void {
    const listener = (): void => {
      this.stop();
      run.cancel(this.#reason).catch((error: unknown) => {
        this.#error = Fault.from(error);
        this.#failure.reject(this.#error);
      });
    };
    if (this.#signal.aborted) {
      listener();
      return;
    }
    this.#listener = listener;
    this.#signal.addEventListener("abort", listener);
  }

  /** Stops watching, so that a signal that is used for many runs keeps none of them in memory. */
  stop(): void {
    if (this.#listener !== undefined) this.#signal.removeEventListener("abort", this.#listener);
    this.#listener = undefined;
  }

  /** Throws if the run could not be cancelled. */
  check(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  /** Waits for the end of the run. Rejects if the run could not be cancelled. */
  async untilEnd<Value>(end: Promise<Value>): Promise<Value> {
    try {
      return await Promise.race([end, this.#failure.promise]);
    } finally {
      this.stop();
    }
  }

  get #reason(): string {
    const { reason } = this.#signal;
    if (typeof reason === "string" && reason !== "") return reason;
    return reason instanceof Error && reason.message !== "" ? reason.message : "the signal was aborted";
  }
}
