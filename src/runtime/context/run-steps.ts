import {
  assertJson,
  calledRunId,
  canonicalJson,
  Fault,
  HistoryRetention,
  JsonDigest,
  longestCallChain,
  rootTaskId,
  startRunTable,
  type AgentId,
  type HostedAgent,
  type JsonValue,
  type RunId,
  type StartedRun,
  type StartRunOptions,
  type StepAddress,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { readRequest, refuseOther } from "../journal/existing-run.ts";
import { newRun, type NewRun } from "../journal/new-run.ts";
import { callChain, cancelMail, receivedEnd, type RunCaller, type RunEnd } from "../journal/run-calls.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import type { StartRecord } from "../journal/task-state.ts";
import { callerWait, runWait, startName } from "../journal/wait-names.ts";
import { hostedAgent } from "../process/worker-context.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { awaitName } from "./messages.ts";

/** The steps with which a task starts other runs and receives their ends. A started run takes no seat of this run. */
export class RunSteps {
  readonly #steps: StepExecutor;

  constructor(steps: StepExecutor) {
    this.#steps = steps;
  }

  /**
   * Starts a run in the commit of the step, so that it exists if and only if the step is recorded. Its id follows from the
   * address of the step.
   */
  start(agentId: AgentId, input: JsonValue, options: StartRunOptions): Promise<StartedRun> {
    const { id = null } = options;
    const step = this.#steps.identify("send", startName(agentId), { input, id });
    return this.#steps.run<StartRecord, StartedRun>(
      step,
      (open) => this.#start(open, agentId, input, options),
      undefined,
      ({ runId }) => ({ runId }),
    );
  }

  async #start(
    open: ActiveStep,
    agentId: AgentId,
    input: JsonValue,
    options: StartRunOptions,
  ): Promise<() => StartRecord> {
    const { runner } = this.#steps;
    const { worker } = runner;
    const { id, onParentEnd, delayMs, ...given } = startRunTable.read("ctx.start()", options);
    assertJson(input, `the input of ${agentId}`);
    const agent = hostedAgent(worker, agentId);
    requireWorkflow(agent);
    const accepted = (await agent.readInput?.(input, "parent")) ?? input;
    const runId = id === undefined ? this.#derivedId(open.address) : calledRunId(id);
    const above = callChain(runner.state, runner.facts.runId);
    refuseCycle(runId, above);
    const { userId } = runner.facts;
    const { tenantId } = runner.host;
    const caller: RunCaller = { runId: runner.facts.runId, taskId: runner.taskId, above };
    const run = newRun(worker, agent, accepted, {
      ...given,
      runId,
      caller,
      ...(delayMs > 0 && { startAt: Math.ceil(worker.clock.now() + delayMs) }),
      ...(runner.task.record.supervision.retention === HistoryRetention.NONE && {
        retention: HistoryRetention.NONE,
      }),
      ...(userId !== null && { userId }),
      ...(tenantId !== null && { tenantId }),
    });
    const record: StartRecord = { runId, onParentEnd };
    if (id === undefined) return () => this.#submit(run, agentId, record);
    await runner.activity.pauseFor(open.cancelScope, this.#refuseOther(run));
    return () => this.#submit(run, agentId, { ...record, asked: this.#hashOf(accepted) });
  }

  /** C2: a scope that was cancelled or abandoned meanwhile starts no run, because the cancel would not reach it. */
  #submit({ record: run, first }: NewRun, agentId: AgentId, record: StartRecord): StartRecord {
    const { runner, cancelScope } = this.#steps;
    cancelScope.check();
    runner.log.submit({ run, first });
    runner.log.emit(runner.taskId, {
      type: "run_scheduled",
      data: { key: startName(agentId), runId: run.runId },
    });
    return record;
  }

  /** A step that runs again after `resume` starts another run. */
  #derivedId(address: StepAddress): RunId {
    const { worker, task } = this.#steps.runner;
    return `run_${worker.hash(`${this.#steps.idempotencyKey(address)} ${task.resumed}`).slice(0, 32)}` as RunId;
  }

  #hashOf(input: JsonValue): string {
    return this.#steps.runner.worker.hash(canonicalJson(input));
  }

  async #refuseOther(run: NewRun): Promise<void> {
    const { store } = this.#steps.runner.worker;
    // The step before may have started the same run.
    await this.#steps.runner.log.flush();
    const existing = await store.journal.find(run.record.runId);
    if (existing !== undefined) await refuseOther(store, existing, run);
  }

  /** Waits for the end of a run. A run that ended without an output is an outcome, not a fault. */
  join({ runId }: StartedRun): Promise<TaskOutcome> {
    const name = runWait(runId);
    const step: StepIdentity = { address: this.#steps.next(), kind: "wait", name, digest: JsonDigest.ofNull };
    return this.#steps.run<TaskOutcome>(step, async (open) => {
      const { runner } = this.#steps;
      if (receivedEnd(runner.state, runner.taskId, runId) === undefined && !this.#receivesEnd(runId))
        await runner.activity.pauseFor(open.cancelScope, this.#attach(runId));
      const end = await awaitName(runner, open.cancelScope, name, undefined);
      return (end as unknown as RunEnd).outcome;
    });
  }

  /** C1: cancels a run and does not wait for its end. */
  async cancel({ runId }: StartedRun, reason: string): Promise<void> {
    const { runner } = this.#steps;
    const step = this.#steps.identify("send", `cancel ${runId}`, { reason });
    await this.#steps.run<void>(step, () => {
      const started = runner.task.started?.get(runId);
      if (started === undefined)
        throw new Fault(
          "not_found",
          `run ${runId} was not started by this task; only the task that started a run may cancel it`,
        );
      const id = `cancel ${this.#steps.idempotencyKey(step.address)}`;
      return () =>
        runner.log.add({
          mail: [{ ...cancelMail(runner.task, started, reason, runner.worker.clock.now()), id }],
        });
    });
  }

  /** Whether the run was created with this task as its caller. Of a run with a named id, only the store knows that. */
  #receivesEnd(runId: RunId): boolean {
    const started = this.#steps.runner.task.started?.get(runId);
    return started !== undefined && !started.isOfOrigin && started.asked === undefined;
  }

  /** Asks a run that this task may not have started for its end. Asking again has no effect (P1). */
  async #attach(runId: RunId): Promise<void> {
    const { runner } = this.#steps;
    const { taskId, worker, host, facts } = runner;
    // The run may have been started by the step before.
    await runner.log.flush();
    const { input, caller } = await readRequest(worker.store, runId, host.tenantId);
    if (caller?.runId === facts.runId && caller.taskId === taskId) return;
    const asked = runner.task.started?.get(runId)?.asked;
    if (asked !== undefined && asked !== this.#hashOf(input))
      throw new Fault(
        "already_exists",
        `${runId} was submitted with another input by another caller: choose another id, or omit it`,
        { details: { runId } },
      );
    const value: RunCaller = { runId: facts.runId, taskId };
    runner.log.add({
      mail: [
        {
          id: `caller ${facts.runId} ${taskId}`,
          runId,
          from: runner.agentId,
          at: worker.clock.now(),
          body: {
            type: "resolve",
            taskId: rootTaskId,
            wait: callerWait,
            value: value as unknown as JsonValue,
          },
        },
      ],
    });
  }
}

function requireWorkflow({ id, runKind }: HostedAgent): void {
  if (runKind === "workflow") return;
  throw new Fault(
    "invalid_argument",
    `invalid workflow ${id} of ctx.start(): it is an agent; use ctx.agent() or ctx.spawn() for an agent`,
  );
}

/** Refuses a run that waits for this one, and an endless chain of runs. */
function refuseCycle(runId: RunId, above: readonly RunId[]): void {
  if (above.includes(runId))
    throw new Fault(
      "invalid_argument",
      `invalid id ${runId} of ctx.start(): that run has started this one, directly or through others; choose another id`,
      { details: { runId } },
    );
  if (above.length < longestCallChain) return;
  throw new Fault(
    "invalid_argument",
    `ctx.start() is refused: ${above.length} runs have started each other in a row, up to this one; end the recursion, or use ctx.continueAsNew() to repeat work`,
  );
}
