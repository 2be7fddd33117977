import {
  assertToolNames,
  canonicalJson,
  Fault,
  formatTaskId,
  rootTaskId,
  stepAt,
  tightenBudget,
  toolCallsOf,
  type Commit,
  type EditedResult,
  type EditedToolResult,
  type ExecutionBudget,
  type Hash,
  type JsonValue,
  type LedgerCommand,
  type LlmReply,
  type ModelReference,
  type SentRequest,
  type StepRecord,
  type StoredChanges,
  type TaskChange,
  type TaskId,
  type TaskRecord,
  type ToolCallPart,
  type ToolOutput,
  type ToolResult,
  type ToolSpec,
} from "../../kernel/index.ts";
import type { TurnRecord } from "../journal/shared-contents.ts";

/**
 * The changes of a fork for the calls after its cut, which is the place at which it leaves the original run. All
 * names are checked.
 */
export interface WantedFork {
  /** The task that is changed. */
  readonly taskId: TaskId;
  readonly model?: ModelReference;
  readonly instructions?: string;
  readonly tools?: readonly string[];
  readonly toolResults?: readonly EditedResult[];
  /** Limits of the root. */
  readonly budget?: Partial<ExecutionBudget>;
}

/** The part of a fork's event that says what the fork changes. */
export interface ForkChangeData extends Omit<WantedFork, "taskId" | "toolResults"> {
  readonly toolResults?: readonly EditedToolResult[];
  readonly changedTask?: TaskId;
}

/** The facts of a fork that its changes need. */
export interface ChangedFork {
  readonly wanted: WantedFork;
  readonly hash: Hash;
  /** User in whose name the run is forked. */
  readonly by: string;
  /** Time of the fork. Epoch milliseconds. */
  readonly at: number;
  /** The commits of the origin up to the cut. */
  readonly commits: readonly Commit[];
  /** The steps in those commits that are valid at the cut, in order. */
  readonly steps: readonly StepRecord[];
}

interface EditedStep {
  readonly step: StepRecord;
  readonly result: EditedToolResult;
}

/**
 * Applies the changes of a fork to the records of the shared journal, so that every worker that resumes the fork
 * reads them. J4: the digest of a turn covers its history, and the digest of a model call covers its messages;
 * neither covers instructions, model or tools. A replaced tool result belongs to the last model call, so that no
 * recorded call depends on it.
 */
export class ForkChanges {
  readonly #fork: ChangedFork;
  readonly #edited: readonly EditedStep[];
  readonly #turn: StepRecord | undefined;

  constructor(fork: ChangedFork) {
    this.#fork = fork;
    const { taskId, toolResults = [] } = fork.wanted;
    this.#turn = fork.steps.findLast((step) => step.taskId === taskId && turnOf(step) !== undefined);
    this.#edited = toolResults.map((each) => this.#find(each));
  }

