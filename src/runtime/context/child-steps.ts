import {
  assertJson,
  CancellationError,
  checkSpawnOptions,
  type AgentId,
  type ChildRequest,
  type JsonValue,
  type SpawnOptions,
  type SpawnOutcome,
  type TaskHandle,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { joinWait } from "../journal/wait-names.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { withChildOutput } from "./child-output.ts";
import { inheritedBy } from "./shared-request.ts";

/** The steps with which a task spawns children and waits for their ends. */
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
      assertJson(input, `the input of ${agentId}`);
      runner.worker.sizes.assert(input, `the input of ${agentId}`);
      checkSpawnOptions("ctx.spawn()", options);
      return () => runner.host.spawn(runner.taskId, agentId, input, options);
    });
  }

  /** Spawns a child that starts with the task's last request, which is stored in the commit of the step. */
  share(request: ChildRequest): Promise<SpawnOutcome> {
    const { runner } = this.#steps;
    const step = this.#steps.identify("spawn", "child", request);
    return this.#steps.run<SpawnOutcome>(step, async () => {
      const inherited = inheritedBy(runner, request);
      const { prompt, ...given } = request;
      const options = { ...given, ...narrowed(runner.task.record.tools, given.tools) };
      const input = prompt as JsonValue;
      assertJson(input, "the prompt of ctx.child()");
      runner.worker.sizes.assert(input, "the prompt of ctx.child()");
      return () =>
        runner.host.spawn(runner.taskId, runner.agentId, input, { ...options, inherited: inherited() });
    });
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

  #waitFor<Value>(taskIds: Parameters<typeof joinWait>[0], ends: () => Promise<Value>): Promise<Value> {
    const name = joinWait(taskIds);
    const step = this.#steps.identify("wait", name, null);
    return this.#steps.run<Value>(step, ({ cancelScope }) =>
      this.#steps.runner.activity.waitFor(cancelScope, ends(), { name }),
    );
  }
}

/** The tools of a child: a task whose tools are limited cannot give its child others. */
function narrowed(
  own: readonly string[] | null,
  wanted: readonly string[] | undefined,
): Pick<SpawnOptions, "tools"> | undefined {
  if (own === null) return undefined;
  return { tools: wanted === undefined ? own : wanted.filter((name) => own.includes(name)) };
}
