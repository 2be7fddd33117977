import {
  describeValue,
  executionBudget,
  Fault,
  isUserPart,
  rootTaskId,
  userMessage,
  type Commit,
  type Event,
  type ExecutionBudget,
  type HostedAgent,
  type JsonValue,
  type Resolution,
  type RunRecord,
  type StepAddress,
  type StepRecord,
  type TaskChange,
  type TaskId,
  type UserMessage,
  type UserPart,
} from "../../kernel/index.ts";
import { takesInput } from "../journal/task-record.ts";
import { queueWait } from "../journal/wait-names.ts";

/** The user message that a fork adds. */
export type ForkInput = string | readonly UserPart[];

/**
 * Checks the input of a fork and returns it. Throws `invalid_argument` if it is not a user message, or has no
 * content.
 */
export function checkForkInput(input: unknown): ForkInput {
  if (typeof input === "string" && input.trim() !== "") return input;
  if (Array.isArray(input) && input.every(isUserPart) && input.some(hasContent)) return input;
  throw new Fault(
    "invalid_argument",
    `invalid input ${describeValue(input)} of fork(): expected a text, or a list of text, image and file parts, that is not empty`,
  );
}

/**
 * Returns the input with which a fork begins, in place of the input of the original run. Throws `invalid_argument`
 * if the agent does not accept it.
 */
export async function replacedInput(agent: HostedAgent | undefined, input: unknown): Promise<JsonValue> {
  if (agent?.readInput !== undefined) return agent.readInput(input as JsonValue, "caller");
  const isRequest = typeof input === "object" && input !== null && "prompt" in input;
  checkForkInput(isRequest ? input.prompt : input);
  return input as JsonValue;
}

/**
 * Checks the limits of a fork. They contain no deadline, because a fork continues with the deadline of the original
 * run.
 */
export function forkBudget(budget: Partial<ExecutionBudget>, option: string, owner: string): void {
  if (budget.deadlineMs !== undefined)
    throw new Fault(
      "invalid_argument",
      `invalid ${option} of ${owner}: a fork has the deadline of its origin; use maxCostUsd, maxTokens or maxTurns`,
    );
  executionBudget(budget);
}

function hasContent(part: UserPart): boolean {
  return part.type !== "text" || part.text.trim() !== "";
}

type RootEnd = Extract<TaskChange, { type: "end" }>;

/**
 * How a fork adds a user message to the run at its cut:
 * - `steer`: the root has not ended. It reads the message before its next model call.
 * - `resume`: the root has ended on a fault, and its messages are hidden (S1). It continues as after `resume` and reads
 *   the message before its next model call.
 * - `restart`: the root has ended, and the session contains its messages. It starts with an empty journal (J8) and this
 *   message as its input.
 */
export class AddedInput {
  /** The task that reads the message. */
  readonly taskId: TaskId;
  readonly way: "steer" | "resume" | "restart";
  readonly message: UserMessage;
  readonly #input: JsonValue;
  /** The steps whose faults have ended the root. */
  readonly #endedOn: readonly StepAddress[];
  /**
   * Whether the submission of the original run stored a user message, so that the message of the fork is stored
   * too.
   */
  readonly isStored: boolean;

  constructor(origin: RunRecord, commits: readonly Commit[], input: ForkInput, taskId: TaskId = rootTaskId) {
    this.taskId = taskId;
    if (origin.kind !== "invocation")
      throw new Fault(
        "invalid_argument",
        `${origin.runId} cannot be forked with an input: it is a ${origin.kind}, which takes no message of a user; omit \`input\``,
      );
    if (taskId !== rootTaskId) refuseDeafTask(commits, taskId);
    const end = taskId === rootTaskId ? rootEndIn(commits) : undefined;
    if (end !== undefined) refuseErasedRoot(commits, origin);
    const isClosed = end?.outcome.status === "completed" || isVisible(origin, commits);
    this.way = end === undefined ? "steer" : isClosed ? "restart" : "resume";
    this.message = userMessage(input);
    this.isStored = storesMessage(origin, commits[0]);
    this.#input = input as unknown as JsonValue;
    this.#endedOn = end?.endedOn ?? [];
  }

  get isSteering(): boolean {
    return this.way !== "restart";
  }

  /** The message as steering of the task. */
  get resolution(): Resolution {
    return { taskId: this.taskId, wait: queueWait("steer"), value: this.#input };
  }

  /** Returns the commits that follow the shared commits. */
  changes(at: number): readonly Commit[] {
    if (this.way !== "restart") return [];
    const taskId = rootTaskId;
    return [
      {
        number: 0,
        at,
        tasks: [
          { type: "reopen", taskId },
          { type: "continue", taskId, input: this.#input },
        ],
      },
    ];
  }

  /**
   * Whether the task is at the beginning of its turn, because it has recorded nothing after it. If so, the loop
   * reads the message before its first model call (`Turn.isSteered`). Otherwise the addresses of its steps would
   * change.
   */
  isAtTurn(turn: StepRecord, steps: readonly StepRecord[]): boolean {
    if (!this.isSteering) return false;
    const isVoided = (address: string): boolean =>
      this.#endedOn.some((ended) => address === ended || address.startsWith(`${ended}/`));
    return steps.every(
      ({ taskId, address }) =>
        taskId !== this.taskId ||
        address === turn.address ||
        address.startsWith(`${turn.address}/`) ||
        isVoided(address),
    );
  }
}

/** Throws if a child task reads no input, because an earlier build started it. */
function refuseDeafTask(commits: readonly Commit[], taskId: TaskId): void {
  for (const { tasks = [] } of commits)
    for (const change of tasks)
      if (change.type === "create" && change.task.taskId === taskId && takesInput(change.task)) return;
  throw new Fault(
    "invalid_argument",
    `a fork cannot add an input for ${taskId}: the task reads none, because an earlier build started it; omit \`taskId\``,
  );
}

/** Returns the end of the root, if the commits contain it and do not reopen the root afterwards. */
function rootEndIn(commits: readonly Commit[]): RootEnd | undefined {
  let end: RootEnd | undefined;
  for (const { tasks = [] } of commits) {
    for (const change of tasks) {
      if (change.type === "create" || change.taskId !== rootTaskId) continue;
      if (change.type === "end") end = change;
      if (change.type === "reopen") end = undefined;
    }
  }
  return end;
}

/** Whether the commits make the user's message of the run visible, as the end of an invocation does (S1). */
function isVisible({ runId }: RunRecord, commits: readonly Commit[]): boolean {
  return commits.some(({ sessions = [] }) =>
    sessions.some(
      (change) => change.type === "append" && change.entry.id === runId && change.visibility === "visible",
    ),
  );
}

function storesMessage({ runId }: RunRecord, first: Commit | undefined): boolean {
  return (first?.sessions ?? []).some((change) => change.type === "append" && change.entry.id === runId);
}

function isErased({ taskId, erased }: Event): boolean {
  return taskId === rootTaskId && erased === true;
}

/** Throws if the root would continue from a history that retention has erased. */
function refuseErasedRoot(commits: readonly Commit[], { runId }: RunRecord): void {
  if (!commits.some(({ events = [] }) => events.some(isErased))) return;
  throw new Fault(
    "invalid_argument",
    `${runId} cannot be forked with an input: its history was erased; submit the input as a new run`,
  );
}
