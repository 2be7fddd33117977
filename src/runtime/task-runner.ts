import {
  CancellationToken,
  digestOf,
  Fault,
  RunMeta,
  Supervision,
  type Agent,
  type AgentId,
  type EventDraft,
  type RunFacts,
  type StepAddress,
  type StepOutcome,
  type StepRecord,
  type TaskId,
  type Tool,
} from "../kernel/index.ts";
import type { OwnerContext } from "./owner-context.ts";
import type { RunLog } from "./run-log.ts";
import type { RunState, TaskState } from "./run-state.ts";
import { withRunFacts } from "./run-facts-storage.ts";
import { TaskContext } from "./task-context.ts";
import { TaskInboxView } from "./task-inbox.ts";
import type { TaskTree } from "./task-tree.ts";

/** What tells one step from another: its address, and what the code says it is. */
export type StepIdentity = Omit<StepRecord, "outcome" | "taskId">;

export interface TaskRunnerOptions {
  readonly taskId: TaskId;
  readonly agent: Agent;
  readonly owner: OwnerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly tree: TaskTree;
  readonly parentToken: CancellationToken | undefined;
}

/**
 * One task at work in this process: its stop button, its seat as the code feels it, and the calls it has open.
 *
 * Active while it has a slot; idle while all it does is wait; parked, at its next effect, while it has no seat (H7). Dropped, its
 * calls never settle, so that nothing of its code runs on.
 */
export class TaskRunner {
  readonly taskId: TaskId;
  readonly agent: Agent;
  readonly owner: OwnerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly tree: TaskTree;
  readonly token: CancellationToken;
  readonly facts: RunFacts;
  #meta: RunMeta;
  #signal: AbortSignal | undefined;
  #dropped = false;
  #openEffects = 0;
  #openWaits = 0;
  #hasSlot = false;
  #slotWanted: Promise<void> | undefined;
  #parked: (() => void)[] = [];
  /** Messages it has answered. */
  readonly replied = new Set<string>();
  /** Where the last fault came from that its code was given; what it ends on is voided by `resume` (J5). */
  lastFault: StepAddress | undefined;
  readonly #resources: (() => Promise<void>)[] = [];

  constructor({ taskId, agent, owner, log, state, tree, parentToken }: TaskRunnerOptions) {
    this.taskId = taskId;
    this.agent = agent;
    this.owner = owner;
    this.log = log;
    this.state = state;
    this.tree = tree;
    this.token = new CancellationToken(parentToken);
    const { record, cancelled } = this.task;
    const supervision = Supervision.fromJSON(record.supervision);
    this.facts = {
      userId: record.userId,
      sessionId: supervision.sessionId,
      runId: supervision.runId,
      metadata: record.metadata,
    };
    this.#meta = this.#newMeta(supervision);
    if (cancelled !== null) this.token.cancel(cancelled.reason, cancelled.status);
  }

  get task(): TaskState {
    return this.state.task(this.taskId);
  }

  get agentId(): AgentId {
    return this.task.record.agentId;
  }

  get meta(): RunMeta {
    return this.#meta;
  }

  get dropped(): boolean {
    return this.#dropped;
  }

  /** All it does is wait. */
  get idle(): boolean {
    return this.#openEffects === 0 && (this.#openWaits > 0 || this.#parked.length > 0);
  }

