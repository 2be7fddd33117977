import type { Delta, Event, Failure, RunStatus, TaskId } from "../../src/kernel/index.ts";
import { emptyView } from "../../src/surfaces/view/empty-view.ts";
import { RunHistory } from "../../src/surfaces/view/run-history.ts";
import type { RunTrace } from "../../src/surfaces/view/run-trace.ts";
import type { RunView, TaskView } from "../../src/surfaces/view/run-view.ts";
import { noSpend } from "../../src/surfaces/view/spend.ts";
import type { StepLog, StepView } from "../../src/surfaces/view/step-log.ts";
import { type StoredView, viewOfStored } from "../../src/surfaces/view/stored-view.ts";
import { VersionedMap } from "../../src/surfaces/view/versioned-map.ts";
import { addressOf, get, RequestError } from "../api/client.ts";
import { nameAgents } from "../../src/surfaces/view/agent-names.ts";
import { follow } from "../api/connection.ts";
import { changedRun } from "../api/runs-feed.ts";
import type { Run, Snapshot } from "../api/types.ts";
import { announce } from "../base/announce.ts";
import { RedrawPacer } from "../base/redraw-pacer.ts";
import { EventLog } from "./event-log.ts";
import { type Held, heldNow, heldThen, nothingHeld } from "./held.ts";
import { LivePast } from "./live-past.ts";
import { LiveSnapshot } from "./live-snapshot.ts";
import { LiveText, type LiveMessage } from "../../src/surfaces/view/live-text.ts";
import { RunEvents } from "./run-events.ts";
import { endWord, mayWrite } from "./status.ts";
import { batch, computed, effect, signal } from "@preact/signals";

/** The summary that the server puts into the page of a run. Later views of the page read it from the server. */
function firstSummary(runId: string): Run | null {
  const element = document.querySelector("#run-summary");
  element?.remove();
  const run = nameAgents(JSON.parse(element?.textContent ?? "null") as Run | null);
  return run?.runId === runId ? run : null;
}

/**
 * The run as its views draw it. Two facts about the whole run apply to each of its agents: while the run is paused
 * no agent works, and a fork has not paid for the shared part. `live` is the run at its newest event, which shows
 * whether it is a fork. Takes O(tasks) if one of the two facts applies.
 */
export function shownView(view: RunView, live: RunView | null): RunView {
  const forkedFrom = live?.forkedFrom ?? null;
  const isShared = forkedFrom !== null && view.seq <= forkedFrom.at;
  const isPaused = view.status === "paused";
  if (!isShared && !isPaused) return view;
  const shown = [...view.tasks].map((task) => {
    const free = isShared ? { ...task, own: noSpend, total: noSpend } : task;
    return isPaused ? pausedTask(free) : free;
  });
  return {
    ...view,
    ...(isShared && { forkedFrom, money: emptyView.money }),
    tasks: VersionedMap.of(shown, ({ taskId }) => taskId),
  };
}

/** A task of a paused run. It ends its calls in flight first. A question can be answered all the same. */
function pausedTask(task: TaskView): TaskView {
  if (task.endedAt !== null || task.questions > 0 || task.status === "pausing") return task;
  const isBusy = task.status === "running" && task.openCalls > 0;
  return { ...task, status: isBusy ? "pausing" : "paused" };
}

/** Number of events before the first view that the page reads at once. Older ones are read when a view needs them. */
const firstEvents = 1_000;

/** Whether a run executes a durable function, which has steps in place of a conversation. */
export function isWorkflow({ summary }: RunModel): boolean {
  return summary.value?.kind === "workflow";
}

/** Whether a run pays for a program behind the gateway, which has requests in place of a conversation. */
export function isGateway({ summary }: RunModel): boolean {
  return summary.value?.kind === "gateway";
}

/** Whether the tasks of a run are agents, which take seats and have a session. */
export function hasAgents(model: RunModel): boolean {
  return !isWorkflow(model) && !isGateway(model);
}

/** Whether a run is a call of an object. */
export function isCallOf({ summary }: RunModel): boolean {
  return summary.value?.flow?.object !== undefined;
}

/** Whether a run can be forked and started again. A call of an object and a gateway run have no task of their own. */
export function mayFork(model: RunModel): boolean {
  return !isGateway(model) && !isCallOf(model);
}

