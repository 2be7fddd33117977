import {
  addUsage,
  bookLedger,
  endsRun,
  Fault,
  rootTaskId as root,
  HistoryRetention,
  noUsage,
  openHeadcount,
  openLedger,
  seatHeadcount,
  type Commit,
  type Event,
  type EventData,
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type InputQueue,
  type JsonValue,
  type Ledger,
  type LostOwner,
  type Message,
  type SentRequest,
  type SessionChange,
  type Resolution,
  type SessionId,
  type SpawnOutcome,
  type StepAddress,
  type StepOpening,
  type StepRecord,
  type TaskChange,
  type TaskId,
  type TaskRecord,
  type NextRun,
  type UnknownPrice,
  type Usage,
} from "../../kernel/index.ts";
import { SharedContents, type TurnRecord } from "./shared-contents.ts";
import { HeldCapShare } from "./held-cap-share.ts";
import { parsePromiseId } from "./promise-ids.ts";
import { RecordedTotals } from "./recorded-totals.ts";
import { takeWithdrawn } from "./queued-inputs.ts";
import { Resolutions } from "./resolutions.ts";
import { updateClock } from "./task-clock.ts";
import { TaskTree } from "./task-tree.ts";
import { abandonmentOf, BranchValues, isInside, type Abandonment } from "./branch-values.ts";
import {
  continueTask,
  leaveToOrigin,
  newTaskState,
  noteFailedStart,
  noteStarted,
  type StartedState,
  type TaskState,
} from "./task-state.ts";
import {
  asksPerson,
  callerWait,
  causesOf,
  inboxDrain,
  promiseWait,
  queueWait,
  resolutionsTaken,
  runOf,
  startsRun,
  isShared,
  type TakenWait,
} from "./wait-names.ts";

/** The part of a commit that changes the state of its run. */
export type RunChange = Omit<Commit, "number" | "at" | "erases" | "mail" | "inbox" | "topics" | "usage">;

const empty: readonly never[] = [];

/** A task that has entries in a session. */
interface SessionWriter {
  readonly taskId: TaskId;
  readonly sessionId: SessionId;
}

/** Records which tasks of a run have entries in which sessions. */
class SessionWriters {
  /** Created with the first entry. */
  #writers: SessionWriter[] | undefined;

  note(change: SessionChange): void {
    if (change.type === "append" || change.type === "say") {
      const { sessionId } = change;
      const { taskId } = change.type === "say" ? change.batch : change.entry;
      if (taskId !== null && !this.sessionsOf(taskId).includes(sessionId))
        (this.#writers ??= []).push({ taskId, sessionId });
    }
    if (change.type === "remove") {
      const { sessionId, taskId } = change;
      this.#writers = this.#writers?.filter(
        (writer) => writer.taskId !== taskId || writer.sessionId !== sessionId,
      );
    }
  }

