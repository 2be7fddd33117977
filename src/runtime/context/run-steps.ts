import {
  assertJson,
  calledRunId,
  canonicalJson,
  Fault,
  formatRunId,
  HistoryRetention,
  JsonDigest,
  longestCallChain,
  rootTaskId,
  startRunTable,
  type Account,
  type AgentId,
  type ExecutionBudget,
  type HostedAgent,
  type JsonValue,
  type Ledger,
  type OnCallerEnd,
  type RunId,
  type RunRecord,
  type SpendTopUp,
  type StartedRun,
  type StartRunOptions,
  type StepAddress,
  type TaskId,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { readRequest, refuseOther } from "../journal/existing-run.ts";
import { newRun, type NewRun } from "../journal/new-run.ts";
import {
  callChain,
  cancelMail,
  countSame,
  heldPlaces,
  partOf,
  placeOf,
  receivedEnd,
  type HeldPlace,
  type RunCaller,
  type RunEnd,
} from "../journal/run-calls.ts";
import { storedRunId } from "../journal/run-ids.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import type { StartRecord } from "../journal/task-state.ts";
import { callerWait, runWait, startName } from "../journal/wait-names.ts";
import { idDigest } from "../process/id-digest.ts";
import { calledAgent } from "../process/worker-context.ts";
import { waitForDecision } from "../model/reservation.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { askOrStop } from "../task/budget-stop.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { requireAgentId } from "./context-options.ts";
import { awaitName } from "./messages.ts";

/** The steps with which a task starts other runs and waits until they end. A started run takes no seat of this run. */
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
    requireAgentId("ctx.start()", agentId);
    const { id, onParentEnd, delayMs, ...given } = startRunTable.read("ctx.start()", options);
    assertJson(input, `the input of ${agentId}`);
    const agent = calledAgent(worker, agentId, runner.agentId);
    requireWorkflow(agent);
    const accepted = (await agent.readInput?.(input, "parent")) ?? input;
    const { tenantId, flow } = runner.host;
    const runId =
      id === undefined
        ? this.#derivedId(open.address)
        : await runner.activity.pauseFor(
            open.cancelScope,
            runner.log.reading(storedRunId(worker.store.journal, tenantId, calledRunId(id))),
          );
    const above = callChain(runner.state, runner.facts.runId);
    refuseCycle(runId, above);
    const { userId } = runner.facts;
    // A run that continues alone does not keep this one from ending.
    const holds = onParentEnd === "abandon" ? [] : heldPlaces(runner.state, flow);
    const caller: RunCaller = {
      runId: runner.facts.runId,
      taskId: runner.taskId,
      above,
      ...(holds.length > 0 && { holds }),
    };
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
    refuseDeadlock(run.record, holds);
    if (run.record.flow?.collect !== undefined) refuseHandle(agentId, onParentEnd, given.budget);
    if (id !== undefined) await runner.activity.pauseFor(open.cancelScope, this.#refuseOther(run));
    const hasPart = await this.#reservePart(open, runId, given.budget);
    return () =>
      this.#submit(run, agentId, {
        runId,
        onParentEnd,
        ...(id !== undefined && { asked: this.#hashOf(accepted) }),
        ...(hasPart && { hasPart }),
        ...(run.record.flow?.object !== undefined && { isFinal: true as const }),
      });
  }

  /**
   * Submits a run. C2: if the scope was cancelled or abandoned before, it starts no run, because the cancel would
   * not reach it.
   */
  #submit({ record: run, first }: NewRun, agentId: AgentId, record: StartRecord): StartRecord {
    const { runner, cancelScope } = this.#steps;
    try {
      cancelScope.check();
    } catch (error) {
      runner.host.ledger.apply(runner.taskId, { type: "refund", id: partOf(run.runId) });
      throw error;
    }
    runner.log.submit({ run, first });
    runner.log.emit(runner.taskId, {
      type: "run_scheduled",
      data: { key: startName(agentId), runId: run.runId },
    });
    return record;
  }

  /**
   * B6: reserves the part of the task's budget that the run may spend. Returns `false` if the task has no limit. If
   * an earlier execution of the step has reserved a part, that part is used.
   */
  async #reservePart(
    open: ActiveStep,
    runId: RunId,
    part: Partial<ExecutionBudget> | undefined,
  ): Promise<boolean> {
    const { host, state, taskId } = this.#steps.runner;
    const limited = limitedIn(state.ledger, taskId);
    if (limited.length === 0) return false;
    const missing = limited.filter((name) => typeof part?.[name] !== "number");
    if (missing.length > 0) throw missingPart(missing);
    const id = partOf(runId);
    if (state.ledger.open.some((each) => each.id === id)) return true;
    const { maxTokens, maxCostUsd, maxTurns } = part ?? {};
    for (;;) {
      const decided = host.ledger.reserve({
        type: "reserve",
        id,
        taskId,
        attempt: 1,
        input: { tokens: maxTokens ?? 0, costUsd: maxCostUsd ?? 0 },
        output: { maxTokens: 0, minTokens: 0, usdPerToken: 0 },
        turns: maxTurns ?? 0,
        lasting: true,
      });
      const decision = decided ?? (await waitForDecision(open, id));
      if (decision.kind !== "exhausted") return true;
      await askOrStop(open, decision.exhaustion);
    }
  }

  /**
   * Returns the id of a started run. It differs if the step runs again after `resume`, so that the step starts
   * another run.
   */
  #derivedId(address: StepAddress): RunId {
    const { worker, task } = this.#steps.runner;
    return formatRunId(idDigest(`${this.#steps.idempotencyKey(address)} ${task.resumed}`, worker.hash));
  }

  #hashOf(input: JsonValue): string {
    return this.#steps.runner.worker.hash(canonicalJson(input));
  }

  async #refuseOther(run: NewRun): Promise<void> {
    const { worker, log } = this.#steps.runner;
    const { store } = worker;
    // The step before may have started the same run.
    await log.flush();
    const existing = await log.reading(store.journal.find(run.record.runId));
    if (existing !== undefined) await log.reading(refuseOther(store, existing, run));
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

  /** C1: cancels a run. Returns without waiting for its end. */
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

  /**
   * Whether the run was created with this task as its caller. For a run with an id that the code chose, only the
   * store knows this.
   */
  #receivesEnd(runId: RunId): boolean {
    const started = this.#steps.runner.task.started?.get(runId);
    return started !== undefined && !started.isOfOrigin && started.asked === undefined;
  }

  /**
   * Asks another run to report its end to this task, because this task may not have started it. Asking again has no
   * effect (P1).
   */
  async #attach(runId: RunId): Promise<void> {
    const { runner } = this.#steps;
    const { taskId, worker, host, facts } = runner;
    // The run may have been started by the step before.
    await runner.log.flush();
    const { input, caller } = await runner.log.reading(readRequest(worker.store, runId, host.tenantId));
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

