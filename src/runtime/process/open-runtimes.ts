import type { Fault } from "../../kernel/index.ts";

/** A runtime that keeps its process alive until it is closed. */
export interface OpenRuntime {
  /** Whether the process has a reason to stay alive. If not, `close()` was probably forgotten. */
  readonly isMeantToStay: boolean;
  /** Whether the process may end although `close()` was not called, if it has no reason to stay. Default: `false`. */
  readonly mayEnd?: boolean;
}

/** Time for which the process stays alive before it checks its reason again. Milliseconds. */
const stayMs = 1_000;

/**
 * The open runtimes that keep this process alive. Their idle timers do not keep it alive. Instead, this class
 * handles the event `beforeExit`, which Node emits each time no other work is left. At this moment it can also
 * report that `close()` was forgotten.
 */
class OpenRuntimes {
  readonly #open = new Set<OpenRuntime>();
  readonly #warned = new WeakSet<OpenRuntime>();
  #stay: NodeJS.Timeout | undefined;

  add(runtime: OpenRuntime): void {
    if (this.#open.size === 0) process.on("beforeExit", this.#onIdle);
    this.#open.add(runtime);
  }

  delete(runtime: OpenRuntime): void {
    if (!this.#open.delete(runtime) || this.#open.size > 0) return;
    process.off("beforeExit", this.#onIdle);
    clearTimeout(this.#stay);
  }

  readonly #onIdle = (): void => {
    const open = [...this.#open];
    if (open.every(({ isMeantToStay, mayEnd = false }) => mayEnd && !isMeantToStay)) return;
    this.#stay = setTimeout(() => undefined, stayMs);
    for (const runtime of this.#open) {
      if (runtime.isMeantToStay || runtime.mayEnd === true || this.#warned.has(runtime)) continue;
      this.#warned.add(runtime);
      process.emitWarning(
        "an open runtime keeps this process alive, although no caller waits for a run: call runtime.close() when the work is done, or open the runtime with keepAlive: true if it is meant to stay, or with keepAlive: false if the process may end",
        { type: "ReeveWarning", code: "runtime_open" },
      );
    }
  };
}

/** Reports an error that no caller can receive as a process warning. */
export function warn(error: Fault): void {
  process.emitWarning(error.message, { type: "ReeveWarning", code: error.code });
}

/** The open runtimes of this process. */
export const openRuntimes = new OpenRuntimes();