  /** Sessions in which the task has entries. */
  sessionsOf(taskId: TaskId): readonly SessionId[] {
    if (this.#writers === undefined) return empty;
    const sessions: SessionId[] = [];
    for (const writer of this.#writers) if (writer.taskId === taskId) sessions.push(writer.sessionId);
    return sessions;
  }
}

/**
 * The state of a run, computed from its commits in order. The owner changes this state before the commit is
 * durable; if the owner crashes, no other process has seen the lost part.
 *
 * States of a run, and the events and changes that move it:
 * - live: at least one task has not ended. Any task change, step, seat or ledger command applies.
 * - paused: live, but no step starts. `run_pause` moves to it, `run_resume` back to live.
 * - ended: only `usage_corrected` follows `run_end`. A `reopen` change or another event moves it to live (J5).
 *
 * States of a task: live, cancelled (live, but to be stopped), ended. Changes: `create`, `cancel`, `crash`, `continue`, `end`, `reopen`.
 */
export class RunState {
  readonly #tree = new TaskTree();
  readonly tasks: ReadonlyMap<TaskId, TaskState> = this.#tree.tasks;
  readonly contents = new SharedContents();
  readonly resolutions = new Resolutions();
  #headcount: Headcount | undefined;
  readonly ledger: Ledger;
  readonly #sessionWriters = new SessionWriters();
  /** Number of the next commit. */
  nextCommit = 0;
  /** `seq` of the next event. */
  nextSeq = 0;
  /** Ordinal of the next task. */
  nextTask = 0;
  /** Number of tasks that have not ended. */
  liveTasks = 0;
  /** Place of the last mailbox message that was consumed. -1 if none was consumed. */
  mailThrough = -1;
  /** L7: the owners in a row, oldest first, that were lost while they executed the run without progress. */
  losses: readonly LostOwner[] = empty;
  /** L7: whether a new owner executes what a lost owner left unfinished. It becomes `false` when the run only waits again. */
  isDrivenAgain = false;
  /** The last event ends the run (`endsRun`). */
  ended = false;
  /** The runs that the commit which ends this run submits. The end of the root sets them. */
  next: readonly NextRun[] = empty;
  /** The last compaction that the invocation requested. `null` if none was requested since the root was last resumed. */
  compactionRequest: { readonly instructions?: string } | null = null;
  /** Whether the application's own history store has deleted what it kept of the run. */
  isHistoryCleared = false;
  /** L21: the machine to which a program has bound the run. `undefined` if the run is not bound. */
  host: string | undefined;
  /** Whether the run is a fork, which shares its first commits with another run. */
  #isFork = false;
  /** Whether the run is a fork with an input, made at the end of the original run. Its owner first resumes it. */
  resumesFork = false;
  /** Number of the commit in which a losing branch last gave back the values that it had taken. */
  gaveBackIn = -1;
  /** Whether a person or a crash loop paused the run, so that no step starts until it is resumed. */
  paused = false;
  /** L7: whether the run is paused because of a crash loop. */
  isCrashLoop = false;
  /** Usage of all recorded model calls. In a fork, only the calls after the fork count. */
  usage: Usage = noUsage;
  /** B7: the cap shares that the run holds. */
  readonly capShare = new HeldCapShare();
  /** The standing and the spending that the commits of the run contain. */
  readonly totals: RecordedTotals;

  constructor(unknownPrice: UnknownPrice) {
    this.ledger = openLedger(unknownPrice);
    this.totals = new RecordedTotals(this);
  }

  get headcount(): Headcount {
    if (this.#headcount === undefined)
      throw new Fault("store_corrupt", "the journal of this run does not create a root task");
    return this.#headcount;
  }

  /** L7: whether the run's code was executed, or a call was in flight, after its last commit. */
  get isExecuting(): boolean {
    if (this.ended || this.paused) return false;
    return this.isDrivenAgain || (this.totals.isRunning && this.task(root).isStarted);
  }

  task(taskId: TaskId): TaskState {
    const task = this.tasks.get(taskId);
    if (task === undefined) throw new Fault("not_found", `task ${taskId} does not exist in this run`);
    return task;
  }

  /** J8: whether the task existed and belongs to a history that has ended. */
  isForgotten(taskId: TaskId): boolean {
    return Number(taskId.slice(1)) < this.nextTask && !this.tasks.has(taskId);
  }

  /** Returns the task to which a late event of this task belongs: the task itself, or the root if the task is forgotten. */
  ownerOf(taskId: TaskId): TaskId {
    return this.tasks.has(taskId) ? taskId : root;
  }

  /** J8: returns the tasks below this one that leave memory when it continues as new. */
  unreachableBelow(taskId: TaskId): readonly TaskState[] {
    return this.#tree.unreachableBelow(taskId, (each) => this.sessionsOf(each).length > 0);
  }

  /** Returns the live children of the task whose `onParentEnd` has this value. Costs O(children of the task). */
  liveChildren(parentId: TaskId, onParentEnd: TaskRecord["onParentEnd"]): readonly TaskId[] {
    return this.#tree
      .childrenOf(parentId)
      .filter(({ record, outcome }) => record.onParentEnd === onParentEnd && outcome === null)
      .map(({ record }) => record.taskId);
  }

  /** Returns the task and all tasks below it. Costs O(these tasks). */
  familyOf(taskId: TaskId): readonly TaskState[] {
    return this.#tree.familyOf(this.task(taskId));
  }

  /** Returns the live children of a task's abandoned branches that end with their parent. Costs O(children of the task). */
  childrenIn(parentId: TaskId, abandoned: Abandonment): readonly TaskId[] {
    return this.liveChildren(parentId, "cancel").filter((taskId) => {
      const { spawnedBy, cancelled } = this.task(taskId);
      return cancelled === null && spawnedBy !== undefined && isInside(spawnedBy, abandoned);
    });
  }

  /** Releases the records of a run that this process no longer owns. Timers may refer to this object for some time. */
  dispose(): void {
    for (const { steps } of this.tasks.values()) steps.clear();
  }

  /** Applies a stored commit. */
  fold(commit: Commit): void {
    const { number, at, events, steps, tasks, headcount, ledger, standing } = commit;
    this.nextCommit = number + 1;
    if (events !== undefined) for (const event of events) this.noteEvent(event);
    this.apply(commit, at);
    if (headcount !== undefined) for (const command of headcount) this.applySeat(command, at);
    if (ledger !== undefined) for (const command of ledger) bookLedger(this.ledger, command);
    if (events !== undefined) this.#foldEvents(events, tasks !== undefined);
    this.totals.note(commit);
    // L7: a step or a change of a task is progress.
    if ((steps ?? tasks) !== undefined) this.losses = empty;
    if (standing !== undefined && standing.status !== "running") this.isDrivenAgain = false;
  }

  #foldEvents(events: readonly Event[], changesTasks: boolean): void {
    for (const event of events) {
      // The loop above missed the start of a task that this commit creates.
      if (event.type === "task_start" && changesTasks) this.#noteStart(event);
      if (event.type === "task_suspend" && changesTasks) this.#noteSuspend(event);
      if (event.type === "approval_request" && changesTasks) this.#noteQuestion(event);
      if (event.type === "run_recover" && event.data.lost !== undefined)
        this.losses = [...this.losses, event.data.lost];
      if (event.type === "run_resume") this.losses = empty;
      if (event.type === "run_carry_over") this.dropInput(root, event.data.kind);
      if (event.type === "input_unread") this.dropInput(event.taskId, event.data.kind);
      if (event.type === "run_fork") this.#startFork(event);
    }
  }

  /** Removes the first input of the queue: another run has it now (S5), or its task completed without reading it. */
  dropInput(taskId: TaskId, queue: InputQueue): void {
    this.resolutions.take(taskId, queueWait(queue), 1);
  }

  /** Applies the start of a fork. The original run paid for the calls before it, and answers the messages before it. */
  #startFork({ data: { input } }: Event<"run_fork">): void {
    this.#isFork = true;
    this.resumesFork = input !== undefined && this.task(root).outcome !== null;
    this.losses = empty;
    this.isDrivenAgain = false;
    this.usage = noUsage;
    // The callers of the origin do not receive the end of the fork.
    this.resolutions.take(root, callerWait, Infinity);
    for (const task of this.tasks.values()) {
      leaveToOrigin(task);
      task.usage = noUsage;
      task.messages = empty;
    }
  }

  /** Whether this run answers an inbox message. A fork does not answer a message that the original run received. */
  answersFor(messageId: string): boolean {
    if (!this.#isFork) return true;
    for (const { messages } of this.tasks.values())
      if (messages.some(({ id }) => id === messageId)) return true;
    return false;
  }

  /** Applies an event. Most events change only the sequence number of the state. */
  noteEvent(event: Event): void {
    const { seq, type, at } = event;
    this.nextSeq = seq + 1;
    this.ended = type === "run_end";
    if (this.ended) this.isHistoryCleared = false;
    if (type === "usage_corrected") this.#noteCorrection(event);
    if (type === "metered_call" && event.data.usage !== null) this.#noteUsage(event.taskId, event.data.usage);
    if (type === "promise_reopen") {
      const { taskId, key } = parsePromiseId(event.data.id);
      this.resolutions.take(taskId, promiseWait(key), Infinity);
    }
    if (type === "input_withdraw") takeWithdrawn(this.resolutions, event);
    if (type === "budget_top_up") this.#noteTopUp(event);
    if (type === "approval_request" || type === "approval_decision") this.#noteQuestion(event);
    if (type === "task_start") this.#noteStart(event);
    if (type === "task_end") this.#noteEnd(event);
    if (type === "task_suspend") this.#noteSuspend(event);
    if (type === "run_bind") this.host ??= event.data.host;
    if (type === "compaction_requested") this.compactionRequest = requestIn(event.data);
    if (type === "run_recover" && event.data.recoveries !== undefined) this.isDrivenAgain = true;
    if (type !== "run_pause" && type !== "run_resume") return;
    this.paused = type === "run_pause";
    this.isCrashLoop = type === "run_pause" && (this.isCrashLoop || event.data.crashLoop !== undefined);
    for (const task of this.tasks.values()) updateClock(task, this.paused, at);
  }

  #noteCorrection(event: Event<"usage_corrected">): void {
    this.ended = endsRun(event);
    this.#noteUsage(this.ownerOf(event.taskId), event.data.usage);
  }

  /** The first commit of a fork creates its tasks after its events, and counts nothing that the original run has used. */
  #noteUsage(taskId: TaskId, usage: Usage): void {
    const task = this.tasks.get(taskId);
    if (task !== undefined) this.#addUsage(task, usage);
  }

