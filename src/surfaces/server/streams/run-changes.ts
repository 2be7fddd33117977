import {
  Fault,
  type RunQuery,
  type RunSummary,
  type RunSummaryStatus,
  type Runtime,
} from "../../../kernel/index.ts";

/** Runs with a status of this list have not ended. */
const unfinished: readonly RunSummaryStatus[] = ["pending", "running", "waiting", "paused"];
/** Number of the newest runs that are compared, whatever their status. */
const newest = 100;

export type ChangeListener = (changed: readonly RunSummary[]) => void;

/**
 * Tells which runs of a view have changed, whichever processes drive them. Compares the newest and the unfinished runs
 * with those of the last look, while there are listeners. Costs O(unfinished runs) per look, shared by all listeners.
 */
export class RunChanges {
  readonly #runtime: Runtime;
  readonly #everyMs: number;
  readonly #report: (error: unknown) => void;
  readonly #onIdle: () => void;
  readonly #listeners = new Set<ChangeListener>();
  #known = new Map<string, RunSummary>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isPoked = false;
  #isReady = false;

  constructor(runtime: Runtime, everyMs: number, report: (error: unknown) => void, onIdle: () => void) {
    this.#runtime = runtime;
    this.#everyMs = everyMs;
    this.#report = report;
    this.#onIdle = onIdle;
  }

  /** Adds a listener and resolves when every later change reaches it. The signal removes it. */
  async listen(listener: ChangeListener, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#remove(listener), { once: true });
    if (!this.#isReady) await this.#look();
  }

  /** Looks at once. */
  poke(): void {
    if (this.#looking === undefined) void this.#look();
    else this.#isPoked = true;
  }

  #remove(listener: ChangeListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#onIdle();
  }

  /** One look at a time. A call during a look waits for that look. */
  #look(): Promise<void> {
    this.#looking ??= this.#compare().finally(() => {
      this.#looking = undefined;
      this.#scheduleNext();
    });
    return this.#looking;
  }

  #scheduleNext(): void {
    clearTimeout(this.#timer);
    if (this.#listeners.size === 0) return;
    const delay = this.#isPoked ? 0 : this.#everyMs;
    this.#isPoked = false;
    this.#timer = setTimeout(() => void this.#look(), delay).unref();
  }

  async #compare(): Promise<void> {
    try {
      const found = await this.#read();
      const changed = [...found.values()].filter((run) => !isSame(this.#known.get(run.runId), run));
      const isFirst = !this.#isReady;
      this.#known = found;
      this.#isReady = true;
      if (isFirst || changed.length === 0) return;
      for (const listener of this.#listeners) listener(changed);
    } catch (error) {
      // The next look tries again. A closed runtime ends the streams themselves.
      if (!(Fault.is(error) && error.code === "closed")) this.#report(error);
    }
  }

  async #read(): Promise<Map<string, RunSummary>> {
    const found = new Map<string, RunSummary>();
    const { runs } = await this.#runtime.list({ limit: newest });
    for (const run of runs) found.set(run.runId, run);
    for await (const run of allRuns(this.#runtime, { status: unfinished })) found.set(run.runId, run);
    // Runs that have ended since the last look and are not among the newest.
    for (const { runId, endedAt } of this.#known.values()) {
      if (endedAt !== null || found.has(runId)) continue;
      const run = await this.#runtime.find(runId);
      if (run !== undefined) found.set(runId, await run.summary());
    }
    return found;
  }
}

function isSame(known: RunSummary | undefined, run: RunSummary): boolean {
  return (
    known !== undefined &&
    known.updatedAt === run.updatedAt &&
    known.status === run.status &&
    known.endedAt === run.endedAt &&
    known.recoveries === run.recoveries &&
    known.costUsd === run.costUsd &&
    known.waitsFor.join() === run.waitsFor.join()
  );
}

/** All runs of a query, page by page. */
export async function* allRuns(runtime: Runtime, query: RunQuery): AsyncIterable<RunSummary> {
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Runtime["list"]>> = await runtime.list({
      ...query,
      limit: 500,
      ...(after !== null && { after }),
    });
    yield* page.runs;
    after = page.next;
  } while (after !== null);
}
