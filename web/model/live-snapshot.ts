import { signal } from "@preact/signals";
import { get, RequestError } from "../api/client.ts";
import type { Snapshot } from "../api/types.ts";

const firstReadMs = 200;
const nextReadMs = 1_500;
/** Maximum number of tasks for which the ledger is read repeatedly. A larger run takes too much time. */
const mostTasks = 1_000;

/**
 * Seats and ledger of a live run, with the amounts reserved for calls in progress. They are read again a short time
 * after each event.
 */
export class LiveSnapshot {
  readonly value = signal<Snapshot | null>(null);
  readonly #runId: string;
  readonly #stop: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(runId: string, stop: AbortSignal) {
    this.#runId = runId;
    this.#stop = stop;
    stop.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  /** Reads the snapshot soon, unless a read is due already. `countTasks` returns the number of tasks at the time of the read. */
  readSoon(countTasks: () => number): void {
    if (this.#timer !== undefined) return;
    const delay = this.value.peek() === null ? firstReadMs : nextReadMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!document.hidden && countTasks() <= mostTasks) void this.#read();
    }, delay);
  }

  async #read(): Promise<void> {
    try {
      const params = { runId: this.#runId };
      this.value.value = await get("/api/runs/{runId}/snapshot", { params, signal: this.#stop });
    } catch (error) {
      if (!(error instanceof RequestError) && !this.#stop.aborted) throw error;
    }
  }
}