  /** B5: moves the deadlines of a task and its descendants. No descendant's deadline is later than the task's. */
  #addTime(taskId: TaskId, ms: number): void {
    if (ms === 0) return;
    this.tasks.get(taskId)?.clock.addTime(ms);
    for (const { record } of this.#tree.childrenOf(taskId)) this.#addTime(record.taskId, ms);
  }

  /** B5: applies a top-up. After it, a task whose top-up was refused may ask again. */
  #noteTopUp({ data }: Event<"budget_top_up">): void {
    this.#addTime(data.taskId, data.add.deadlineMs ?? 0);
    for (const task of this.tasks.values()) task.isDeclined = false;
  }

  /** B5: records which question for a top-up is open, and whether the last one was refused. */
  #noteQuestion(event: Event<"approval_request" | "approval_decision">): void {
    const task = this.tasks.get(event.taskId);
    if (task === undefined) return;
    const { approvalId } = event.data;
    if (event.type === "approval_request") {
      if (event.data.kind !== "top_up" || task.topUpQuestion === approvalId) return;
      task.topUpQuestion = approvalId;
      task.topUpsAsked++;
    } else if (task.topUpQuestion === approvalId) {
      task.topUpQuestion = undefined;
      task.isDeclined = event.data.decision.decision !== "approved";
    }
  }

  #noteStart({ taskId, seq }: Event): void {
    const task = this.tasks.get(taskId);
    if (task === undefined) return;
    task.isStarted = true;
    task.startSeq ??= seq;
  }

  #noteEnd({ taskId, seq }: Event): void {
    const task = this.tasks.get(taskId);
    if (task !== undefined) task.endSeq = seq;
  }

  #noteSuspend({ taskId, data, at }: Event<"task_suspend">): void {
    const task = this.tasks.get(taskId);
    if (task === undefined) return;
    task.waitsFor = causesOf(data);
    task.suspendedAt = at;
    task.suspension = data;
  }

  /** Applies a commit's changes except events, seats and money. Its voids apply only to records of earlier commits. */
  apply(
    {
      tasks,
      opens,
      counts,
      requests,
      steps,
      voids,
      resolves,
      sessions,
      mailThrough,
      historyCleared,
    }: RunChange,
    at: number,
  ): void {
    if (sessions !== undefined) for (const change of sessions) this.#sessionWriters.note(change);
    if (voids !== undefined) for (const { taskId, address } of voids) this.#void(this.task(taskId), address);
    if (tasks !== undefined) for (const change of tasks) this.#change(change, at);
    if (resolves !== undefined)
      for (const resolution of resolves) {
        this.resolutions.add(resolution);
        if (resolution.value !== null) this.#noteRunEnd(resolution);
      }
    if (opens !== undefined) for (const opening of opens) this.open(opening, at);
    if (counts !== undefined)
      for (const count of counts) this.task(count.taskId).counts.set(count.address, count);
    if (requests !== undefined)
      for (const request of requests) this.#noteRequest(this.task(request.taskId), request);
    if (steps !== undefined) for (const step of steps) this.record(step, at);
    if (mailThrough !== undefined) this.mailThrough = mailThrough;
    if (historyCleared === true) this.isHistoryCleared = true;
    this.#tree.forgetLeaving();
  }

  /** J11: keeps the contents and the frame of a request, so that the records of later calls need not repeat them. */
  #noteRequest(task: TaskState, request: SentRequest): void {
    this.#holdContents(task.record, request);
    if (request.frame !== undefined) (task.frames ??= new Map()).set(request.role ?? "main", request.frame);
  }

  /** J5: removes a step's record, so that it runs again. E4: a tool call that has begun emits no second start event. */
  #void(task: TaskState, address: StepAddress): void {
    if (task.steps.get(address)?.outcome.kind === "failed") task.branchValues?.forget(address);
    task.steps.delete(address);
    task.branchValues?.takeBack(address);
    task.compensations = task.compensations?.filter((each) => each !== address);
    const seq = task.failedStarts.get(address);
    if (seq !== undefined) task.opened.set(address, seq);
  }

  /** A step has begun. */
  open({ taskId, address, seq }: StepOpening, at: number, task = this.task(taskId)): void {
    task.opened.set(address, seq);
    if (asksPerson(address)) updateClock(task, this.paused, at);
  }

  /** Records a step: updates usage, taken values, stored contents and read messages. */
  record(step: StepRecord, at: number, task = this.task(step.taskId)): void {
    const { kind, name, address, outcome } = step;
    task.steps.set(address, step);
    if (kind === "tool" && outcome.kind === "failed") noteFailedStart(task, address);
    if (task.opened.delete(address) && asksPerson(address)) updateClock(task, this.paused, at);
    if (kind === "tool") return;
    if (kind === "llm") {
      if (task.counts.size > 0) task.counts.delete(address);
      const reply = outcome.kind === "ok" ? outcome.value : outcome.failure.details;
      const { usage } = (reply ?? {}) as unknown as { readonly usage?: Usage };
      if (usage !== undefined) this.#addUsage(task, usage);
      return;
    }
    const taken = resolutionsTaken(step);
    if (taken !== undefined) this.#take(task, step, taken);
    if (kind === "compensate") (task.compensations ??= []).push(address);
    if (outcome.kind === "failed") return;
    if (kind === "spawn") this.#noteSpawn(address, outcome.value);
    if (task.branchValues !== undefined) {
      const abandoned = abandonmentOf(step);
      if (abandoned !== undefined) {
        task.branchValues.giveBack(address, abandoned);
        this.gaveBackIn = this.nextCommit;
      }
    }
    if (kind === "turn") this.#holdContents(task.record, outcome.value as unknown as TurnRecord | null);
    if (startsRun(step)) noteStarted(task, address, outcome.value);
    if (kind === "send" && name.startsWith("reply ")) task.replied.push(name.slice("reply ".length));
    if (kind !== "drain" || name !== inboxDrain) return;
    const messages = outcome.value as unknown as readonly Message[];
    for (const message of messages) task.drained.push(message);
    if (messages.length > 0) task.messages = [...task.messages, ...messages];
  }

  /** Keeps the amount that a started run had spent at its end. */
  #noteRunEnd({ taskId, wait, value }: Resolution): void {
    const runId = runOf(wait);
    const started = runId === undefined ? undefined : this.tasks.get(taskId)?.started;
    const run = runId === undefined ? undefined : started?.get(runId);
    const { spent } = (value ?? {}) as { readonly spent?: StartedState["spent"] };
    if (run !== undefined && spent !== undefined) started?.set(run.runId, { ...run, spent });
  }

  /** Records the outcome of a spawn. Its value is `null` if retention has erased it. */
  #noteSpawn(address: StepAddress, value: JsonValue): void {
    const spawned = value as unknown as SpawnOutcome | null;
    const child = spawned?.kind === "spawned" ? this.tasks.get(spawned.handle.taskId) : undefined;
    if (child !== undefined) child.spawnedBy = address;
  }

  #take(task: TaskState, { address }: StepRecord, taken: TakenWait): void {
    const { taskId } = task.record;
    const { wait, count } = taken;
    const values = this.resolutions.take(taskId, wait, count);
    if (!isShared(taken) || !address.includes("/")) return;
    task.branchValues ??= new BranchValues(taskId, this.resolutions);
    task.branchValues.note({ address, wait, values });
  }

  #addUsage(task: TaskState, usage: Usage): void {
    // If only this task has used models, the run shares its object.
    const isOnlyUser = this.usage === task.usage;
    task.usage = addUsage(task.usage, usage);
    this.usage = isOnlyUser ? task.usage : addUsage(this.usage, usage);
  }

  /** Returns the usage of the recorded calls of a task and its descendants. Costs O(descendants), for the root O(1). */
  usageOf(taskId: TaskId): Usage {
    return taskId === root ? this.usage : this.#tree.usageOf(this.task(taskId));
  }

  /** Applies a seat command, and stops or starts the clocks of the tasks that it pauses or recalls (H5). */
  applySeat(command: HeadcountCommand, at: number): HeadcountOutcome {
    const outcome = seatHeadcount(this.headcount, command);
    if (!("changes" in outcome)) return outcome;
    for (const { taskId, change } of outcome.changes) {
      const task = this.tasks.get(taskId);
      if (task === undefined || (change !== "paused" && change !== "recalled")) continue;
      task.unseated = change === "paused";
      updateClock(task, this.paused, at);
    }
    return outcome;
  }

  /** Sessions in which the task has entries. */
  sessionsOf(taskId: TaskId): readonly SessionId[] {
    return this.#sessionWriters.sessionsOf(taskId);
  }

  #change(change: TaskChange, at: number): void {
    if (change.type === "create") {
      this.#create(change.task, at);
      return;
    }
    const task = this.task(change.taskId);
    switch (change.type) {
      case "end":
        if (task.outcome === null) this.liveTasks--;
        task.outcome = change.outcome;
        task.endedOn = change.endedOn ?? empty;
        if (change.next !== undefined) this.next = change.next;
        // K4: the end closes the task's open questions. A resumed task asks them again.
        for (const address of task.opened.keys()) if (asksPerson(address)) task.opened.delete(address);
        task.topUpQuestion = undefined;
        break;
      case "reopen":
        // A resumed task is no longer cancelled and starts with a new count of crashes.
        if (task.outcome !== null) this.liveTasks++;
        task.outcome = null;
        if (change.taskId === root) {
          this.next = empty;
          this.compactionRequest = null;
          this.resumesFork = false;
        }
        task.resumed++;
        task.cancelled = null;
        task.isDeclined = false;
        task.crashes = 0;
        this.ended = false;
        break;
      case "cancel":
        task.cancelled = change;
        break;
      case "crash":
        task.crashes = change.crashes;
        task.crashedAt = at;
        break;
      case "continue":
        continueTask(task, change.input);
        this.#tree.leave(change.taskId, this.unreachableBelow(change.taskId));
        break;
    }
    updateClock(task, this.paused, at);
  }

  #create(record: TaskRecord, at: number): void {
    const ordinal = Number(record.taskId.slice(1));
    this.nextTask = Math.max(this.nextTask, ordinal + 1);
    // L18: an adopted root replaces the one that its start by name has created. Its deadline counts from that start.
    const named = this.tasks.get(record.taskId);
    if (named === undefined) this.liveTasks++;
    const fresh = newTaskState(record, at);
    const task = named === undefined ? fresh : { ...fresh, clock: named.clock };
    this.#tree.add(task);
    if (record.inherits !== undefined && "contents" in record.inherits)
      this.#holdContents(record, record.inherits);
    const { spawnBudget, priority } = record.supervision;
    if (record.parentId !== null) return;
    if (named !== undefined) this.#headcount = undefined;
    this.#headcount ??= openHeadcount(spawnBudget, record.taskId, priority);
  }

  /** J4: keeps the contents that later records name by hash. `null` stands for a turn that retention has erased. */
  #holdContents({ supervision }: TaskRecord, turn: Pick<TurnRecord, "contents"> | null): void {
    const lasts = supervision.retention !== HistoryRetention.NONE;
    const contents = turn?.contents ?? {};
    for (const hash in contents) this.contents.hold(hash, contents[hash] as JsonValue, lasts);
  }
}

function requestIn({ instructions }: EventData["compaction_requested"]): { readonly instructions?: string } {
  return instructions === undefined ? {} : { instructions };
}
