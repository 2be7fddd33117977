import type { AgentId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Event } from "../events/event.ts";
import type { TaskOutcome } from "../run/run-result.ts";
import type { ChildRequest, SpawnOptions, SpawnOutcome, TaskHandle } from "../run/spawn-options.ts";
import type { StartedRun, StartRunOptions } from "../run/started-run.ts";

/**
 * The part of a `RunContext` that gives work to other agents: to child tasks in the same run, and to new runs of
 * workflows.
 */
export interface ChildContext {
  /**
   * Spawns an agent as a child task and returns without waiting for it. H6: a replay does not check the headcount
   * again.
   *
   * @example
   * ```ts
   * import type { AgentId, RunContext } from "reeve";
   *
   * async function delegate(ctx: RunContext, researcher: AgentId, question: string): Promise<string> {
   *   const spawned = await ctx.spawn(researcher, question, { budget: { maxCostUsd: 0.1 } });
   *   if (spawned.kind === "refused") return `No seat is free: ${spawned.reason}`;
   *   const { status, output } = await ctx.join(spawned.handle);
   *   return status === "completed" ? String(output) : `The research ended as ${status}.`;
   * }
   * ```
   */
  spawn(agentId: AgentId, input: JsonValue, options?: SpawnOptions): Promise<SpawnOutcome>;
  /**
   * Spawns a child that shares this task's prompt, and returns without waiting for it. The child's first request
   * repeats the last request of this task that the model answered, without ephemeral messages: the same model,
   * system prompt, tools and settings. After it come the model's answer and `prompt`. S1: a tool call in the answer
   * that has no result yet gets the result `[not executed: ...]`. A provider that caches prompts therefore bills
   * only the answer and `prompt` in full. The child is a task of this run: it takes a seat and counts against this
   * task's budget. It runs the agent's tools without extensions, compaction and hooks of the loop. The shared
   * messages are stored once.
   *
   * Throws `invalid_argument` if the task has not called a model yet, and if `tools` names a tool that does not
   * exist.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * async function checkWork(ctx: RunContext): Promise<string> {
   *   const spawned = await ctx.child({ tools: ["read"], prompt: "List the mistakes in your work so far." });
   *   if (spawned.kind === "refused") return `No seat is free: ${spawned.reason}`;
   *   const { output } = await ctx.join(spawned.handle);
   *   return String(output);
   * }
   * ```
   */
  child(request: ChildRequest): Promise<SpawnOutcome>;
  /**
   * Waits until a child has ended and returns its outcome. A failed child is an outcome, not a fault.
   *
   * If a cancel reaches both this task and the child, `join` throws after the child has ended, and
   * `CancellationError.childOutput` holds the child's output. Any other cancel of this task makes `join` throw at once.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   * import type { TaskHandle } from "reeve/kernel";
   *
   * async function outputOf(ctx: RunContext, child: TaskHandle): Promise<string> {
   *   const { status, output, failure } = await ctx.join(child);
   *   if (status === "completed") return String(output);
   *   return failure?.message ?? status;
   * }
   * ```
   */
  join(handle: TaskHandle): Promise<TaskOutcome>;
  /**
   * Waits until a run that `start` has started has ended, and returns its outcome. Every call returns the same
   * outcome. In a fork of this run, `join` also accepts the run that the original started. A cancel of this task
   * makes `join` throw at once.
   */
  join(run: StartedRun): Promise<TaskOutcome>;
  /**
   * Starts a run of a workflow and returns without waiting for it. The run is created in the commit of this step,
   * so a replay starts no second run. The new run has its own owner, journal and seats, and takes no seat of this
   * run. The workflow must be registered with the runtime. J2: `start` leaves no open call in this task; `join`
   * does.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   * import type { HostedWorkflow } from "reeve/workflow";
   *
   * async function ship(ctx: RunContext, shipping: HostedWorkflow, orderId: string): Promise<boolean> {
   *   const parcel = await ctx.start(shipping.id, { orderId }, { id: `ship-${orderId}` });
   *   await ctx.sleep("1 hour");
   *   const { status } = await ctx.join(parcel);
   *   return status === "completed";
   * }
   * ```
   */
  start(agentId: AgentId, input: JsonValue, options?: StartRunOptions): Promise<StartedRun>;
  /**
   * Waits until all children have ended. Returns their outcomes in the order of the handles. A cancel of this task
   * makes `joinAll` throw at once, without the children's outputs; to get each output, `join` the children in branches
   * of `parallel`.
   */
  joinAll(handles: readonly TaskHandle[]): Promise<readonly TaskOutcome[]>;
  /**
   * Reads the committed events of a child of this task and of the tasks below the child, oldest first. The events
   * begin with the child's start and end with the last end of these tasks, or with the end of the log while one of
   * them is live. The read is not a step: call it in the body of a step, so that a replay has the same events.
   * Cost: proportional to the number of events of the whole run in this time. Throws `not_found` for a task that is
   * not a child of this one, and for a child of an earlier history that has ended (J8).
   */
  childEvents(child: TaskHandle): AsyncIterable<Event>;
  /**
   * C1: cancels a task, or a run that this task has started, together with all tasks below. Returns without waiting
   * for the end.
   */
  cancel(handle: TaskHandle | StartedRun, reason: string): Promise<void>;
}
