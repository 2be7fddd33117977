import {
  formatTaskId,
  type AgentId,
  type EventDraft,
  type JsonValue,
  type SpawnOutcome,
  type TaskId,
  type TaskRecord,
} from "../../kernel/index.ts";
import { openAccountCommand } from "../journal/new-run.ts";
import { reopenedPromises } from "../journal/promise-ids.ts";
import type { ResumedTask } from "../journal/resume-plan.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";
import { childTaskRecord, ownBudget, type NewTaskOptions } from "../journal/task-record.ts";
import { calledAgent, type WorkerContext } from "../process/worker-context.ts";
import type { RunHeadcount } from "./run-headcount.ts";
import type { RunLedger } from "./run-ledger.ts";

export interface TaskAdmissionOptions {
  readonly worker: WorkerContext;
  readonly state: RunState;
  readonly log: RunLog;
  readonly seats: RunHeadcount;
  readonly ledger: RunLedger;
}

/** Admits tasks to a run: requests a seat, opens an account and records the task, all in one commit. */
export class TaskAdmission {
  readonly #worker: WorkerContext;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #seats: RunHeadcount;
  readonly #ledger: RunLedger;

  constructor({ worker, state, log, seats, ledger }: TaskAdmissionOptions) {
    this.#worker = worker;
    this.#state = state;
    this.#log = log;
    this.#seats = seats;
    this.#ledger = ledger;
  }

  /** Admits a new child of `parentId`. The child may have to wait for its seat. */
  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: NewTaskOptions): SpawnOutcome {
    const parent = this.#state.task(parentId);
    const agent = calledAgent(this.#worker, agentId, parent.record.agentId);
    const taskId = formatTaskId(this.#state.nextTask);
    const now = this.#worker.clock.now();
    const ownLimits = ownBudget(agent, options);
    const task = childTaskRecord(parent, { ...options, taskId, agent, input, now, ownLimits });
    const { priority } = task.supervision;
    const waits = options.onFull === "wait" ? ({ waits: "pending" } as const) : undefined;
    const outcome = this.#seats.acquire({ type: "acquire", taskId, parentId, priority, ...waits });
    if (outcome.kind === "refused") {
      const { reason, holders } = outcome;
      this.#log.emit(parentId, { type: "spawn_refuse", data: { agentId, priority, reason, holders } });
      return { kind: "refused", reason, holders };
    }
    const victim = outcome.kind === "pending" ? outcome.victim : undefined;
    this.#log.emit(parentId, spawnEvent(task, options, victim));
    this.#log.add({ tasks: [{ type: "create", task }] });
    const account = { taskId, parentId, budget: ownLimits, priority };
    this.#ledger.apply(taskId, openAccountCommand(this.#worker, account));
    this.#seats.carryOut(outcome, taskId);
    return { kind: "spawned", handle: { taskId, agentId } };
  }

  /**
   * J5: admits an ended task again and makes the records of the faults on which it ended void. Returns `false` if
   * the task gets no seat.
   */
  reopen({ taskId, voids }: ResumedTask): boolean {
    const task = this.#state.task(taskId);
    const { record, messages } = task;
    const { agentId, parentId, budget, supervision } = record;
    const { priority } = supervision;
    if (parentId !== null) {
      const outcome = this.#seats.acquire({ type: "acquire", taskId, parentId, priority, waits: "paused" });
      if (outcome.kind === "refused" || outcome.kind === "ignored") return false;
      this.#seats.carryOut(outcome);
      if (this.#state.ledger.accounts[taskId] === undefined)
        this.#ledger.apply(taskId, openAccountCommand(this.#worker, { taskId, parentId, budget, priority }));
    }
    for (const event of reopenedPromises(task, this.#log.lease.runId, voids)) this.#log.emit(taskId, event);
    this.#log.add({
      voids: voids.map((address) => ({ taskId, address })),
      tasks: [{ type: "reopen", taskId }],
    });
    // Takes back the messages that its end returned to the inbox, unless another run has taken them since.
    const messageIds = messages.map(({ id }) => id);
    if (messageIds.length > 0) this.#log.add({ inbox: [{ type: "take", agentId, messageIds }] });
    return true;
  }
}

/** Returns the event of a new child: `spawn_start`, or `spawn_wait` if the child waits for the seat of `victim`. */
function spawnEvent(
  { taskId: childTaskId, agentId, supervision: { priority } }: TaskRecord,
  options: NewTaskOptions,
  victim: TaskId | null | undefined,
): EventDraft {
  const handsOver = options.handsOver === true ? ({ handsOver: true } as const) : undefined;
  const data = { childTaskId, agentId, priority, ...handsOver };
  return victim === undefined
    ? { type: "spawn_start", data }
    : { type: "spawn_wait", data: { ...data, victim } };
}
