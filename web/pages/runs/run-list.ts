import { effect, signal } from "@preact/signals";
import { errorText, get } from "../../api/client.ts";
import { changedRun, connected } from "../../api/runs-feed.ts";
import type { Run } from "../../api/types.ts";
import { fits, serverFilter, type RunFilter } from "../../model/run-query.ts";

const pageSize = 50;

/** The runs that fit a filter, read page by page and kept up to date. */
export class RunList {
  readonly runs = signal<readonly Run[]>([]);
  readonly state = signal<"loading" | "more" | "complete">("loading");
  readonly problem = signal<string | null>(null);
  /** New runs that are not shown yet, because the person is reading the list. */
  readonly fresh = signal<readonly Run[]>([]);
  /** Whether new runs may appear at once. */
  isFree: () => boolean = () => true;
  readonly #filter: RunFilter;
  #stop = new AbortController();
  #after: string | null = null;
  /** Whether the runs come from an earlier visit. The next answer replaces them. */
  #isOld = false;
  #isReading = false;
  /** Whether the next page was requested while another page was being read. */
  #isMoreWanted = false;

  constructor(filter: RunFilter) {
    this.#filter = filter;
  }

  /** Reads the runs and follows their changes. Returns a function that stops; what was read stays. */
  open(): () => void {
    this.#stop = new AbortController();
    this.#isOld = true;
    const unfollow = effect(() => {
      void connected.value;
      void this.#readFirst();
    });
    const unwatch = effect(() => this.#changed(changedRun.value));
    return () => {
      unfollow();
      unwatch();
      this.#stop.abort();
      this.#isReading = false;
      this.#isMoreWanted = false;
    };
  }

  /** Reads the next page, after the one that is being read. */
  async more(): Promise<void> {
    if (this.state.peek() !== "more") return;
    if (this.#isReading) this.#isMoreWanted = true;
    else await this.#read(this.#after);
  }

  /** Shows the new runs. If the list is sorted by cost, their place is unknown, so the list is read again. */
  showFresh(): void {
    if (this.#filter.sort === "costliest") {
      this.fresh.value = [];
      this.#isOld = true;
      void this.#readFirst();
      return;
    }
    this.runs.value = [...this.fresh.value, ...this.runs.value];
    this.fresh.value = [];
  }

  async #readFirst(): Promise<void> {
    if (this.#isReading) return;
    await this.#read(null);
  }

  async #read(after: string | null): Promise<void> {
    this.#isReading = true;
    const { signal: stopped } = this.#stop;
    const { sort } = this.#filter;
    try {
      const { runs, next } = await get("/api/runs", {
        query: { limit: pageSize, sort, ...serverFilter(this.#filter), ...(after !== null && { after }) },
        signal: stopped,
      });
      this.problem.value = null;
      if (this.#isOld) this.runs.value = runs;
      else this.#merge(runs, after === null);
      if (after !== null || this.#after === null || this.#isOld) this.#after = next;
      this.#isOld = false;
      this.state.value = this.#after === null ? "complete" : "more";
    } catch (error) {
      if (!stopped.aborted) this.problem.value = errorText(error);
    } finally {
      if (!stopped.aborted) this.#isReading = false;
    }
    if (!this.#isMoreWanted || stopped.aborted) return;
    this.#isMoreWanted = false;
    await this.more();
  }

  /** Merges a page into the list. The first page replaces changed runs and adds new ones; it removes no shown run. */
  #merge(read: readonly Run[], isFirst: boolean): void {
    const byId = new Map(read.map((run) => [run.runId, run]));
    const known = this.runs.peek().map((run) => byId.get(run.runId) ?? run);
    const ids = new Set(known.map(({ runId }) => runId));
    const added = read.filter(({ runId }) => !ids.has(runId));
    this.runs.value = isFirst ? [...added, ...known] : [...known, ...added];
  }

  /** Removes runs that were deleted. */
  drop(runIds: readonly string[]): void {
    this.runs.value = this.runs.peek().filter(({ runId }) => !runIds.includes(runId));
  }

  #changed(run: Run | null): void {
    if (run === null || this.state.peek() === "loading") return;
    const shown = this.runs.peek();
    if (shown.some(({ runId }) => runId === run.runId)) {
      this.runs.value = shown.map((each) => (each.runId === run.runId ? run : each));
      return;
    }
    const waiting = this.fresh.peek();
    if (waiting.some(({ runId }) => runId === run.runId)) {
      this.fresh.value = waiting.map((each) => (each.runId === run.runId ? run : each));
      return;
    }
    if (!fits(run, this.#filter)) return;
    const isByCost = this.#filter.sort === "costliest";
    const newest = shown[0]?.createdAt ?? 0;
    if (!isByCost && run.createdAt < newest) return;
    if (this.isFree() && !isByCost) this.runs.value = [run, ...shown];
    else this.fresh.value = [run, ...waiting];
  }
}