/** Returns the limits of the task and of the tasks above it. The budget of a started run must give a part of each. */
function limitedIn({ accounts }: Ledger, taskId: TaskId): readonly (keyof SpendTopUp)[] {
  const limited = new Set<keyof SpendTopUp>();
  for (let at: Account | undefined = accounts[taskId]; at !== undefined;) {
    const { caps, parentId }: Account = at;
    if (caps.tokens !== null) limited.add("maxTokens");
    if (caps.nanoUsd !== null) limited.add("maxCostUsd");
    if (caps.turns !== null) limited.add("maxTurns");
    at = parentId === null ? undefined : accounts[parentId];
  }
  return [...limited];
}

function missingPart(missing: readonly (keyof SpendTopUp)[]): Fault {
  const [first = "maxCostUsd"] = missing;
  return new Fault(
    "invalid_argument",
    `invalid budget of ctx.start(): this run has a limit of ${missing.join(" and ")}, so that a start names the part which the other run may spend; use budget: { ${first}: ... }, with 0 if it spends nothing`,
    { details: { missing: [...missing] } },
  );
}

function requireWorkflow({ id, runKind }: HostedAgent): void {
  if (runKind === "workflow") return;
  throw new Fault(
    "invalid_argument",
    `invalid workflow ${id} of ctx.start(): it is an agent; use ctx.agent() or ctx.spawn() for an agent`,
  );
}

/** Throws for a run that itself waits for this run, and for a chain of runs that is too long. */
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

/** L17, L19: throws for a run that could start only after this run, or a run that waits for this run, has ended. */
function refuseDeadlock({ flow }: RunRecord, holds: readonly HeldPlace[]): void {
  const place = placeOf(flow);
  const limit = flow?.object === undefined ? (flow?.concurrency?.limit ?? 1) : 1;
  if (place === undefined || countSame(holds, place) < limit) return;
  const { object, key } = place;
  const held =
    object === undefined
      ? `all ${limit} places of key ${JSON.stringify(key)} of the limit ${JSON.stringify(place.limit)} are held`
      : `key ${JSON.stringify(key)} of object ${object} is held`;
  throw new Fault(
    "invalid_argument",
    `the call would wait forever: ${held} by this run or by runs that wait for it; send it instead, without waiting for its result, or use another key`,
    { details: { key, ...(object === undefined ? { limit: place.limit ?? null } : { object }) } },
  );
}

/** L20: throws for a start that needs a run of its own, if the workflow collects several starts in one run. */
function refuseHandle(agentId: AgentId, onParentEnd: OnCallerEnd, budget: unknown): void {
  if (onParentEnd === "abandon" && budget === undefined) return;
  throw new Fault(
    "invalid_argument",
    `${agentId} cannot be started with a handle or a part of a budget: its debounce or batch joins several starts to one run; use ctx.send() without budget`,
  );
}
