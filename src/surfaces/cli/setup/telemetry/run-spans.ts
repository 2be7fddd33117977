import {
  finishReason,
  genAi,
  outputMessages,
  providerName,
  spokenValue,
  type Operation,
} from "../../../../agents/index.ts";
import {
  agentNameOf,
  type AgentId,
  type Attributes,
  type Event,
  type Failure,
  type JsonValue,
  type RunKind,
  type RunStatus,
  type TaskId,
  type Usage,
} from "../../../../kernel/index.ts";
import { continuesTask } from "../../../view/continued-task.ts";
import { StepLog, type StepView } from "../../../view/step-log.ts";

/** A span of a run, without the ids of its trace. Times are epoch milliseconds. */
export interface RunSpan {
  /** Names the span within its run. The same in every process that reads the log. */
  readonly key: string;
  /** Key of the span above it in the same run. `null` for a span of the root task. */
  readonly parentKey: string | null;
  readonly name: string;
  readonly isClient: boolean;
  readonly startAt: number;
  readonly endAt: number;
  readonly attributes: Attributes;
  /** Why the work failed. Absent if it did not. */
  readonly error?: { readonly type: string; readonly message: string };
  /** What metrics count. Absent for steps and waits, which the conventions do not know. */
  readonly call?: { readonly operation: Operation; readonly usage?: Usage };
}

/** What a run is, as the store knows it. */
export interface SpannedRun {
  readonly runId: string;
  readonly kind: RunKind;
  readonly tenantId: string | null;
}

export interface RunSpansOptions {
  /** Whether inputs, answers, arguments and results become attributes. */
  readonly hasContent: boolean;
  /** Receives each span when the event has been read with which it ends. */
  readonly onEnd: (span: RunSpan) => void;
}

/** A task from its start, or from its continuation after an end. */
interface OpenTask {
  readonly agentId: AgentId;
  readonly parentId: TaskId | null;
  /** Number of its earlier ends. */
  readonly ends: number;
  startAt: number | null;
  /** The model that answered last. */
  model: { readonly provider: string; readonly modelId: string } | undefined;
  input: JsonValue | undefined;
}

interface OpenWait {
  readonly seq: number;
  readonly at: number;
  readonly waitsFor: readonly string[];
}

/** The key of the span of a task. `ends` is the number of its earlier ends. */
export function taskKey(taskId: string, ends = 0): string {
  return `task ${taskId} ${ends}`;
}

/**
 * The spans of a run, folded from its log: one for each task, model call, tool call, step and wait. The same log gives the same
 * spans with the same keys in every process.
 */
export class RunSpans {
  readonly #run: SpannedRun;
  readonly #options: RunSpansOptions;
  readonly #steps: StepLog;
  readonly #tasks = new Map<TaskId, OpenTask>();
  readonly #ended = new Map<TaskId, OpenTask>();
  readonly #waits = new Map<TaskId, OpenWait>();
  /** The provider of each model that the log has named. */
  readonly #providers = new Map<string, string>();
  /** Arguments of tool calls in progress, by the number of the event that started them. Empty without contents. */
  readonly #inputs = new Map<number, JsonValue>();
  #sessionId: string | undefined;
  #event!: Event;

  constructor(run: SpannedRun, options: RunSpansOptions) {
    this.#run = run;
    this.#options = options;
    this.#steps = new StepLog({ most: 1, onEnd: (step) => this.#endStep(step) });
  }

  /** Reads the next event. Events must come in the order of their numbers. */
  add(event: Event): void {
    this.#event = event;
    this.#openTask(event);
    this.#learn(event);
    this.#steps.add(event);
    if (event.type === "task_suspend")
      this.#waits.set(event.taskId, { seq: event.seq, at: event.at, waitsFor: event.data.waitsFor });
    if (event.type === "task_wake") this.#endWait(event, event.data.by);
    if (event.type === "task_end") this.#endTask(event);
    if (event.type === "run_fork") this.#fork(event);
  }

