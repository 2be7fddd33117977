import {
  addUsage,
  BudgetExhaustedError,
  CancellationError,
  Fault,
  formatTaskId,
  MiddlewareTermination,
  noUsage,
  Priority,
  Supervision,
  tightenBudget,
  type AgentId,
  type CancellationStatus,
  type Decision,
  type HeadcountCommand,
  type HeadcountOutcome,
  type JsonValue,
  type Lease,
  type LedgerCommand,
  type LedgerOutcome,
  type PlacedMail,
  type ReserveCommand,
  type Rest,
  type RunRecord,
  type RunStatus,
  type SeatStatus,
  type SpawnOptions,
  type SpawnOutcome,
  type StepAddress,
  type TaskId,
  type TaskOutcome,
  type TaskRecord,
  type Usage,
} from "../kernel/index.ts";
import type { OwnerContext } from "./owner-context.ts";
import { RunLog } from "./run-log.ts";
import { restartDelayMs } from "./run-retry.ts";
import { RunState } from "./run-state.ts";
import { ContinueAsNew } from "./task-context.ts";
import { TaskRunner } from "./task-runner.ts";
import type { TaskTree } from "./task-tree.ts";
import { Waits } from "./waits.ts";

/** C1: which tasks a stop reaches, whom a seat goes to, what a parent's end does: all of one run, in one place. */
export class RunOwner implements TaskTree {
  readonly #owner: OwnerContext;
  readonly #lease: Lease;
  readonly #record: RunRecord;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #waits: Waits;
  readonly #runners = new Map<TaskId, TaskRunner>();
  readonly #ends = new Map<TaskId, PromiseWithResolvers<TaskOutcome>>();
  readonly #decisions = new Map<string, PromiseWithResolvers<Decision>>();
  readonly #rest = Promise.withResolvers<Rest>();
  #restTimer: (() => void) | undefined;
  #pumping: Promise<void> | undefined;
  #pumpAgain = false;
  #over = false;

  private constructor(owner: OwnerContext, lease: Lease, record: RunRecord, state: RunState) {
    this.#owner = owner;
    this.#lease = lease;
    this.#record = record;
    this.#state = state;
    this.#waits = new Waits(owner.clock);
    const { store, clock } = owner;
    this.#log = new RunLog({ store, lease, state, clock, onBroken: (fault) => this.#abandon(fault) });
  }

  /** Costs O(commits of the run). */
  static async load(owner: OwnerContext, lease: Lease): Promise<RunOwner> {
    const { journal } = owner.store;
    const record = await journal.find(lease.runId);
    if (record === undefined) throw new Fault("not_found", `there is no run ${lease.runId} in this store`);
    const state = new RunState(owner.unknownPrice);
    for await (const commit of journal.read(lease.runId)) state.fold(commit);
    return new RunOwner(owner, lease, record, state);
  }

  get tenantId(): string | null {
    return this.#record.tenantId;
  }