/** One run as the page shows it, calculated from its events, at the newest event or at the playhead. */
export class RunModel {
  readonly runId: string;
  /** The run at the newest event. `null` until the first events arrive. */
  readonly live = signal<RunView | null>(null);
  /** The run at the playhead. */
  readonly view = computed(() => {
    const { value } = this.#position;
    return value === null ? null : shownView(value, this.live.value);
  });
  readonly #position = signal<RunView | null>(null);
  /** Sequence number of the shown event. `null` means the newest one. */
  readonly playhead = signal<number | null>(null);
  readonly summary = signal<Run | null>(null);
  /** Why the run cannot be shown. */
  readonly refusal = signal<RequestError | null>(null);
  /** Changes whenever there is something new to draw. */
  readonly version = signal(0);
  readonly log = new EventLog();
  readonly texts = new LiveText();
  readonly #held = computed((): Held => {
    const view = this.view.value;
    if (this.playhead.value === null) return heldNow(this.snapshot);
    return view === null ? nothingHeld : heldThen(view, this.#inProgress.value);
  });
  /** The steps that were in progress at the playhead. */
  readonly #inProgress = signal<readonly StepView[]>([]);
  readonly #stop = new AbortController();
  readonly past: LivePast;
  readonly events: RunEvents;
  readonly #snapshot: LiveSnapshot;
  #history: RunHistory;
  readonly #openedAt = Date.now();
  #connection: AbortController | undefined;
  readonly #pacer = new RedrawPacer(() => this.#draw());
  #isEnded = false;
  /** Why the root ended without completing, if it did. */
  #failure: Failure | null = null;
  /** Settles when the last move by a step has ended. */
  #stepping: Promise<void> = Promise.resolve();

  /** `known` is a view of an earlier visit, which is shown until the server answers. */
  constructor(runId: string, known: RunView | null = null) {
    this.runId = runId;
    const { signal: stop } = this.#stop;
    this.past = new LivePast(runId, stop);
    this.events = new RunEvents(runId, this.log, stop);
    this.#snapshot = new LiveSnapshot(runId, stop);
    this.summary.value = firstSummary(runId);
    this.#history = known === null ? this.#historyFrom() : this.#historyFrom(known);
    if (known === null) return;
    this.log.startAt(known.seq + 1);
    this.live.value = known;
    this.#position.value = known;
  }

  /** Starts to follow the run. Returns a function that stops. */
  open(): () => void {
    void this.#readSummary();
    void this.#begin();
    const unfollow = effect(() => this.#summaryChanged(changedRun.value));
    return () => {
      unfollow();
      this.#stop.abort();
      this.#connection?.abort();
    };
  }

  /** Number of the event that is shown. */
  get shownSeq(): number {
    return this.playhead.value ?? this.lastSeq;
  }

  get steps(): StepLog {
    return this.past.steps;
  }

  get trace(): RunTrace {
    return this.past.trace;
  }

  /** Number of the newest event. */
  get lastSeq(): number {
    return this.#history.seq;
  }

  /** Seats and ledger of the live run, with what is held for calls in flight. `null` until it is read. */
  get snapshot(): Snapshot | null {
    return this.#snapshot.value.value;
  }

  /** What is held for calls in flight at the event that is shown. */
  get held(): Held {
    return this.#held.value;
  }

  /** Moves the playhead. `null`, or the newest event, follows the run again. */
  async seek(seq: number | null): Promise<void> {
    if (seq === null || seq >= this.lastSeq) {
      batch(() => {
        this.playhead.value = null;
        this.#position.value = this.live.value;
      });
      return;
    }
    const wanted = Math.max(0, seq);
    this.playhead.value = wanted;
    const [view, inProgress] = await Promise.all([this.#history.at(wanted), this.past.inProgressAt(wanted)]);
    if (this.playhead.value !== wanted) return;
    batch(() => {
      this.#position.value = view;
      this.#inProgress.value = inProgress;
    });
  }

  /** Moves the playhead to the next end of a call, before or after it. One move starts when the one before has ended. */
  step(by: 1 | -1): Promise<void> {
    const move = this.#stepping.then(() => this.#step(by));
    this.#stepping = move.catch(() => undefined);
    return move;
  }

  async #step(by: 1 | -1): Promise<void> {
    const { value: before } = this.playhead;
    const wanted = await this.events.callEnd(this.shownSeq, by, () => this.lastSeq);
    // The person may have moved the playhead while the page read events.
    if (this.playhead.value === before) await this.seek(wanted);
  }

  /**
   * Draws the run as the server sees it, then follows it from there. Therefore a long run is drawn immediately, and
   * data that only its older events contain are added when the server has sent them. If the server does not answer,
   * the page follows from the first event.
   */
  async #begin(): Promise<void> {
    const view = await this.#readView();
    if (this.#stop.signal.aborted) return;
    if (view !== null && view.seq >= 0) {
      this.#history = this.#historyFrom(view);
      this.log.startAt(Math.max(0, view.seq + 1 - firstEvents));
      this.#pacer.request();
    }
    this.#connect();
    if (this.lastSeq >= 0) this.past.read(() => this.#pacer.request());
  }

  #historyFrom(from?: RunView): RunHistory {
    return new RunHistory((first, last) => this.events.read(first, last), {
      ...(from !== undefined && { from }),
      readView: async (at) =>
        (await this.#readView(at)) ?? Promise.reject(new Error("the view was not read")),
    });
  }

  /** The view of the server at an event, or at the newest one. `null` if the server refuses or does not answer. */
  async #readView(at?: number): Promise<RunView | null> {
    try {
      const stored = await get("/api/runs/{runId}/tasks", {
        params: { runId: this.runId },
        query: at === undefined ? {} : { at },
        signal: this.#stop.signal,
      });
      // The schema of the server says that statuses and ids are texts.
      return viewOfStored(stored as unknown as StoredView);
    } catch (error) {
      if (error instanceof RequestError || this.#stop.signal.aborted) return null;
      throw error;
    }
  }

  #connect(): void {
    this.#connection?.abort();
    const connection = new AbortController();
    this.#connection = connection;
    this.#isEnded = false;
    void follow({
      address: () =>
        addressOf("/api/runs/{runId}/stream", { runId: this.runId }, { from: this.log.last + 1 }),
      signal: connection.signal,
      isOver: () => this.#isEnded,
      onMessage: ({ name, data }) => {
        if (name === "end") this.#end();
        else this.#add(data as Event | Delta);
      },
    });
  }

  /** Returns the text that the model of a task is writing now. An abandoned call may have left a part of a text. */
  textOf(taskId: TaskId): LiveMessage | undefined {
    const task = this.live.value?.tasks.get(taskId);
    return task === undefined || mayWrite(task) ? this.texts.of(taskId) : undefined;
  }

  #end(): void {
    this.#isEnded = true;
    this.#pacer.request();
    void this.#readSummary();
  }

  #add(item: Event | Delta): void {
    if ("seq" in item) this.#addEvent(item);
    else this.texts.add(item);
    this.#pacer.request();
  }

  #addEvent(event: Event): void {
    if (event.seq <= this.log.last) return;
    const isNew = event.seq > this.lastSeq;
    this.#history.add(event);
    this.log.add(event);
    if (isNew) this.past.add(event, this.#history.after);
    if (event.type === "message_end" || event.type === "task_end") this.texts.endMessage(event.taskId);
    if (event.type === "tool_execution_end") this.texts.endCall(event.taskId, event.data.callId);
    if (event.type === "task_end" && event.parentId === null) this.#failure = event.data.failure ?? null;
    if (event.at > this.#openedAt) sayEvent(event, this.#failure);
    if (!this.#isEnded) this.#snapshot.readSoon(() => this.live.peek()?.tasks.size ?? 0);
  }

  #draw(): void {
    if (this.#stop.signal.aborted) return;
    batch(() => {
      if (this.lastSeq >= 0) this.live.value = this.#history.latest();
      if (this.playhead.value === null) this.#position.value = this.live.value;
      this.version.value++;
    });
  }

  async #readSummary(): Promise<void> {
    const signalled = { params: { runId: this.runId }, signal: this.#stop.signal };
    try {
      this.summary.value = await get("/api/runs/{runId}", signalled);
    } catch (error) {
      if (error instanceof RequestError && error.code !== "offline") this.refusal.value = error;
    }
  }

  /** A run that was resumed after its end is followed again, also if it has ended again meanwhile. */
  #summaryChanged(run: Run | null): void {
    if (run?.runId !== this.runId) return;
    this.summary.value = run;
    // The page was opened before the run was started.
    if (this.refusal.peek() !== null) {
      this.refusal.value = null;
      void this.#begin();
    }
    if (this.#isEnded && run.updatedAt > (this.live.peek()?.at ?? 0)) this.#connect();
  }
}

function endSentence(status: RunStatus, failure: Failure | null): string {
  const words = endWord(status, failure);
  return /^stopped/iu.test(words)
    ? `The run ${words.toLowerCase()}.`
    : `The run ended: ${words.toLowerCase()}.`;
}

/** Speaks what a person must know: crashes, failures and the end. Approvals are spoken by the inbox. */
function sayEvent(event: Event, failure: Failure | null): void {
  if (event.type === "run_recover" && event.data.recoveries !== undefined)
    announce("A worker died. Another one continues the run.");
  else if (event.type === "run_end") announce(endSentence(event.data.status, failure));
  else if (event.type === "task_end" && event.data.failure !== undefined)
    announce(`${event.agentId} failed.`);
}
