import {
  describeValue,
  Fault,
  isUserPart,
  rootTaskId,
  userMessage,
  type Commit,
  type Event,
  type JsonValue,
  type Resolution,
  type RunRecord,
  type StepAddress,
  type StepRecord,
  type TaskChange,
  type UserMessage,
  type UserPart,
} from "../../kernel/index.ts";
import { queueWait } from "../journal/wait-names.ts";

/** The user message that a fork adds. */
export type ForkInput = string | readonly UserPart[];

/** Returns the input of a fork. Throws `invalid_argument` if it is no user message, or has no content. */
export function checkForkInput(input: unknown): ForkInput {
  if (typeof input === "string" && input.trim() !== "") return input;
  if (Array.isArray(input) && input.every(isUserPart) && input.some(hasContent)) return input;
  throw new Fault(
    "invalid_argument",
    `invalid input ${describeValue(input)} of fork(): expected a text, or a list of text, image and file parts, that is not empty`,
  );
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
  readonly way: "steer" | "resume" | "restart";
  readonly message: UserMessage;
  readonly #input: JsonValue;
  /** The steps on whose faults the root has ended. */
  readonly #endedOn: readonly StepAddress[];
  /** Whether the submission of the origin stored a user message, so that this one is stored, too. */
  readonly isStored: boolean;

  constructor(origin: RunRecord, commits: readonly Commit[], input: ForkInput) {
    if (origin.kind !== "invocation")
      throw new Fault(
        "invalid_argument",
        `${origin.runId} cannot be forked with an input: it is a ${origin.kind}, which takes no message of a user; omit \`input\``,
      );
    const end = rootEndIn(commits);
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

  /** The message as steering of the root. */
  get resolution(): Resolution {
    return { taskId: rootTaskId, wait: queueWait("steer"), value: this.#input };
  }

  /** The changes that follow the shared commits. */
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
   * Whether the root is at the beginning of its turn: it has recorded nothing else. The loop then reads the message
   * before its first model call (`Turn.isSteered`). Otherwise the addresses of its steps would change.
   */
  isAtTurn(turn: StepRecord, steps: readonly StepRecord[]): boolean {
    if (!this.isSteering) return false;
    const isVoided = (address: string): boolean =>
      this.#endedOn.some((ended) => address === ended || address.startsWith(`${ended}/`));
    return steps.every(
      ({ taskId, address }) =>
        taskId !== rootTaskId ||
        address === turn.address ||
        address.startsWith(`${turn.address}/`) ||
        isVoided(address),
    );
  }
}

/** The end of the root, if the commits hold it and do not reopen the root afterwards. */
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

/** Whether the commits make the user's message of the run visible, as the end of a closed invocation does (S1). */
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

/** The root would continue from a history that retention has erased. */
function refuseErasedRoot(commits: readonly Commit[], { runId }: RunRecord): void {
  if (!commits.some(({ events = [] }) => events.some(isErased))) return;
  throw new Fault(
    "invalid_argument",
    `${runId} cannot be forked with an input: its history was erased; submit the input as a new run`,
  );
}
