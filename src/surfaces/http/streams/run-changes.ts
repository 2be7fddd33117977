import { Fault, isInScope, type RunSummary, type Runtime, type TenantScope } from "../../../kernel/index.ts";

export type ChangeListener = (changed: readonly RunSummary[]) => void;

/**
 * Reports which runs have changed, regardless of the processes that execute them, as long as there are listeners. A
 * store does not announce commits of other processes, so it is queried at an interval (K5). One query takes
 * O(changed runs and runs with an owner); the number of other runs, listeners, tenants and users does not matter.
 */
export class RunChanges {
  readonly #runtime: Runtime;
  readonly #everyMs: number;
  readonly #report: (error: unknown) => void;
  readonly #listeners = new Map<ChangeListener, TenantScope | undefined>();
  /** The runs of the last query. They are kept because a store may return an unchanged run again. */
  #known = new Map<string, RunSummary>();
  #position: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isPoked = false;

  /** `runtime` sees the runs of all tenants. */
  constructor(runtime: Runtime, everyMs: number, report: (error: unknown) => void) {
    this.#runtime = runtime;
    this.#everyMs = everyMs;
    this.#report = report;
  }

  /**
   * Adds a listener. Resolves when the listener receives all later changes of runs in the scope. When the signal
   * aborts, the listener is removed. Without a scope, it receives the changes of all runs.
   */
  async listen(listener: ChangeListener, signal: AbortSignal, scope?: TenantScope): Promise<void> {
    if (signal.aborted) return;
    this.#listeners.set(listener, scope);
    signal.addEventListener("abort", () => this.#remove(listener), { once: true });
    if (this.#position === undefined) await this.#look();
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
    this.#position = undefined;
    this.#known.clear();
  }

  /** Queries the store. Only one query runs at a time; a call during a query waits for that query. */
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
      const since = this.#position ?? (await this.#runtime.changes()).next;
      const { runs, next } = await this.#runtime.changes(since);
      const isFirst = this.#position === undefined;
      if (this.#listeners.size === 0) return;
      const changed = runs.filter((run) => !isSame(this.#known.get(run.runId), run));
      this.#known = new Map(runs.map((run) => [run.runId, run]));
      this.#position = next;
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
}

function isSame(known: RunSummary | undefined, run: RunSummary): boolean {
  return (
    known !== undefined &&
    known.updatedAt === run.updatedAt &&
    known.status === run.status &&
    known.endedAt === run.endedAt &&
    known.recoveries === run.recoveries &&
    known.costUsd === run.costUsd &&
    known.waitsFor.join() === run.waitsFor.join() &&
    JSON.stringify(known.scores) === JSON.stringify(run.scores)
  );
}
