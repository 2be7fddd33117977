import { unfinishedStatuses } from "../../../kernel/index.ts";
import type { Result } from "../../server/route-values.ts";
import { RequestError, type RouteClient } from "../../client/route-client.ts";
import type { FeedOptions, Run } from "./run-feed.ts";

export type Inbox = Result<"GET", "/api/inbox">;
export type Facts = Result<"GET", "/api/facts">;

/** What is shown of all runs. */
export type StoreState = Pick<StoreFeed, "facts" | "inbox">;

/** Milliseconds after a change in which lists are not read again. */
const settleMs = 400;
/** Maximum number of runs of each kind that are listed. */
const mostRuns = 200;
/** Maximum number of items of each kind that the inbox lists. */
const mostItems = 50;

/**
 * The current state of all runs: the runs that have not ended, the newest other runs, the items that wait for the
 * person, and statistics.
 */
export class StoreFeed {
  readonly #options: FeedOptions & { readonly onRun: (run: Run) => void };
  readonly #client: RouteClient;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #runs: readonly Run[] = [];
  #inbox: Inbox | undefined;
  #facts: Facts | undefined;
  #lostAt: number | undefined;
  /** Whether lists are read after each change. If `false`, they are read only when the board is shown again. */
  #isShown = true;

  /** `onRun` is called with each changed run. */
  constructor(options: FeedOptions & { readonly onRun: (run: Run) => void }) {
    this.#options = options;
    this.#client = options.client;
    this.#follow().catch((error: unknown) => options.onProblem(error));
  }

  async #follow(): Promise<void> {
    const { onChange, onRun } = this.#options;
    const messages = this.#client.messages({
      path: () => "/api/stream",
      signal: this.#stop.signal,
      onOpen: () => {
        this.#lostAt = undefined;
        this.#readSoon();
      },
      onLost: () => {
        this.#lostAt ??= Date.now();
        onChange();
      },
    });
    for await (const { name, data } of messages) {
      if (name !== "ready") onRun(data as Run);
      this.#readSoon();
    }
  }

  /** The runs. Those that have not ended come first; each part is sorted by age, the newest first. */
  get runs(): readonly Run[] {
    return this.#runs;
  }

  /** The items that wait for the person. `undefined` until they are read. */
  get inbox(): Inbox | undefined {
    return this.#inbox;
  }

  get facts(): Facts | undefined {
    return this.#facts;
  }

  /** Time since which the server has not answered, in epoch milliseconds. `undefined` while the server answers. */
  get lostAt(): number | undefined {
    return this.#lostAt;
  }

  setShown(isShown: boolean): void {
    this.#isShown = isShown;
    if (isShown) this.#readSoon();
  }

  /** Reads the lists. */
  async read(): Promise<void> {
    const { signal } = this.#stop;
    const [live, newest, inbox, facts] = await Promise.all([
      this.#client.get("/api/runs", { query: { status: [...unfinishedStatuses], limit: mostRuns }, signal }),
      this.#client.get("/api/runs", { query: { limit: mostRuns }, signal }),
      this.#client.get("/api/inbox", { query: { limit: mostItems }, signal }),
      this.#client.get("/api/facts", { signal }),
    ]);
    // A run that ended as paused has this status, too.
    const working = live.runs.filter(({ endedAt }) => endedAt === null);
    const ids = new Set(working.map(({ runId }) => runId));
    this.#runs = [...working, ...newest.runs.filter(({ runId }) => !ids.has(runId))];
    [this.#inbox, this.#facts] = [inbox, facts];
    this.#options.onChange();
  }

  close(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  #readSoon(): void {
    if (!this.#isShown || this.#stop.signal.aborted) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.read().catch((error: unknown) => {
        // The stream says that the server does not answer, perhaps a moment later, and reads again when it does.
        if (error instanceof RequestError && error.code === "offline") return;
        if (!this.#stop.signal.aborted) this.#options.onProblem(error);
      });
    }, settleMs);
  }
}