  /** Works on the run until it rests. Rejects when the run was lost or its store fails. */
  async drive(): Promise<Rest> {
    this.#recover();
    await this.#pump();
    if (!this.#over) {
      for (const taskId of this.#state.tasks.keys()) this.#startIfSeated(taskId);
      this.#finishIfDone();
      this.noteIdle();
    }
    return this.#rest.promise;
  }

  /** There may be mail. */
  poke(): void {
    void this.#pump().catch((error: unknown) => this.#abandon(Fault.from(error)));
  }

  /** Lets everything go, as a crash would; what is durable stays. */
  async release(): Promise<void> {
    if (this.#over) return;
    await this.#log.flush();
    this.#let({ kind: "ready" });
  }

  seatOf(taskId: TaskId): SeatStatus {
    return this.#state.paused ? "paused" : (this.#state.headcount.tasks[taskId]?.status ?? "paused");
  }

  settle(taskId: TaskId): void {
    if (this.seatOf(taskId) === "pausing") this.#seat({ type: "settle", taskId });
  }

  suspend(taskId: TaskId): void {
    if (this.#state.headcount.tasks[taskId]?.idle === false) this.#seat({ type: "suspend", taskId });
    this.noteIdle();
  }

  wake(taskId: TaskId): void {
    this.#stayAwake();
    if (this.#state.headcount.tasks[taskId]?.idle === true) this.#seat({ type: "wake", taskId });
  }

  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: SpawnOptions): SpawnOutcome {
    const { priority = Priority.NORMAL } = options;
    const agent = this.#owner.findAgent(agentId);
    if (agent === undefined)
      throw new Fault("not_found", `there is no agent ${agentId}: register it with the runtime`);
    const taskId = formatTaskId(this.#state.nextTask);
    const outcome = this.#state.tasks.has(parentId)
      ? this.#log.seat({ type: "acquire", taskId, parentId, priority })
      : ({ kind: "ignored" } as const);
    if (outcome.kind === "refused") {
      const { reason, holders } = outcome;
      this.#log.tell(parentId, { type: "spawn_refuse", data: { agentId, priority, reason, holders } });
      return { kind: "refused", reason, holders };
    }
    const parent = this.#state.task(parentId).record;
    const supervision = Supervision.fromJSON(parent.supervision).spawnChild({
      parentId: parent.agentId,
      priority,
      executionBudget: { ...agent.budget, ...options.budget },
      ...(options.retention === undefined ? {} : { retention: options.retention }),
    });
    const budget = tightenBudget(parent.budget, { ...agent.budget, ...options.budget });
    this.#create({
      taskId,
      agentId,
      parentId,
      supervision: supervision.toJSON(),
      budget,
      input,
      messages: [],
      userId: parent.userId,
      metadata: parent.metadata,
      streaming: parent.streaming,
      onParentEnd: options.onParentEnd ?? "cancel",
      onPause: options.onPause ?? "suspend",
      tools: options.tools ?? null,
    });
    const data = { childTaskId: taskId, agentId, priority };
    if (outcome.kind === "pending") {
      this.#log.tell(parentId, { type: "spawn_wait", data: { ...data, victim: outcome.victim } });
    } else this.#log.tell(parentId, { type: "spawn_start", data });
    this.#applySeats(outcome, taskId);
    return { kind: "spawned", handle: { taskId, agentId } };
  }

  whenEnded(taskId: TaskId): Promise<TaskOutcome> {
    const { outcome } = this.#state.task(taskId);
    if (outcome !== null) return Promise.resolve(outcome);
    const end = this.#ends.get(taskId) ?? Promise.withResolvers<TaskOutcome>();
    this.#ends.set(taskId, end);
    return end.promise;
  }

  cancel(taskId: TaskId, reason: string, status: CancellationStatus = "cancelled"): void {
    const task = this.#state.tasks.get(taskId);
    if (task === undefined || task.outcome !== null || task.cancelled !== null) return;
    this.#log.add({ tasks: [{ type: "cancel", taskId, reason, status }] });
    const runner = this.#runners.get(taskId);
    runner?.token.cancel(reason, status);
    for (const each of this.#descendants(taskId)) this.cancel(each, reason, status);
    // Whoever only waits, or has no seat, cannot notice by itself.
    if (runner === undefined || runner.idle) this.#endCancelled(taskId, reason, status);
  }

  resolved(taskId: TaskId, wait: string, until: number | null): Promise<JsonValue | undefined> {
    const early = this.#state.resolution(taskId, wait);
    if (early !== undefined) return Promise.resolve(early.value as JsonValue);
    return this.#waits.wait(taskId, wait, until);
  }

  reserve(taskId: TaskId, command: ReserveCommand): Decision | undefined {
    const outcome = this.#log.book(command);
    this.#tellMoney(taskId, outcome, command.id);
    if (!outcome.applied) throw new Fault("internal", `task ${taskId} has no purse to reserve from`);
    return outcome.decisions.find(({ id }) => id === command.id);
  }

  decided(reservationId: string): Promise<Decision> {
    const decision = this.#decisions.get(reservationId) ?? Promise.withResolvers<Decision>();
    this.#decisions.set(reservationId, decision);
    return decision.promise;
  }

  book(taskId: TaskId, command: LedgerCommand): void {
    this.#tellMoney(taskId, this.#log.book(command));
  }

  /** If all there is to do is wait, the run is let go after a while. */
  noteIdle(): void {
    if (this.#over || this.#restTimer !== undefined || !this.#isIdle()) return;
    const { clock, suspendAfterMs } = this.#owner;
    this.#restTimer = clock.schedule(clock.now() + suspendAfterMs, () => {
      this.#restTimer = undefined;
      if (this.#isIdle()) void this.#suspendRun().catch((error: unknown) => this.#abandon(Fault.from(error)));
    });
  }

  #stayAwake(): void {
    this.#restTimer?.();
    this.#restTimer = undefined;
  }

  #isIdle(): boolean {
    const live = [...this.#state.tasks.values()].filter(({ outcome }) => outcome === null);
    return live.length > 0 && live.every(({ record }) => this.#runners.get(record.taskId)?.idle ?? true);
  }

  async #suspendRun(): Promise<void> {
    await this.#log.flush();
    if (this.#isIdle()) this.#let({ kind: "suspended", wakeAt: this.#waits.nextTime });
  }

  /** B3, H2: what the last owner had open is lost, and whoever was pausing has no call open any more. */
  #recover(): void {
    if (this.#state.ended) return;
    const { ledger, headcount } = this.#state;
    const lost = Object.values(ledger.open);
    const pausing = Object.values(headcount.tasks).some(({ status }) => status === "pausing");
    if (lost.length === 0 && !pausing && ledger.waiting.length === 0) return;
    const root = formatTaskId(0);
    this.#log.tell(root, { type: "run_recover", data: { epoch: this.#lease.epoch } });
    for (const { id, taskId, attempt, held, priced } of lost) {
      const costUsd = priced ? held.nanoUsd / 1e9 : null;
      this.#log.tell(taskId, {
        type: "budget_lost",
        data: { reservationId: id, attempt, tokens: held.tokens, costUsd },
      });
    }
    this.#log.book({ type: "crash" });
    const outcome = this.#log.seat({ type: "crash" });
    this.#tellSeats(outcome);
  }

  #create(task: TaskRecord): void {
    const { taskId, parentId, budget, supervision } = task;
    this.#log.add({ tasks: [{ type: "create", task }] });
    this.#log.book({ type: "open", taskId, parentId, budget, priority: supervision.priority });
    this.#log.tell(taskId, { type: "task_start", data: { priority: supervision.priority, budget } });
  }