  /** A platform signal that follows the task's token, made when someone first asks. */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      this.token.onCancel((error) => controller.abort(error));
      this.#signal = controller.signal;
    }
    return this.#signal;
  }

  /** Runs the agent's code to its end. Never settles when dropped. */
  async run(): Promise<unknown> {
    await this.#activate();
    const { messages } = this.task.record;
    const ctx = new TaskContext(this, "");
    const inbox = new TaskInboxView(ctx, this, messages);
    const ending = await withRunFacts(this.facts, async () => {
      try {
        return { value: await this.agent.run(ctx, inbox) };
      } catch (error) {
        return { error };
      }
    });
    await this.live();
    for (const draft of ctx.takeTold()) this.tell(draft);
    this.#deactivate();
    await this.#closeResources();
    if ("error" in ending) throw ending.error;
    return ending.value;
  }

  /** J1, J4: what the step left behind, if it is recorded; `journal_mismatch` if something else is. */
  find(step: StepIdentity): StepOutcome | undefined {
    const recorded = this.task.steps.get(step.address);
    if (recorded === undefined) return undefined;
    const { hash } = this.owner;
    for (const field of ["kind", "name"] as const) {
      if (recorded[field] !== step[field]) throw mismatch(step, field, recorded[field], step[field]);
    }
    const [before, now] = [digestOf(recorded, hash), digestOf(step, hash)];
    if (before !== now) throw mismatch(step, `arguments of ${step.kind} ${step.name}`, before, now);
    return recorded.outcome;
  }

  /** E4: tells of a step's beginning, unless an earlier owner did. */
  open(
    address: StepAddress,
    starts: readonly EventDraft[],
  ): { readonly openSeq: number; readonly again: boolean } {
    const known = this.task.opened.get(address);
    if (known !== undefined) return { openSeq: known, again: true };
    let seq = -1;
    for (const draft of starts) seq = this.tell(draft);
    if (starts.length > 0) this.log.add({ opens: [{ taskId: this.taskId, address, seq }] });
    return { openSeq: seq, again: false };
  }

  findTool(name: string): Tool | undefined {
    return this.agent.tools?.find((tool) => tool.name === name);
  }

  record(step: StepIdentity, outcome: StepOutcome, told: readonly EventDraft[] = []): void {
    for (const draft of told) this.tell(draft);
    this.log.add({ steps: [{ ...step, taskId: this.taskId, outcome }] });
    if (this.task.steps.size === longJournal)
      this.tell({ type: "journal_warning", data: { steps: longJournal } });
  }

  tell(draft: EventDraft): number {
    return this.log.tell(this.taskId, draft).seq;
  }

  /** C2, H7, J3: nothing is started once stopped, while without a seat, or before what came before it is durable. */
  async begin(): Promise<void> {
    await this.seated();
    this.#meta.check();
    await this.live(this.log.flush());
    this.#openEffects++;
    await this.#activate();
  }

  finish(): void {
    this.#openEffects--;
    this.settleIfPausing();
  }

  /** Resolves once the task may start something. */
  async seated(): Promise<void> {
    while (this.tree.seatOf(this.taskId) !== "seated") {
      await this.live(
        new Promise<void>((resolve) => {
          this.#parked.push(resolve);
          this.#deactivate();
          this.settleIfPausing();
          this.tree.noteIdle();
        }),
      );
    }
  }

  /** H2: the calls it was in have settled. */
  settleIfPausing(): void {
    if (this.#openEffects === 0 && !this.#dropped) this.tree.settle(this.taskId);
  }

  unpark(): void {
    const parked = this.#parked;
    this.#parked = [];
    for (const go of parked) go();
  }

  /** While this is open the task counts as waiting, not as working. */
  async waiting<Value>(work: Promise<Value>): Promise<Value> {
    this.#openWaits++;
    if (this.idle) {
      this.#deactivate();
      this.tree.suspend(this.taskId);
    }
    const value = await this.live(work);
    this.#openWaits--;
    this.tree.wake(this.taskId);
    return value;
  }

  /** Passes a value on, unless the task was dropped meanwhile: then never. */
  async live<Value>(work?: Promise<Value>): Promise<Value> {
    try {
      const value = (await work) as Value;
      if (!this.#dropped) return value;
    } catch (error) {
      if (!this.#dropped) throw error;
    }
    return new Promise<never>(() => {});
  }

  /** H5, B5: a clock stood still for `ms`; the deadline moves with it. */
  extendDeadline(): void {
    if (this.#meta.deadline !== null) this.#meta = this.#newMeta(this.#meta.supervision ?? undefined);
  }

  onDrop(close: () => Promise<void>): void {
    this.#resources.push(close);
  }

  drop(): void {
    if (this.#dropped) return;
    this.#dropped = true;
    this.#deactivate();
    this.token.dispose();
    void this.#closeResources();
  }

  async #closeResources(): Promise<void> {
    for (const close of this.#resources.splice(0).toReversed()) {
      try {
        await close();
      } catch (error) {
        if (!this.#dropped)
          this.tell({ type: "hook_error", data: { hook: "resource", failure: Fault.from(error).toJSON() } });
      }
    }
  }

  async #activate(): Promise<void> {
    if (this.#hasSlot) return;
    this.#slotWanted ??= this.owner.slots.take(this.task.record.supervision.priority).then(() => {
      this.#slotWanted = undefined;
      if (this.#dropped) this.owner.slots.give();
      else this.#hasSlot = true;
    });
    await this.live(this.#slotWanted);
  }

  #deactivate(): void {
    if (!this.#hasSlot) return;
    this.#hasSlot = false;
    this.owner.slots.give();
  }

  #newMeta(supervision: Supervision | undefined): RunMeta {
    const { clock, ids } = this.owner;
    const { record, startedAt, pausedMs } = this.task;
    const { deadlineMs } = record.budget;
    return RunMeta.standalone({
      clock,
      ids,
      supervision: supervision ?? null,
      cancellation: this.token,
      deadline: deadlineMs === null ? null : startedAt + deadlineMs + pausedMs,
      tenantId: this.tree.tenantId,
    });
  }
}

/** J8. */
const longJournal = 5_000;

function mismatch({ address }: StepIdentity, field: string, recorded: string, now: string): Fault {
  return new Fault(
    "journal_mismatch",
    `step ${address} was recorded with another ${field}: ${recorded}, now ${now}. The agent's code or input has changed since this run began`,
    { details: { address, field, recorded, now } },
  );
}
