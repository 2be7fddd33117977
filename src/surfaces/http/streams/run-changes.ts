import {
  Fault,
  isInScope,
  allRuns,
  unfinishedStatuses,
  type RunPage,
  type RunSummary,
  type Runtime,
  type TenantScope,
} from "../../../kernel/index.ts";

/** Number of the newest runs that are compared, whatever their status. Also the size of a page. */
const newest = 100;

export type ChangeListener = (changed: readonly RunSummary[]) => void;

/**
 * Tells which runs have changed, whichever processes drive them. A store does not announce commits of other processes, so
 * that the newest and the unfinished runs are compared with those of the last look, while there are listeners. One look
 * costs O(unfinished runs + new runs), whatever the number of ended runs, listeners, tenants and users.
 */
export class RunChanges {
  readonly #runtime: Runtime;
  readonly #everyMs: number;
  readonly #report: (error: unknown) => void;
  readonly #listeners = new Map<ChangeListener, TenantScope | undefined>();
  #known = new Map<string, RunSummary>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isPoked = false;
  #isReady = false;

  /** `runtime` sees the runs of all tenants. */
  constructor(runtime: Runtime, everyMs: number, report: (error: unknown) => void) {
    this.#runtime = runtime;
    this.#everyMs = everyMs;
    this.#report = report;
  }

  /**
   * Adds a listener and resolves when every later change of a run in the scope reaches it. The signal removes it. If there
   * is no scope, all runs reach it.
   */
  async listen(listener: ChangeListener, signal: AbortSignal, scope?: TenantScope): Promise<void> {
    if (signal.aborted) return;
    this.#listeners.set(listener, scope);
    signal.addEventListener("abort", () => this.#remove(listener), { once: true });
    if (!this.#isReady) await this.#look();
  }

  /** Looks at once. */
  poke(): void {
    if (this.#listeners.size === 0) return;
    if (this.#looking === undefined) void this.#look();
    else this.#isPoked = true;
  }

  #remove(listener: ChangeListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // The next listener needs no changes from the time without listeners.
    this.#isReady = false;
    this.#known.clear();
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
      if (this.#listeners.size === 0) return;
      this.#known = found;
      this.#isReady = true;
      if (isFirst || changed.length === 0) return;
      for (const [listener, scope] of this.#listeners) {
        const visible = changed.filter((run) => isInScope(run, scope));
        if (visible.length > 0) listener(visible);
      }
    } catch (error) {
      // The next look tries again. A closed runtime ends the streams themselves.
      if (!(Fault.is(error) && error.code === "closed")) this.#report(error);
    }
  }

  async #read(): Promise<Map<string, RunSummary>> {
    const found = new Map<string, RunSummary>();
    for await (const run of this.#newest()) found.set(run.runId, run);
    for await (const run of allRuns(this.#runtime, { status: unfinishedStatuses })) found.set(run.runId, run);
    // Runs that have ended since the last look and are not among the newest.
    for (const { runId, endedAt } of this.#known.values()) {
      if (endedAt !== null || found.has(runId)) continue;
      const run = await this.#runtime.find(runId);
      if (run !== undefined) found.set(runId, await run.summary());
    }
    return found;
  }

  /** The newest runs: one page, and further ones until a page has a run of the last look. Runs are listed newest first. */
  async *#newest(): AsyncIterable<RunSummary> {
    let after: string | null = null;
    do {
      const page: RunPage = await this.#runtime.list({ limit: newest, ...(after !== null && { after }) });
      yield* page.runs;
      const isKnown = !this.#isReady || page.runs.some(({ runId }) => this.#known.has(runId));
      after = isKnown ? null : page.next;
    } while (after !== null);
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