  #openTask(event: Event): void {
    const { taskId, agentId, parentId } = event;
    this.#meet(taskId, agentId, parentId);
    if (event.type === "spawn_start" || event.type === "spawn_wait")
      this.#meet(event.data.childTaskId, event.data.agentId, taskId);
    if (continuesTask(event)) this.#continue(taskId, event.at);
    const task = this.#tasks.get(taskId);
    if (event.type === "task_start" && task !== undefined) task.startAt ??= event.at;
  }

  #meet(taskId: TaskId, agentId: AgentId, parentId: TaskId | null): void {
    if (this.#tasks.has(taskId) || this.#ended.has(taskId)) return;
    this.#tasks.set(taskId, {
      agentId,
      parentId,
      ends: 0,
      startAt: null,
      model: undefined,
      input: undefined,
    });
  }

  /** A task that works after its end has another span, and so have the tasks above it. */
  #continue(taskId: TaskId | null, at: number): void {
    const task = taskId === null ? undefined : this.#ended.get(taskId);
    if (taskId === null || task === undefined) return;
    this.#ended.delete(taskId);
    this.#tasks.set(taskId, { ...task, ends: task.ends + 1, startAt: at });
    this.#continue(task.parentId, at);
  }

  #learn(event: Event): void {
    const { type, taskId, data } = event;
    if (type === "run_start") this.#sessionId = data.sessionId;
    if (type === "model_fallback") this.#providers.set(data.to.modelId, data.to.provider);
    if (type === "agent_start" && this.#options.hasContent) {
      const task = this.#tasks.get(taskId);
      if (task !== undefined) task.input = data.input;
    }
    if (type === "tool_execution_start" && this.#options.hasContent) this.#inputs.set(event.seq, data.input);
    const model =
      type === "message_start" || type === "message_end" || type === "metered_call" ? data.model : undefined;
    if (model === undefined) return;
    this.#providers.set(model.modelId, model.provider);
    const task = this.#tasks.get(taskId);
    if (task !== undefined) task.model = model;
  }

  #endStep(step: StepView): void {
    const { kind, name, startSeq, startAt, endAt, outcome, isAgain } = step;
    const event = this.#event;
    const parts = {
      key: `step ${startSeq}`,
      parentKey: this.#keyOf(step.taskId),
      startAt: Math.min(startAt, endAt ?? event.at),
      endAt: endAt ?? event.at,
    };
    const shared = { ...this.#whose(step.taskId), ...(isAgain && { [genAi.isAgain]: true }) };
    const error = this.#errorOf(outcome, kind, event);
    const failed = error !== undefined && { error };
    if (kind === "model" || (kind === "step" && event.type === "metered_call"))
      return this.#emit({
        ...parts,
        name: `chat ${name}`,
        isClient: true,
        attributes: { ...shared, ...this.#callAttributes(step, event) },
        call: { operation: "chat", ...this.#usageOf(outcome, event) },
        ...failed,
      });
    if (kind === "tool")
      return this.#emit({
        ...parts,
        name: `execute_tool ${name}`,
        isClient: false,
        attributes: { ...shared, ...this.#toolAttributes(step, event) },
        call: { operation: "execute_tool" },
        ...failed,
      });
    if (kind === "step")
      return this.#emit({
        ...parts,
        name: `step ${name}`,
        isClient: false,
        attributes: { ...shared, [genAi.stepName]: name },
        ...failed,
      });
    this.#emit({
      ...parts,
      name: `wait ${kind}`,
      isClient: false,
      attributes: { ...shared, [genAi.waitFor]: [kind === "person" ? `person ${name}` : kind] },
    });
  }

  /** The attributes of a model call. A call without an answer has only what was asked. */
  #callAttributes({ name }: StepView, event: Event): Attributes {
    const provider = this.#providers.get(name);
    const asked: Attributes = {
      [genAi.operation]: "chat",
      [genAi.provider]: provider === undefined ? unknownProvider : providerName(provider),
      [genAi.requestModel]: name,
    };
    if (event.type === "metered_call" && event.data.usage !== null)
      return { ...asked, ...tokens(event.data.usage) };
    if (event.type !== "message_end") return asked;
    const { usage, stopReason, model, message } = event.data;
    return {
      ...asked,
      ...(model !== undefined && { [genAi.responseModel]: model.modelId }),
      ...(stopReason !== undefined && { [genAi.finishReasons]: [finishReason(stopReason)] }),
      ...(usage !== undefined && tokens(usage)),
      ...(this.#options.hasContent && {
        [genAi.outputMessages]: outputMessages(message, stopReason ?? "other"),
      }),
    };
  }

  #usageOf(outcome: StepView["outcome"], event: Event): { readonly usage?: Usage } {
    if (outcome !== "ok" || (event.type !== "message_end" && event.type !== "metered_call")) return {};
    const { usage } = event.data;
    return usage === undefined || usage === null ? {} : { usage };
  }

  #toolAttributes({ name, id, startSeq, isOfProgram }: StepView, event: Event): Attributes {
    const input = this.#inputs.get(startSeq);
    this.#inputs.delete(startSeq);
    return {
      [genAi.operation]: "execute_tool",
      [genAi.toolName]: name,
      [genAi.toolCallId]: id,
      [genAi.toolType]: isOfProgram === true ? "extension" : "function",
      ...(input !== undefined && { [genAi.toolArguments]: JSON.stringify(input) }),
      ...(this.#options.hasContent &&
        event.type === "tool_execution_end" && {
          [genAi.toolResult]: JSON.stringify(event.data.result.output),
        }),
    };
  }

  #errorOf(outcome: StepView["outcome"], kind: StepView["kind"], event: Event): RunSpan["error"] {
    switch (outcome) {
      case "error":
        if (event.type === "retry_start" || event.type === "model_fallback")
          return { type: event.data.kind, message: event.data.message };
        return { type: kind === "tool" ? "tool_failed" : "failed", message: `the ${kind} failed` };
      case "lost":
        return { type: "lost", message: "the process that made the call ended" };
      case "refused":
        return { type: "budget_exhausted", message: "the budget did not cover the call" };
      case "denied":
        return kind === "tool" ? { type: "denied", message: "the call was denied" } : undefined;
      case "cut":
        return kind === "model" || kind === "tool" ? errorOfCut(kind, event) : undefined;
      default:
        return undefined;
    }
  }

  /** Timers, signals and ends of other runs. A question to a person is a wait of its own. */
  #endWait({ taskId, at }: Event, wokenBy: string): void {
    const wait = this.#waits.get(taskId);
    this.#waits.delete(taskId);
    if (wait === undefined || isCoveredByStep(wait.waitsFor)) return;
    this.#emit({
      key: `wait ${wait.seq}`,
      parentKey: this.#keyOf(taskId),
      name: "wait",
      isClient: false,
      startAt: wait.at,
      endAt: at,
      attributes: {
        ...this.#whose(taskId),
        [genAi.waitFor]: wait.waitsFor.map((name) => (name.startsWith("sleep ") ? "time" : name)),
        [genAi.wokenBy]: wokenBy,
      },
    });
  }

  #endTask(event: Event<"task_end">): void {
    const { taskId, at, data } = event;
    this.#endWait(event, "end");
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    this.#tasks.delete(taskId);
    this.#ended.set(taskId, { ...task, input: undefined });
    const { agentId, parentId, ends, startAt, model, input } = task;
    const name = agentNameOf(agentId);
    const isWorkflow = parentId === null && this.#run.kind === "workflow";
    const operation = isWorkflow ? "invoke_workflow" : "invoke_agent";
    const error = errorOfTask(data.status, data.failure);
    this.#emit({
      key: taskKey(taskId, ends),
      parentKey: parentId === null ? null : this.#keyOf(parentId),
      name: `${operation} ${name}`,
      isClient: false,
      startAt: startAt ?? at,
      endAt: at,
      attributes: {
        ...this.#whose(taskId),
        [genAi.operation]: operation,
        [genAi.status]: data.status,
        ...(isWorkflow
          ? { [genAi.workflowName]: name }
          : {
              [genAi.provider]: model === undefined ? unknownProvider : providerName(model.provider),
              ...(model !== undefined && { [genAi.requestModel]: model.modelId }),
              ...(data.usage !== undefined && tokens(data.usage)),
              ...(data.finishReason !== undefined && {
                [genAi.finishReasons]: [finishReason(data.finishReason)],
              }),
            }),
        ...(this.#options.hasContent && contentOfTask(input, data.output)),
      },
      call: { operation },
      ...(error !== undefined && { error }),
    });
  }

  /** The events before are those of the origin. What is in progress at the cut continues here. */
  #fork({ at }: Event): void {
    for (const task of this.#tasks.values()) if (task.startAt !== null) task.startAt = at;
    this.#waits.clear();
  }

  #keyOf(taskId: TaskId): string {
    return taskKey(taskId, (this.#tasks.get(taskId) ?? this.#ended.get(taskId))?.ends ?? 0);
  }

  #whose(taskId: TaskId): Attributes {
    const { agentId } = this.#tasks.get(taskId) ?? this.#ended.get(taskId) ?? this.#event;
    const { runId, kind, tenantId } = this.#run;
    return {
      [genAi.agentName]: agentNameOf(agentId),
      [genAi.agentId]: agentId,
      ...(this.#sessionId !== undefined && kind !== "workflow" && { [genAi.conversation]: this.#sessionId }),
      [genAi.runId]: runId,
      [genAi.taskId]: taskId,
      ...(tenantId !== null && { [genAi.tenantId]: tenantId }),
    };
  }

  #emit(span: RunSpan): void {
    const { error, attributes } = span;
    this.#options.onEnd(
      error === undefined ? span : { ...span, attributes: { ...attributes, [genAi.errorType]: error.type } },
    );
  }
}

