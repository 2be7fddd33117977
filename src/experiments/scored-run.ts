import { outputValue } from "../agents/index.ts";
import {
  addUsd,
  isUserPart,
  readProperty,
  rootTaskId,
  totalTokens,
  type Event,
  type JsonValue,
  type RunHandle,
  type RunId,
  type RunStatus,
  type TaskId,
} from "../kernel/index.ts";
import type { ScoredRun, ScoredToolCall, ScorerInput } from "./contract.ts";

/** The task of an agent that answered a case, with the function that reads its events. */
export interface ReadableTask {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly status: RunStatus;
  /**
   * Present if the events begin after the start of the task. The duration is then counted from the first of these
   * events.
   */
  readonly isPart?: true;
  /** Reads the events of the task and the tasks below it, oldest first. */
  events(): AsyncIterable<Event>;
}

/** Reads the work of an ended task from its events. For a call without reported usage, its charge is used as cost. */
export async function readScoredRun(task: ReadableTask): Promise<ScoredRun> {
  const fold = new TaskFold(task.taskId, task.isPart === true);
  for await (const event of task.events()) fold.add(event);
  const { runId, taskId, status } = task;
  const { costUsd, tokens, turns, durationMs, toolCalls } = fold;
  return {
    runId,
    taskId,
    status,
    costUsd,
    tokens,
    turns,
    durationMs,
    toolCalls,
    events: () => task.events(),
  };
}

/** The input, the answer and the work of a stored run. */
export type StoredAnswer = Pick<ScorerInput, "input" | "output" | "run">;

/** Reads an ended run. With `from`, only the work after this event is included. */
export async function readStoredRun(run: RunHandle, from = 0): Promise<StoredAnswer> {
  async function* events(): AsyncIterable<Event> {
    for await (const event of run.events({ fromSeq: from, follow: false })) if ("seq" in event) yield event;
  }
  const { status } = await run.summary();
  let input: ScorerInput["input"] = "";
  let output: JsonValue = null;
  for await (const event of run.events({ types: ["run_start", "task_end"], follow: false })) {
    if (event.type === "run_start") input = inputOf(event.data.input);
    if (event.type === "task_end" && event.taskId === rootTaskId) output = event.data.output ?? null;
  }
  const read = await readScoredRun({
    runId: run.runId,
    taskId: rootTaskId,
    status: status as RunStatus,
    ...(from > 0 && { isPart: true }),
    events,
  });
  return { input, output, run: read };
}

/** Converts the input of an agent to the form that scorers receive: a text, or content parts. */
function inputOf(input: JsonValue): ScorerInput["input"] {
  if (typeof input === "string") return input;
  if (Array.isArray(input) && input.every((part) => isUserPart(part))) return input;
  const prompt: unknown = readProperty(input, "prompt");
  return prompt === undefined ? JSON.stringify(input) : inputOf(prompt as JsonValue);
}

/** What an agent did that received no seat. */
export function unstartedRun(runId: RunId): ScoredRun {
  return {
    runId,
    taskId: rootTaskId,
    status: "failed",
    costUsd: 0,
    tokens: 0,
    turns: 0,
    durationMs: 0,
    toolCalls: [],
    events: noEvents,
  };
}

async function* noEvents(): AsyncIterable<Event> {}

type OpenCall = { -readonly [Key in keyof ScoredToolCall]: ScoredToolCall[Key] };

/** Adds up the events of a task and the tasks below it. */
class TaskFold {
  tokens = 0;
  turns = 0;
  readonly toolCalls: OpenCall[] = [];
  readonly #taskId: TaskId;
  readonly #isPart: boolean;
  #startedAt = 0;
  #knownUsd = 0;
  /** Number of calls whose cost is not known. */
  #unpriced = 0;
  #endedAt = 0;
  /** Calls without a result, by task and call id. */
  readonly #open = new Map<string, OpenCall[]>();

  constructor(taskId: TaskId, isPart: boolean) {
    this.#taskId = taskId;
    this.#isPart = isPart;
  }

  get costUsd(): number | null {
    return this.#unpriced === 0 ? this.#knownUsd : null;
  }

  get durationMs(): number {
    return Math.max(0, this.#endedAt - this.#startedAt);
  }

  add(event: Event): void {
    if (this.#isPart && this.#startedAt === 0) this.#startedAt = event.at;
    switch (event.type) {
      case "task_start":
        if (event.taskId === this.#taskId && this.#startedAt === 0) this.#startedAt = event.at;
        break;
      case "task_end":
        if (event.taskId === this.#taskId) this.#endedAt = event.at;
        break;
      case "message_end":
        if (event.data.message.role === "assistant" && event.data.source === undefined) this.turns++;
        if (event.data.usage !== undefined)
          this.#spend(totalTokens(event.data.usage), event.data.usage.costUsd);
        break;
      case "metered_call":
        this.turns++;
        if (event.data.usage !== null) this.#spend(totalTokens(event.data.usage), event.data.usage.costUsd);
        break;
      case "budget_lost":
        this.#spend(event.data.tokens, event.data.costUsd);
        break;
      case "usage_corrected":
        this.#spend(-event.data.charged.tokens, event.data.charged.costUsd, -1);
        this.#spend(totalTokens(event.data.usage), event.data.usage.costUsd);
        break;
      case "tool_execution_start":
        this.#startCall(event);
        break;
      case "tool_execution_end":
        this.#endCall(event);
        break;
      default:
        break;
    }
  }

  /** Adds the usage of a call, or subtracts it with the sign -1. */
  #spend(tokens: number, costUsd: number | null, sign: 1 | -1 = 1): void {
    this.tokens += tokens;
    if (costUsd === null) this.#unpriced += sign;
    else this.#knownUsd = addUsd(this.#knownUsd, sign * costUsd);
  }

  #startCall({ taskId, data }: Event<"tool_execution_start">): void {
    const call: OpenCall = { name: data.toolName, arguments: data.input, result: null, isError: false };
    this.toolCalls.push(call);
    const key = `${taskId} ${data.callId}`;
    const open = this.#open.get(key);
    if (open === undefined) this.#open.set(key, [call]);
    else open.push(call);
  }

  #endCall({ taskId, data }: Event<"tool_execution_end">): void {
    const call = this.#open.get(`${taskId} ${data.callId}`)?.shift();
    if (call === undefined) return;
    call.result = outputValue(data.result.output);
    call.isError = data.result.isError;
  }
}