  #startIfSeated(taskId: TaskId): void {
    const task = this.#state.task(taskId);
    const seat = this.seatOf(taskId);
    if (task.outcome !== null || this.#runners.has(taskId) || (seat !== "seated" && seat !== "pausing"))
      return;
    if (task.cancelled !== null && task.steps.size === 0) {
      this.#endCancelled(taskId, task.cancelled.reason, task.cancelled.status);
      return;
    }
    const { record } = task;
    const agent = this.#owner.findAgent(record.agentId);
    if (agent === undefined) {
      throw new Fault("not_found", `there is no agent ${record.agentId} here to go on with task ${taskId}`);
    }
    const parent = record.parentId === null ? undefined : this.#runners.get(record.parentId)?.token;
    const [owner, log, state] = [this.#owner, this.#log, this.#state];
    const runner = new TaskRunner({ taskId, agent, owner, log, state, tree: this, parentToken: parent });
    this.#runners.set(taskId, runner);
    this.#watchDeadline(runner);
    void this.#follow(runner);
  }

  /** B5: a task that only waits does not look at the clock by itself. */
  #watchDeadline(runner: TaskRunner): void {
    const { deadline } = runner.meta;
    if (deadline === null) return;
    this.#waits.at(deadline + 1, () => {
      const { task, meta, taskId } = runner;
      if (task.outcome !== null || this.#runners.get(taskId) !== runner) return;
      if (task.pausedSince !== null || meta.deadline !== deadline) return;
      this.cancel(taskId, "deadline exceeded", "deadline_exceeded");
    });
  }

  async #follow(runner: TaskRunner): Promise<void> {
    const { taskId } = runner;
    try {
      const value = await runner.run();
      await this.#waitForChildren(taskId, runner);
      this.#end(taskId, { status: "completed", output: (value ?? null) as JsonValue, failure: null });
    } catch (error) {
      if (runner.dropped) return;
      if (error instanceof ContinueAsNew) this.#continueAsNew(runner, error.state);
      else this.#fail(runner, error);
    }
  }

  async #waitForChildren(taskId: TaskId, runner: TaskRunner): Promise<void> {
    const waited = this.#children(taskId).filter(
      (child) => this.#state.task(child).record.onParentEnd === "wait",
    );
    if (waited.length > 0) await runner.waiting(Promise.all(waited.map((child) => this.whenEnded(child))));
  }

  #fail(runner: TaskRunner, error: unknown): void {
    const { taskId, task, lastFault } = runner;
    const fault = Fault.from(error);
    const given = lastFault === undefined ? undefined : task.steps.get(lastFault)?.outcome;
    const delivered =
      given?.kind === "failed" &&
      given.failure.code === fault.code &&
      given.failure.message === fault.message;
    if (!isStop(fault) && !delivered && fault.code !== "journal_mismatch") {
      const crashes = task.crashes + 1;
      const delayMs = restartDelayMs(crashes, this.#owner.runRetry);
      if (delayMs !== null) {
        this.#restart(runner, crashes, delayMs, fault);
        return;
      }
    }
    const status = fault instanceof CancellationError ? "cancelled" : "failed";
    this.#end(taskId, { status, output: null, failure: fault.toJSON() }, delivered ? lastFault : undefined);
  }

  #restart(runner: TaskRunner, crashes: number, delayMs: number, fault: Fault): void {
    const { taskId } = runner;
    this.#log.add({ tasks: [{ type: "crash", taskId, crashes }] });
    this.#log.tell(taskId, {
      type: "task_retry",
      data: { attempt: crashes, delayMs, failure: fault.toJSON() },
    });
    runner.drop();
    this.#waits.at(this.#owner.clock.now() + delayMs, () => {
      this.#stayAwake();
      this.#runners.delete(taskId);
      this.#startIfSeated(taskId);
    });
    this.noteIdle();
  }

  /** J8: the task ends here and goes on, under its own seat and purse, in a new one. */
  #continueAsNew(runner: TaskRunner, state: JsonValue): void {
    const { record } = runner.task;
    const nextTaskId = formatTaskId(this.#state.nextTask);
    this.#log.tell(runner.taskId, { type: "task_continue_as_new", data: { nextTaskId } });
    const parentId = record.parentId ?? record.taskId;
    this.#log.seat({ type: "acquire", taskId: nextTaskId, parentId, priority: record.supervision.priority });
    this.#create({ ...record, taskId: nextTaskId, input: state, messages: [] });
    this.#startIfSeated(nextTaskId);
    void this.whenEnded(nextTaskId).then((outcome) => this.#end(runner.taskId, outcome));
  }

  #endCancelled(taskId: TaskId, reason: string, status: CancellationStatus): void {
    const failure = new CancellationError(reason, { status }).toJSON();
    this.#runners.get(taskId)?.drop();
    this.#end(taskId, { status: "cancelled", output: null, failure });
  }

  /** H4: frees the seat in the commit that ends the task, whoever crashed. */
  #end(taskId: TaskId, outcome: TaskOutcome, endedOn?: StepAddress): void {
    if (this.#over || this.#state.task(taskId).outcome !== null) return;
    for (const child of this.#children(taskId)) {
      if (this.#state.task(child).record.onParentEnd === "cancel") this.cancel(child, "its parent has ended");
    }
    const { status, output, failure } = outcome;
    this.#log.add({
      tasks: [{ type: "end", taskId, outcome, ...(endedOn === undefined ? {} : { endedOn }) }],
    });
    this.#log.tell(taskId, {
      type: "task_end",
      data: { status, output, ...(failure === null ? {} : { failure }) },
    });
    for (const reservation of Object.values(this.#state.ledger.open)) {
      if (reservation.taskId === taskId) this.book(taskId, { type: "lose", id: reservation.id });
    }
    // The root keeps its seat and its purse for as long as there is a run: it may be resumed.
    const isRoot = this.#state.task(taskId).record.parentId === null;
    if (!isRoot) this.#log.book({ type: "close", taskId });
    this.#answerMessages(taskId, outcome);
    this.#runners.get(taskId)?.drop();
    this.#runners.delete(taskId);
    this.#ends.get(taskId)?.resolve(outcome);
    this.#ends.delete(taskId);
    if (!isRoot) this.#seat({ type: "release", taskId });
    this.#finishIfDone();
  }

  /** An activation acknowledges what it was started with; whoever asked and got no answer is told why. */
  #answerMessages(taskId: TaskId, { status, failure }: TaskOutcome): void {
    const { record, drained } = this.#state.task(taskId);
    const { messages, agentId } = record;
    if (messages.length === 0 && drained.size === 0) return;
    const replied = this.#runners.get(taskId)?.replied ?? new Set();
    const unanswered = messages.filter(({ id, replyTo }) => replyTo !== undefined && !replied.has(id));
    const failed = status === "failed" || status === "cancelled";
    const nacked = failed ? messages.filter(({ replyTo }) => replyTo === undefined).map(({ id }) => id) : [];
    const ids = [...messages.map(({ id }) => id), ...drained];
    this.#log.add({
      inbox: [
        { type: "ack", agentId, messageIds: ids.filter((id) => !nacked.includes(id)) },
        { type: "nack", agentId, messageIds: nacked },
      ],
      mail: unanswered.flatMap(({ id, replyTo }) => {
        if (replyTo === undefined || !failed) return [];
        const { runId, taskId: asker, wait } = replyTo;
        const value = {
          kind: status === "failed" ? "target_failed" : "target_cancelled",
          failure: failure as unknown as JsonValue,
        };
        const body = { type: "resolve", taskId: asker, wait, value } as const;
        return [
          { id: `end ${this.#lease.runId} ${id}`, runId, from: agentId, at: this.#owner.clock.now(), body },
        ];
      }),
    });
  }

  #finishIfDone(): void {
    if (this.#over || this.#state.ended) {
      if (this.#state.ended) this.#restEnded();
      return;
    }
    const tasks = [...this.#state.tasks.values()];
    if (tasks.some(({ outcome }) => outcome === null)) return;
    const root = this.#state.task(formatTaskId(0));
    const status = statusOf(root.outcome);
    const usage = this.#usage();
    const account = this.#state.ledger.accounts[root.record.taskId];
    const data = { status, usage, costUsd: usage.costUsd, turns: account?.spent.turns ?? 0 };
    this.#log.tell(root.record.taskId, { type: "run_end", data });
    this.#log.flush().then(
      () => this.#restEnded(),
      (error: unknown) => this.#abandon(Fault.from(error)),
    );
  }

  /** What can be gone on with waits for an order; what cannot has ended for good. */
  #restEnded(): void {
    const status = statusOf(this.#state.task(formatTaskId(0)).outcome);
    this.#let(status === "completed" ? { kind: "ended" } : { kind: "suspended", wakeAt: null });
  }

  /** Of all model calls recorded in the run. */
  #usage(): Usage {
    let usage = noUsage;
    for (const { steps } of this.#state.tasks.values()) {
      for (const { kind, outcome } of steps.values()) {
        if (kind === "llm" && outcome.kind === "ok")
          usage = addUsage(usage, (outcome.value as unknown as { usage: Usage }).usage);
      }
    }
    return usage;
  }

  async #pump(): Promise<void> {
    if (this.#pumping !== undefined) {
      this.#pumpAgain = true;
      return this.#pumping;
    }
    this.#pumping = this.#readMail().finally(() => {
      this.#pumping = undefined;
    });
    await this.#pumping;
    if (this.#pumpAgain && !this.#over) {
      this.#pumpAgain = false;
      await this.#pump();
    }
  }

  async #readMail(): Promise<void> {
    if (this.#over) return;
    const mail = await this.#owner.store.mailbox.read(this.#lease.runId);
    for (const each of mail) {
      if (this.#over || each.place <= this.#state.mailThrough) continue;
      this.#log.add({ mailThrough: each.place });
      this.#obey(each);
    }
  }

  #obey({ body, from }: PlacedMail): void {
    this.#stayAwake();
    const root = formatTaskId(0);
    switch (body.type) {
      case "resolve":
        this.#resolve(body.taskId, body.wait, body.value);
        break;
      case "approval":
        this.#resolve(root, `approval ${body.approvalId}`, body.decision as unknown as JsonValue);
        break;
      case "cancel":
        this.#log.tell(root, { type: "run_cancel", data: { reason: body.reason, by: from } });
        this.cancel(body.taskId, body.reason);
        break;
      case "top_up":
        this.#log.tell(root, {
          type: "budget_top_up",
          data: { taskId: body.taskId, add: body.add, by: from },
        });
        this.book(body.taskId, { type: "topUp", taskId: body.taskId, add: body.add });
        this.#reopen((code) => code === "budget_exhausted");
        break;
      case "resume":
        this.#log.tell(root, { type: "run_resume", data: { by: from } });
        this.#reopen(() => true);
        for (const runner of this.#runners.values()) runner.unpark();
        for (const taskId of this.#state.tasks.keys()) this.#startIfSeated(taskId);
        break;
      case "pause":
        this.#log.tell(root, { type: "run_pause", data: { by: from } });
        break;
      case "reprioritize":
        this.#reprioritize(body.taskId, body.priority, from);
        break;
      case "message":
      case "steer":
      case "follow_up":
        this.#resolve(root, body.type, (body as unknown as { input?: JsonValue }).input ?? null);
        break;
    }
    this.noteIdle();
  }

  #resolve(taskId: TaskId, wait: string, value: JsonValue): void {
    if (!this.#state.tasks.has(taskId)) return;
    this.#log.add({ resolves: [{ taskId, wait, value }] });
    this.#waits.deliver(taskId, wait, value);
  }

  #reprioritize(taskId: TaskId, to: Priority, by: string): void {
    const from = this.#state.headcount.tasks[taskId]?.priority;
    if (from === undefined) return;
    this.#log.tell(formatTaskId(0), { type: "task_reprioritize", data: { taskId, from, to, by } });
    this.book(taskId, { type: "reprioritize", taskId, priority: to });
    this.#seat({ type: "reprioritize", taskId, priority: to });
  }

  /** J5: takes back the faults tasks ended on, in one commit with their being open again, and lets them go on. */
  #reopen(which: (code: string) => boolean): void {
    const ended = [...this.#state.tasks.values()].filter(
      ({ outcome }) => outcome !== null && outcome.failure !== null && which(outcome.failure.code),
    );
    if (ended.length === 0) return;
    const reopened = new Set(ended.map(({ record }) => record.taskId));
    for (const { record, endedOn, steps } of ended) {
      const { taskId, parentId } = record;
      const joins = [...steps.values()].filter(
        ({ kind, name }) => kind === "wait" && /^(join|ask) /.test(name),
      );
      const stale = joins.filter(({ name }) => name.split(" ").some((word) => reopened.has(word as TaskId)));
      const addresses = [...stale.map(({ address }) => address), ...(endedOn === null ? [] : [endedOn])];
      this.#log.add({
        voids: addresses.map((address) => ({ taskId, address })),
        tasks: [{ type: "reopen", taskId }],
      });
      const { budget, supervision } = record;
      if (parentId !== null) {
        this.#log.book({ type: "open", taskId, parentId, budget, priority: supervision.priority });
        this.#log.seat({ type: "acquire", taskId, parentId, priority: supervision.priority });
      }
    }
    for (const taskId of this.#state.tasks.keys()) this.#startIfSeated(taskId);
  }

  #seat(command: HeadcountCommand): void {
    this.#applySeats(this.#log.seat(command));
  }

  #applySeats(outcome: HeadcountOutcome, newcomer?: TaskId): void {
    this.#tellSeats(outcome, newcomer);
    if (!("changes" in outcome)) return;
    for (const { taskId, change } of outcome.changes) {
      const runner = this.#runners.get(taskId);
      if (change === "pausing") runner?.settleIfPausing();
      if (change === "paused") this.#pauseTask(taskId);
      if (change === "granted" || change === "recalled" || change === "kept") {
        runner?.extendDeadline();
        if (runner !== undefined) this.#watchDeadline(runner);
        runner?.unpark();
        this.#stayAwake();
        this.#startIfSeated(taskId);
      }
    }
  }

  /** H5: with `return-partial` a paused task is over. */
  #pauseTask(taskId: TaskId): void {
    if (this.#state.task(taskId).record.onPause === "suspend") return;
    this.#runners.get(taskId)?.drop();
    this.#end(taskId, { status: "paused", output: null, failure: null });
  }

  #tellSeats(outcome: HeadcountOutcome, newcomer?: TaskId): void {
    if (!("changes" in outcome)) return;
    for (const { taskId, change } of outcome.changes) {
      if (change === "granted" && taskId === newcomer) continue;
      const yieldsTo = this.#state.headcount.tasks[taskId]?.yieldsTo ?? taskId;
      if (change === "pausing") this.#log.tell(taskId, { type: "seat_yield", data: { taskId, yieldsTo } });
      else this.#log.tell(taskId, { type: seatEvents[change], data: { taskId } });
    }
  }

  #tellMoney(taskId: TaskId, { decisions, warnings, overrun }: LedgerOutcome, own?: string): void {
    for (const data of warnings) this.#log.tell(taskId, { type: "budget_warning", data });
    if (overrun !== null) this.#log.tell(taskId, { type: "budget_overrun", data: overrun });
    for (const decision of decisions) {
      if (decision.id === own) continue;
      const waiting = this.#decisions.get(decision.id) ?? Promise.withResolvers<Decision>();
      this.#decisions.set(decision.id, waiting);
      waiting.resolve(decision);
    }
  }

  #children(taskId: TaskId): TaskId[] {
    return [...this.#state.tasks.values()]
      .filter(({ record, outcome }) => record.parentId === taskId && outcome === null)
      .map(({ record }) => record.taskId);
  }

  #descendants(taskId: TaskId): TaskId[] {
    return this.#children(taskId);
  }

  /** The run cannot be written to: nothing of it may run on here. */
  #abandon(fault: Fault): void {
    if (this.#over) return;
    this.#close();
    this.#rest.reject(fault);
  }

  #let(rest: Rest): void {
    if (this.#over) return;
    this.#close();
    this.#rest.resolve(rest);
  }

  #close(): void {
    this.#over = true;
    this.#stayAwake();
    this.#waits.forget();
    this.#log.stop(new Fault("lease_lost", `${this.#lease.runId} was let go of`));
    for (const runner of this.#runners.values()) runner.drop();
    this.#runners.clear();
  }
}

const seatEvents = {
  granted: "seat_grant",
  paused: "seat_pause",
  recalled: "seat_recall",
  kept: "seat_keep",
} as const;

/** A stop is no crash: it is not tried again. */
function isStop(fault: Fault): boolean {
  return (
    fault instanceof CancellationError ||
    fault instanceof BudgetExhaustedError ||
    fault instanceof MiddlewareTermination
  );
}

function statusOf(outcome: TaskOutcome | null): RunStatus {
  if (outcome === null || outcome.status === "paused") return "paused";
  if (outcome.status === "completed") return "completed";
  const { failure } = outcome;
  if (failure?.code === "budget_exhausted") return "budget_exhausted";
  if (failure?.code === "guardrail_tripped") return "guardrail_tripped";
  if (failure?.code === "cancelled")
    return failure.details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
  return "failed";
}