/** The provider of an agent that has called no model, and of a program whose model is unknown. */
const unknownProvider = "reeve";

/** Questions to persons and seats have spans of their own, and so have children. */
function isCoveredByStep(waitsFor: readonly string[]): boolean {
  return waitsFor.some((name) => /^(?:approval|join|budget|seat)\b/u.test(name));
}

const stopped: ReadonlySet<RunStatus> = new Set<RunStatus>([
  "completed",
  "cancelled",
  "paused",
  "max_turns",
  "max_output",
]);

/** Why a call ended that has no result. */
function errorOfCut(kind: "model" | "tool", event: Event): RunSpan["error"] {
  if (event.type === "budget_lost")
    return { type: "failed", message: "the call ended without an answer, and its usage is unknown" };
  if (kind === "model" && event.type === "task_end" && event.data.failure !== undefined)
    return errorOfTask(event.data.status, event.data.failure);
  return { type: "cancelled", message: "the call was stopped" };
}

function errorOfTask(status: RunStatus, failure: Failure | undefined): RunSpan["error"] {
  if (stopped.has(status)) return undefined;
  return { type: failure?.code ?? status, message: failure?.message ?? status };
}

function tokens(usage: Usage): Attributes {
  return {
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    [genAi.cacheReadTokens]: usage.cacheReadTokens,
    [genAi.cacheWriteTokens]: usage.cacheWriteTokens,
    [genAi.reasoningTokens]: usage.reasoningTokens,
    ...(usage.costUsd !== null && { [genAi.costUsd]: usage.costUsd }),
  };
}

function contentOfTask(input: JsonValue | undefined, output: JsonValue | undefined): Attributes {
  return {
    ...(input !== undefined && { [genAi.inputMessages]: spokenValue("user", input) }),
    ...(output !== undefined &&
      output !== null && { [genAi.outputMessages]: spokenValue("assistant", output) }),
  };
}
