import { effect } from "@preact/signals";
import type { Event, TaskId } from "../../src/kernel/index.ts";
import type { AfterEvent } from "../../src/surfaces/view/run-fold.ts";
import { RunPast, type StoredPast } from "../../src/surfaces/view/run-past.ts";
import type { RunTrace } from "../../src/surfaces/view/run-trace.ts";
import type { StepLog, StepView } from "../../src/surfaces/view/step-log.ts";
import { get, RequestError } from "../api/client.ts";
import { connected } from "../api/runs-feed.ts";

/** Maximum number of ended steps that the page keeps. Older steps are read from the server when a view needs them. */
const mostSteps = 1_000;

/**
 * The steps of a followed run, and the data for drawings over time. They are collected from the first event on, or
 * read once from the server.
 */
export class LivePast {
  readonly #runId: string;
  readonly #stop: AbortSignal;
  #past = new RunPast({ mostSteps });
  /** The events that arrived before the past was read, with what each left behind. `null` if nothing is to be read. */
  #early: { readonly event: Event; readonly after: AfterEvent }[] | null = null;

  constructor(runId: string, stop: AbortSignal) {
    this.#runId = runId;
    this.#stop = stop;
  }

  /** Number of the last event that the past contains. -1 until it is read. */
  get seq(): number {
    return this.#past.steps.seq;
  }

  get steps(): StepLog {
    return this.#past.steps;
  }

  get trace(): RunTrace {
    return this.#past.trace;
  }

  /** Adds the next event, with what it left behind. */
  add(event: Event, after: AfterEvent): void {
    if (this.#early === null) this.#past.add(event, after);
    else this.#early.push({ event, after });
  }

  /** Reads the past from the server, and tries again whenever the server answers again. Calls back when it is read. */
  read(onRead: () => void): void {
    this.#early = [];
    const unfollow = effect(() => {
      void connected.value;
      if (this.#early !== null) void this.#read(onRead);
    });
    this.#stop.addEventListener("abort", unfollow, { once: true });
  }

  async #read(onRead: () => void): Promise<void> {
    try {
      const from = await get("/api/runs/{runId}/past", {
        params: { runId: this.#runId },
        signal: this.#stop,
      });
      if (this.#early === null) return;
      // The schema of the server says that ids are texts.
      this.#past = new RunPast({ mostSteps, from: from as unknown as StoredPast });
      for (const { event, after } of this.#early) this.#past.add(event, after);
      this.#early = null;
      onRead();
    } catch (error) {
      if (!(error instanceof RequestError) && !this.#stop.aborted) throw error;
    }
  }

  /** Returns the steps that were in progress after an event, in their current state. */
  async inProgressAt(at: number): Promise<readonly StepView[]> {
    if (this.#early === null && at + 1 >= this.steps.first) return [...this.steps.inProgressAt(at)];
    return this.#readSteps({ at });
  }

  /** Returns all steps of some tasks in their current state, including steps that are no longer in memory. */
  stepsOf(taskIds: readonly TaskId[]): Promise<readonly StepView[]> {
    return this.#readSteps({ taskId: taskIds });
  }

  async #readSteps(query: {
    readonly at?: number;
    readonly taskId?: readonly string[];
  }): Promise<readonly StepView[]> {
    const { steps } = await get("/api/runs/{runId}/steps", {
      params: { runId: this.#runId },
      query,
      signal: this.#stop,
    });
    // The schema of the server says that ids are texts.
    return steps as readonly StepView[];
  }
}

/**
 * Whether the page has read the steps and curves up to the shown event. Until then, the views show that they are
 * incomplete.
 */
export function isPastRead(
  { past }: { readonly past: { readonly seq: number } },
  { seq }: { readonly seq: number },
): boolean {
  return past.seq >= seq;
}
