import { fromNanoUsd, type Event, type TaskId } from "../../../kernel/index.ts";
import type { Result } from "../../server/route-values.ts";
import { isUnanswered } from "../../view/question-log.ts";
import { addressOf } from "../../view/request-address.ts";
import { RunFold } from "../../view/run-fold.ts";
import type { QuestionView, RunView } from "../../view/run-view.ts";
import { viewOfStored, type StoredView } from "../../view/stored-view.ts";
import { isStoppedAtLimit } from "../../view/top-up-offer.ts";
import { RequestError, type RouteClient } from "../../client/route-client.ts";

export type Run = Result<"GET", "/api/runs/{runId}">;
/** The amounts that the person may add to the budget of a run, and what a stopped run needs. */
export type TopUpLeft = Result<"GET", "/api/runs/{runId}/top-up">;

export interface FeedOptions {
  readonly client: RouteClient;
  /** Called when there is something new to show. */
  readonly onChange: () => void;
  /** Called with each new event of the run. */
  readonly onEvent?: (event: Event) => void;
  /** Called with errors that cannot be reported by a call. */
  readonly onProblem: (error: unknown) => void;
}

/** What is shown of a run. */
export type RunState = Pick<RunFeed, "run" | "view" | "questions" | "lack" | "heldBy">;

/** Minimum time between two reads of the ledger, as on the page. Milliseconds. */
const ledgerMs = 1_500;
/** Maximum number of tasks for which the ledger is read repeatedly. A larger run takes too much time. */
const mostTasks = 1_000;

/** The current state of one run: its tasks, calculated from events, and the reserved amounts of its ledger. */
export class RunFeed {
  readonly #options: FeedOptions;
  readonly #client: RouteClient;
  readonly #stop = new AbortController();
  #run: Run;
  #fold: RunFold;
  #view: RunView | undefined;
  #ledger: Result<"GET", "/api/runs/{runId}/snapshot">["ledger"] | undefined;
  #ledgerTimer: NodeJS.Timeout | undefined;
  #left: TopUpLeft | undefined;
  #lostAt: number | undefined;
  #isFollowing = false;

  private constructor(run: Run, view: RunView, options: FeedOptions) {
    this.#run = run;
    this.#fold = new RunFold(view);
    this.#options = options;
    this.#client = options.client;
    this.#follow();
    this.#readLater(0);
  }

  static async open(runId: string, options: FeedOptions): Promise<RunFeed> {
    const params = { runId };
    const [run, stored] = await Promise.all([
      options.client.get("/api/runs/{runId}", { params }),
      options.client.get("/api/runs/{runId}/tasks", { params }),
    ]);
    return new RunFeed(run, viewOfStored(stored as unknown as StoredView), options);
  }

  /** The run as lists show it. */
  get run(): Run {
    return this.#run;
  }

  get view(): RunView {
    this.#view ??= this.#fold.view();
    return this.#view;
  }

  /** Time since which the server has not answered, in epoch milliseconds. `undefined` while the server answers. */
  get lostAt(): number | undefined {
    return this.#lostAt;
  }

  /** What the run needs to continue. `undefined` if a top-up would not continue it. */
  get lack(): NonNullable<TopUpLeft["lacks"]> | undefined {
    return this.#left?.lacks ?? undefined;
  }

  /** The open questions of all agents of the run to a person, the oldest first. */
  get questions(): readonly QuestionView[] {
    const { view } = this;
    return [...view.asked]
      .filter((question) => isUnanswered(question, view) && question.request.kind !== "client_tool")
      .toSorted((one, other) => one.askedAt - other.askedAt);
  }

  /**
   * Returns the amount that is reserved for calls in progress of a task and its reports, in dollars. 0 until the
   * ledger is read.
   */
  heldBy(taskId: TaskId): number {
    const isOver = this.view.endedAt !== null;
    const account = isOver ? undefined : this.#ledger?.accounts[taskId];
    return account === undefined ? 0 : fromNanoUsd(account.reserved.nanoUsd);
  }

  /** Takes over the state of the run from a list. If the run continues after its end, it is followed again. */
  update(run: Run): void {
    if (run.runId !== this.#run.runId) return;
    this.#run = run;
    if (!this.#isFollowing && run.endedAt === null) this.#follow();
    this.#readLater(ledgerMs);
    this.#options.onChange();
  }

  close(): void {
    this.#stop.abort();
    clearTimeout(this.#ledgerTimer);
  }

  #follow(): void {
    this.#isFollowing = true;
    this.#readEvents()
      .catch((error: unknown) => this.#options.onProblem(error))
      .finally(() => {
        this.#isFollowing = false;
        if (!this.#stop.signal.aborted) this.#readLater(0);
      });
  }

  async #readEvents(): Promise<void> {
    const { runId } = this.#run;
    const messages = this.#client.messages({
      path: () =>
        addressOf("/api/runs/{runId}/stream", { runId }, { from: this.#fold.seq + 1, deltas: false }),
      signal: this.#stop.signal,
      onOpen: () => {
        this.#lostAt = undefined;
        this.#options.onChange();
      },
      onLost: () => {
        this.#lostAt ??= Date.now();
        this.#options.onChange();
      },
    });
    for await (const { name, data } of messages) {
      if (name === "end") return;
      this.#add(data as Event);
    }
  }

  #add(event: Event): void {
    if (!("seq" in event)) return;
    this.#fold.add(event);
    this.#options.onEvent?.(event);
    this.#view = undefined;
    this.#readLater(ledgerMs);
    this.#options.onChange();
  }

  #readLater(delay: number): void {
    this.#ledgerTimer ??= setTimeout(() => {
      this.#ledgerTimer = undefined;
      this.#read().catch((error: unknown) => {
        // The stream says that the server does not answer, and the next event reads again.
        if (error instanceof RequestError && error.code === "offline") return;
        if (!this.#stop.signal.aborted) this.#options.onProblem(error);
      });
    }, delay);
  }

  /** Reads the data that the events do not contain. While the server does not answer, the last values are kept. */
  async #read(): Promise<void> {
    if (this.#lostAt !== undefined) return;
    const { signal } = this.#stop;
    const params = { runId: this.#run.runId };
    const isSmall = this.view.tasks.size <= mostTasks;
    const [run, snapshot, left] = await Promise.all([
      this.#client.get("/api/runs/{runId}", { params, signal }),
      isSmall && this.view.endedAt === null
        ? this.#client.get("/api/runs/{runId}/snapshot", { params, signal })
        : undefined,
      isStoppedAtLimit(this.view.status)
        ? this.#client.get("/api/runs/{runId}/top-up", { params, signal })
        : undefined,
    ]);
    this.#run = run;
    this.#ledger = snapshot?.ledger ?? this.#ledger;
    this.#left = left;
    this.#options.onChange();
  }
}