  get data(): ForkChangeData {
    const { taskId, toolResults: _given, ...changes } = this.#fork.wanted;
    return {
      ...changes,
      ...(this.#edited.length > 0 && { toolResults: this.#edited.map(({ result }) => result) }),
      ...(taskId !== rootTaskId && { changedTask: taskId }),
    };
  }

  /** Returns the task change of a shared commit with the values that later turns of the task use. */
  task(change: TaskChange): TaskChange {
    if (change.type !== "create") return change;
    const { taskId, budget } = this.#fork.wanted;
    const isRoot = change.task.taskId === rootTaskId;
    const isChanged = change.task.taskId === taskId;
    const tightened = isRoot && budget !== undefined ? withBudget(change.task, budget) : change.task;
    return { ...change, task: isChanged ? withChanges(tightened, this.#stored) : tightened };
  }

  /** Returns a ledger command of a shared commit. B6: the account of the root gets the lowered caps. */
  ledger(command: LedgerCommand): LedgerCommand {
    const { budget } = this.#fork.wanted;
    if (budget === undefined || command.type !== "open" || command.taskId !== rootTaskId) return command;
    return { ...command, budget: tightenBudget(command.budget, budget) };
  }

  /** Returns a shared step with the fork's changes: the last turn of the task, or an edited result. */
  step(step: StepRecord): StepRecord {
    if (step === this.#turn) return this.#changedTurn(step);
    const edited = this.#edited.find((each) => each.step === step);
    return edited === undefined ? step : this.#editedStep(edited);
  }

  /**
   * J11: returns the recorded requests of the shared calls. A frame without instructions or tools stands for those
   * of the turn, which the fork changes. The frames of the shared calls therefore get those of the original run.
   */
  requests(requests: readonly SentRequest[]): readonly SentRequest[] {
    const { wanted, steps } = this.#fork;
    const { taskId, instructions, tools } = wanted;
    const turn = this.#turn && turnOf(this.#turn);
    if (this.#turn === undefined || turn === undefined) return requests;
    if (instructions === undefined && tools === undefined) return requests;
    const role = turn.role ?? "main";
    const calls = steps
      .slice(steps.indexOf(this.#turn))
      .filter((step) => step.taskId === taskId && step.kind === "llm");
    const addresses = new Set(calls.map(({ address }) => address));
    const sent = { instructions: turn.instructions, tools: turn.tools };
    const [first] = calls.filter(({ name }) => name === role);
    const pinned = requests.map((request) =>
      request.taskId === taskId && addresses.has(request.address) && request.frame !== undefined
        ? { ...request, frame: { ...sent, ...request.frame } }
        : request,
    );
    const isPinned = pinned.some(
      ({ taskId: task, address }) => task === taskId && address === first?.address,
    );
    if (first === undefined || isPinned) return pinned;
    const { address } = first;
    return [{ taskId, address, ...(role !== "main" && { role }), frame: sent }, ...pinned];
  }

  get #stored(): StoredChanges {
    const { model, instructions, tools } = this.#fork.wanted;
    return {
      ...(instructions !== undefined && { instructions }),
      ...(model !== undefined && { model }),
      ...(tools !== undefined && { tools }),
    };
  }

  #changedTurn(step: StepRecord): StepRecord {
    const turn = turnOf(step);
    const { instructions, tools } = this.#fork.wanted;
    if (turn === undefined || (instructions === undefined && tools === undefined)) return step;
    const { hash } = this.#fork;
    const contents: Record<string, JsonValue> = { ...turn.contents };
    const hold = (name: string, content: JsonValue): string => {
      contents[name] = content;
      return name;
    };
    const specs = tools === undefined ? undefined : this.#keptSpecs(turn, tools);
    const changed: TurnRecord = Object.freeze({
      ...turn,
      ...(instructions !== undefined && { instructions: hold(hash(instructions), instructions) }),
      ...(specs !== undefined && { tools: hold(hash(canonicalJson(specs)), specs as unknown as JsonValue) }),
      contents: Object.freeze(contents),
    });
    return { ...step, outcome: { kind: "ok", value: changed as unknown as JsonValue } };
  }

  /**
   * Returns the specifications of the turn's tools that the fork keeps. Throws if one of the names is not among
   * them.
   */
  #keptSpecs(turn: TurnRecord, names: readonly string[]): readonly ToolSpec[] {
    const { commits, wanted } = this.#fork;
    const recorded = commits
      .flatMap(({ steps = [] }) => steps)
      .findLast((step) => turnOf(step)?.contents?.[turn.tools] !== undefined);
    const specs = ((recorded && turnOf(recorded)?.contents?.[turn.tools]) ??
      []) as unknown as readonly ToolSpec[];
    assertToolNames(
      names,
      specs.map(({ name }) => name),
      `a fork that changes ${wanted.taskId}`,
    );
    return specs.filter(({ name }) => names.includes(name));
  }

  /** Finds the recorded result of a call. Throws if there is none, or if a later model call depends on it. */
  #find({ callId, output, isError = false }: EditedResult): EditedStep {
    const { steps, wanted } = this.#fork;
    const own = steps.filter((step) => step.taskId === wanted.taskId);
    const reply = own.findLast((step) => step.kind === "llm" && step.outcome.kind === "ok");
    const calls = reply === undefined ? [] : callsOf(reply);
    const position = calls.findIndex((call) => call.callId === callId);
    const address = reply === undefined || position < 0 ? undefined : stepAt(reply.address, position);
    const step = own.find((each) => each.kind === "tool" && each.address === address);
    if (step === undefined || step.outcome.kind !== "ok")
      throw new Fault(
        "invalid_argument",
        `invalid toolResults of fork(): the last model call of ${wanted.taskId} before the cut has no result of a call ${JSON.stringify(callId)}; use the event of the next message_start as \`at\`, and one of ${calls.map((call) => call.callId).join(", ") || "no calls"}`,
      );
    const toolName = calls[position]?.toolName ?? step.name;
    return { step, result: { callId, toolName, output: outputOf(output), isError } };
  }

  #editedStep({ step, result: { output, isError } }: EditedStep): StepRecord {
    if (step.outcome.kind !== "ok") return step;
    const { by, at } = this.#fork;
    const recorded = step.outcome.value as unknown as ToolResult;
    const value: ToolResult = {
      ...recorded,
      output,
      isError,
      metadata: { ...recorded.metadata, edited: { by, at } },
    };
    return { ...step, outcome: Object.freeze({ kind: "ok", value: value as unknown as JsonValue }) };
  }
}

/** Throws if the changed task does not exist at the cut, or has ended there and does not start again. */
export function refuseEndedTask(
  commits: readonly Commit[],
  { taskId, instructions, tools, toolResults, model }: WantedFork,
  at: number,
  restarts: boolean,
): void {
  const isRoot = taskId === formatTaskId(0);
  const changes = instructions !== undefined || tools !== undefined || toolResults !== undefined;
  if (isRoot && (!changes || restarts)) return;
  let status: "absent" | "live" | "ended" = "absent";
  for (const { tasks = [] } of commits)
    for (const change of tasks) {
      if ((change.type === "create" ? change.task.taskId : change.taskId) !== taskId) continue;
      if (change.type === "end") status = "ended";
      if (change.type === "create" || change.type === "reopen") status = "live";
    }
  if (status === "live" || (isRoot && status === "absent")) return;
  const what = [changes && "instructions, tools or results", model && "model"].filter(Boolean).join(" and ");
  throw new Fault(
    "invalid_argument",
    `a fork at event ${at} cannot change the ${what || "input"} of ${taskId}: the task ${status === "ended" ? "has ended" : "does not exist"} there; use the event of one of its calls`,
  );
}

function withChanges(task: TaskRecord, changes: StoredChanges): TaskRecord {
  return Object.keys(changes).length === 0 ? task : { ...task, changes: { ...task.changes, ...changes } };
}

function withBudget(task: TaskRecord, budget: Partial<ExecutionBudget>): TaskRecord {
  const tightened = tightenBudget(task.budget, budget);
  return { ...task, budget: tightened, supervision: { ...task.supervision, executionBudget: tightened } };
}

function outputOf(output: JsonValue): ToolOutput {
  return typeof output === "string" ? { type: "text", text: output } : { type: "json", value: output };
}

function callsOf({ outcome }: StepRecord): readonly ToolCallPart[] {
  if (outcome.kind !== "ok" || outcome.value === null) return [];
  return toolCallsOf((outcome.value as unknown as LlmReply).message);
}

/**
 * Returns the turn that a step records. `undefined` for another kind of step, and for a turn that retention has
 * erased.
 */
export function turnOf({ kind, outcome }: StepRecord): TurnRecord | undefined {
  if (kind !== "turn" || outcome.kind !== "ok" || outcome.value === null) return undefined;
  return outcome.value as unknown as TurnRecord;
}
