import type { TaskRunner } from "../task/task-runner.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import { pendingForever } from "../process/pending-forever.ts";
import {
  type AgentId,
  CancellationError,
  type ChildRequest,
  type Event,
  Fault,
  type JsonValue,
  type SpawnOptions,
  type SpawnOutcome,
  type TaskHandle,
  type TaskId,
  type TaskOutcome,
  assertJson,
  spawnTable,
} from "../../kernel/index.ts";
import type { NewTaskOptions } from "../journal/task-record.ts";
import type { TaskState } from "../journal/task-state.ts";
import { joinWait } from "../journal/wait-names.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { requireAgentId, requireHandle } from "./context-options.ts";
import { inheritedBy } from "./shared-request.ts";

/**
 * C1, B5: waits for a cancelled child and adds its output to the cancellation. Parent and child are cancelled at
 * the same time, so that the child's output is available shortly afterwards. The wait is not journaled and lasts at
 * most as long as the child's own grace period. It is skipped for a child that was not cancelled itself, such as a
 * child of another parent or one whose own deadline is later.
 */
async function withChildOutput(
  child: TaskId,
  stop: CancellationError,
  runner: TaskRunner,
  cancelScope: CancellationScope,
): Promise<CancellationError> {
  const { cancelled, outcome: known } = runner.state.task(child);
  if (cancelled === null && known === null) return stop;
  const left = Promise.withResolvers<undefined>();
  const call = runner.activity.beginCall(cancelScope);
  // The child's calls are abandoned at the same time as this one, so the child ends then, or after a second grace
  // period.
  call.body = { abandon: () => (call.body = { abandon: () => left.resolve(undefined) }) };
  const outcome = await Promise.race([runner.host.whenEnded(child), left.promise]);
  runner.activity.endCall(call);
  if (runner.isDropped || cancelScope.isAbandoned) return pendingForever();
  if (outcome === undefined) return stop;
  const { reason, status, cause } = stop;
  const { output: childOutput } = outcome;
  return new CancellationError(reason, { status, childOutput, ...(cause !== undefined && { cause }) });
}

/** The steps with which a task spawns children and waits until they end. */
export class ChildSteps {
  readonly #steps: StepExecutor;

  constructor(steps: StepExecutor) {
    this.#steps = steps;
  }

  spawn(agentId: AgentId, input: JsonValue, options: SpawnOptions): Promise<SpawnOutcome> {
    const { runner } = this.#steps;
    // Who speaks for the run does not change what the child does, so a run of an older version still replays.
    const { handsOver: _handsOver, ...digested } = options;
    const step = this.#steps.identify("spawn", agentId, { input, options: digested });
    return this.#steps.run<SpawnOutcome>(step, async () => {
      requireAgentId("ctx.spawn()", agentId);
      assertJson(input, `the input of ${agentId}`);
      runner.worker.sizes.assertInput(input, `the input of ${agentId}`);
      spawnTable.read("ctx.spawn()", options);
      const agent = runner.worker.agents.get(agentId);
      const accepted = agent?.readInput === undefined ? input : await agent.readInput(input, "parent");
      return () => this.#spawn(agentId, accepted, options);
    });
  }

  /** Spawns a child that starts with the task's last request. The commit of the step stores this request. */
  share(request: ChildRequest): Promise<SpawnOutcome> {
    const { runner } = this.#steps;
    const step = this.#steps.identify("spawn", "child", request);
    return this.#steps.run<SpawnOutcome>(step, async () => {
      const inherited = inheritedBy(runner, request);
      const { prompt, ...given } = request;
      const { tools, changes } = runner.task.record;
      const options = { ...given, ...narrowed(tools ?? changes?.tools ?? null, given.tools) };
      const input = prompt as JsonValue;
      assertJson(input, "the prompt of ctx.child()");
      runner.worker.sizes.assertInput(input, "the prompt of ctx.child()");
      return () => this.#spawn(runner.agentId, input, { ...options, inherited: inherited() });
    });
  }

  /**
   * Spawns a child. C2: if the scope was cancelled or abandoned before, it spawns none, because the cancel would
   * not reach the child.
   */
  #spawn(agentId: AgentId, input: JsonValue, options: NewTaskOptions): SpawnOutcome {
    const { runner, cancelScope } = this.#steps;
    cancelScope.check();
    const { folder } = runner;
    const given = {
      ...options,
      ...(cancelScope.isShielded && { isShielded: true }),
      ...(folder !== null && { folder }),
    };
    return runner.host.spawn(runner.taskId, agentId, input, given);
  }

  async join({ taskId }: TaskHandle): Promise<TaskOutcome> {
    const { runner, cancelScope } = this.#steps;
    try {
      const outcome = await this.#waitFor<TaskOutcome>([taskId], () => runner.host.whenEnded(taskId));
      if (outcome.finishReason !== undefined) runner.stopReason = outcome.finishReason;
      return outcome;
    } catch (error) {
      if (!(error instanceof CancellationError)) throw error;
      throw await withChildOutput(taskId, error, runner, cancelScope);
    }
  }

  joinAll(handles: readonly TaskHandle[]): Promise<readonly TaskOutcome[]> {
    const { host } = this.#steps.runner;
    const taskIds = handles.map(({ taskId }) => taskId);
    return this.#waitFor<readonly TaskOutcome[]>(taskIds, () =>
      Promise.all(taskIds.map((taskId) => host.whenEnded(taskId))),
    );
  }

  events(child: TaskHandle): AsyncIterable<Event> {
    requireHandle("ctx.childEvents()", child);
    const { taskId } = child;
    const { runner } = this.#steps;
    const family = runner.state.familyOf(taskId);
    if (family[0]?.record.parentId !== runner.taskId)
      throw new Fault("not_found", `task ${taskId} is no child of task ${runner.taskId}`);
    return eventsOf(runner, family);
  }

  #waitFor<Value>(taskIds: Parameters<typeof joinWait>[0], ends: () => Promise<Value>): Promise<Value> {
    const name = joinWait(taskIds);
    const step = this.#steps.identify("wait", name, null);
    return this.#steps.run<Value>(step, ({ cancelScope }) =>
      this.#steps.runner.activity.waitFor(cancelScope, ends(), { name }),
    );
  }
}

/** Yields the committed events of some tasks. Once all of these tasks have ended, it stops after the last end. */
async function* eventsOf(
  { worker, facts, log }: TaskRunner,
  family: readonly TaskState[],
): AsyncIterable<Event> {
  const [first] = family;
  const members = new Set<TaskId>(family.map(({ record }) => record.taskId));
  const last = family.every(({ outcome, endSeq }) => outcome !== null && endSeq !== undefined)
    ? Math.max(...family.map(({ endSeq = 0 }) => endSeq))
    : Number.POSITIVE_INFINITY;
  const events = worker.store.events.read(facts.runId, first?.startSeq ?? 0);
  for await (const event of log.readingEach(events)) {
    if (event.seq > last) return;
    if (members.has(event.taskId)) yield event;
  }
}

/** Returns the tools of a child. If the tools of the parent task are limited, the child cannot have other tools. */
function narrowed(
  own: readonly string[] | null,
  wanted: readonly string[] | undefined,
): Pick<SpawnOptions, "tools"> | undefined {
  if (own === null) return undefined;
  return { tools: wanted === undefined ? own : wanted.filter((name) => own.includes(name)) };
}
