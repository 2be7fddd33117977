import {
  describeValue,
  Fault,
  readProperty,
  type ApprovalDecision,
  type ApprovalRequest,
  type Event,
  type Mail,
  type RunId,
  type RunSummary,
  type TaskId,
  type UnknownPrice,
  type SchemaCheck,
  type JsonValue,
} from "../../kernel/index.ts";
import type { RunStore } from "./run-store.ts";
import { RunState } from "../journal/run-state.ts";
import { takesInput } from "../journal/task-record.ts";
import type { TaskState } from "../journal/task-state.ts";

/** Whether the mail contains a command that may resume an ended run. */
export function mayResume(mail: readonly Mail[]): boolean {
  return mail.some(
    ({ body }) =>
      body.type === "resume" || body.type === "top_up" || (body.type === "cancel" && body.reopens === true),
  );
}

/** Reads the stored state of a run, and throws for commands that the run could not receive. */
export class StoredRun {
  readonly #runId: RunId;
  readonly #store: RunStore;
  readonly #unknownPrice: UnknownPrice;

  constructor(runId: RunId, store: RunStore, unknownPrice: UnknownPrice = "refuse") {
    this.#runId = runId;
    this.#store = store;
    this.#unknownPrice = unknownPrice;
  }

  /** Computes the state of the run from its journal. Costs O(commits of the run). */
  async readState(): Promise<RunState> {
    const state = new RunState(this.#unknownPrice);
    for await (const commit of this.#store.journal.read(this.#runId)) state.fold(commit);
    return state;
  }

  async summary(): Promise<RunSummary> {
    const summary = await this.#store.journal.summary(this.#runId);
    if (summary === undefined)
      throw new Fault("not_found", `run ${this.#runId} does not exist in this store`);
    return summary;
  }

  /** Whether the run has ended, and no command in its mailbox may resume it. */
  async isOver(): Promise<boolean> {
    if (await this.#isToBeResumed()) return false;
    return (await this.summary()).endedAt !== null;
  }

  async refuseIfOver(command: string): Promise<void> {
    if (!(await this.isOver())) return;
    const runId = this.#runId;
    const { status } = await this.summary();
    const advice =
      status === "completed" ? "start another one" : "resume the run first, or start another one";
    throw new Fault(
      "not_found",
      `the ${command} does not reach run ${runId}, because the run has ended (${status}); ${advice}`,
      { details: { runId, status } },
    );
  }

  async liveTask(taskId: TaskId): Promise<TaskState> {
    const isToBeResumed = await this.#isToBeResumed();
    const task = await this.task(taskId);
    if (task.outcome === null || isToBeResumed) return task;
    throw this.#unreachable(taskId, `has ended (${task.outcome.status})`);
  }

  /** Throws for input to a task that would not read it. The root reads input at any time (S5). */
  async refuseUnlessTakesInput(taskId: TaskId): Promise<void> {
    const { record } = await this.liveTask(taskId);
    if (takesInput(record)) return;
    throw new Fault(
      "invalid_argument",
      `task ${taskId} of run ${this.#runId} reads no input, because an earlier version of reeve started it; send the input to the root task`,
      { details: { runId: this.#runId, taskId } },
    );
  }

  async task(taskId: TaskId): Promise<TaskState> {
    const state = await this.readState();
    const task = state.tasks.get(taskId);
    if (task !== undefined) return task;
    throw this.#unreachable(
      taskId,
      state.isForgotten(taskId) ? "has ended in an earlier history of the run" : "does not exist",
    );
  }

  /** Whether the task has ended. Throws `not_found` if it does not exist. */
  async hasEnded(taskId: TaskId): Promise<boolean> {
    if ((await this.readState()).isForgotten(taskId)) return true;
    return (await this.task(taskId)).outcome !== null;
  }

  #unreachable(taskId: TaskId, problem: string): Fault {
    const runId = this.#runId;
    return new Fault(
      "not_found",
      `task ${taskId} of run ${runId} ${problem}; use the taskId of a task_start event of a live task`,
      { details: { runId, taskId } },
    );
  }

  /**
   * Returns the event with which the run asked a question. Throws for a decision on a question that the run has not
   * asked or that was answered, for an approval without a required answer, and for edited arguments that do not
   * match the schema.
   */
  async openQuestion(
    approvalId: string,
    decision: ApprovalDecision,
    checkSchema?: SchemaCheck,
  ): Promise<Event<"approval_request">> {
    const runId = this.#runId;
    const { request, answer } = await this.#question(approvalId);
    if (request === undefined)
      throw new Fault(
        "not_found",
        `run ${runId} has no approval request ${JSON.stringify(approvalId)}; use the approvalId of an approval_request event`,
        { details: { runId, approvalId } },
      );
    if (answer !== undefined) {
      const { decision: earlier } = answer.data;
      throw answered(runId, approvalId, { at: answer.at, decision: earlier });
    }
    const approved = decision.decision === "approved" ? decision : undefined;
    let problem = approved && answerProblem(request.data, approved.input);
    // Without edited arguments nothing is awaited here, so that the first of two answers is also sent first.
    if (problem === undefined && approved?.input !== undefined)
      problem = await argumentsProblem(request.data, approved.input, checkSchema);
    if (problem === undefined) return request;
    throw new Fault("invalid_argument", `invalid decision on ${approvalId}: ${problem}`, {
      details: { runId, approvalId, callId: request.data.callId },
    });
  }

  /** Creates the fault for an answer that arrived after another one. `mailId` is the mail id of the answers. */
  async answeredBefore(approvalId: string, mailId: string): Promise<Fault> {
    // The mailbox is read first: the owner removes the mail with the commit that holds the decision.
    const mail = (await this.#store.mailbox.read(this.#runId)).find(({ id }) => id === mailId);
    if (mail?.body.type === "approval") {
      const { at, from, body } = mail;
      return answered(this.#runId, approvalId, { at, decision: { ...body.decision, by: from } });
    }
    const { answer } = await this.#question(approvalId);
    return answered(
      this.#runId,
      approvalId,
      answer === undefined ? undefined : { at: answer.at, decision: answer.data.decision },
    );
  }

  /** Returns the last event with which the run asked a question, and the answer to it. */
  async #question(approvalId: string): Promise<{
    readonly request?: Event<"approval_request">;
    readonly answer?: Event<"approval_decision">;
  }> {
    let request: Event<"approval_request"> | undefined;
    let answer: Event<"approval_decision"> | undefined;
    for await (const event of this.#store.events.read(this.#runId)) {
      if (event.type === "approval_request" && event.data.approvalId === approvalId) {
        request = event;
        answer = undefined;
      } else if (event.type === "approval_decision" && event.data.approvalId === approvalId) answer = event;
    }
    return { ...(request !== undefined && { request }), ...(answer !== undefined && { answer }) };
  }

  /**
   * Whether a command that may resume the run is unread. It must be read before the state of the run: because one
   * commit both consumes the command and reopens the run, a state that is read later then includes the effect,
   * unless the command is still unread.
   */
  async #isToBeResumed(): Promise<boolean> {
    return mayResume(await this.#store.mailbox.read(this.#runId));
  }
}

/** Returns what is missing in an approval of this request. `undefined` if it is complete. */
function answerProblem(
  { kind, input, callId, toolName, foreign }: ApprovalRequest,
  answer: unknown,
): string | undefined {
  switch (kind) {
    case "client_tool":
      if (answer !== undefined) return undefined;
      return `the client-side tool ${toolName} needs a result; use run.toolResult(${JSON.stringify(callId)}, value)`;
    case "select": {
      const choices = readProperty(input, "choices");
      if (Array.isArray(choices) && choices.includes(answer)) return undefined;
      return `the answer ${describeValue(answer)} is not one of the choices; use input: one of ${JSON.stringify(choices)}`;
    }
    case "input":
      if (typeof answer === "string") return undefined;
      return `the answer ${describeValue(answer)} is no text; use input: "..."`;
    case "foreign_tool_call":
      if (answer === undefined) return undefined;
      return `the program ${foreign?.program ?? ""} makes the call ${toolName} with its own arguments; approve it as it is, or deny it and say why`;
    default:
      return undefined;
  }
}

/** T4: returns what is wrong with the edited arguments of a call. `undefined` if they match the schema of the tool. */
async function argumentsProblem(
  { toolName, inputSchema }: ApprovalRequest,
  edited: JsonValue,
  checkSchema: SchemaCheck | undefined,
): Promise<string | undefined> {
  if (inputSchema === undefined || checkSchema === undefined) return undefined;
  const problems = await checkSchema(inputSchema, edited);
  if (problems.length === 0) return undefined;
  return `the edited arguments do not match the schema of ${toolName}: ${problems.join("; ")}; the question is still open`;
}

/** Creates the fault for an answer to a question that was answered before. */
function answered(
  runId: RunId,
  approvalId: string,
  earlier: { readonly at: number; readonly decision: ApprovalDecision } | undefined,
): Fault {
  const { at = null, decision } = earlier ?? {};
  const by = decision?.by ?? null;
  return new Fault(
    "already_exists",
    `question ${JSON.stringify(approvalId)} of run ${runId} was answered before${by === null ? "" : ` by ${by}`}; the first answer counts`,
    { details: { runId, approvalId, by, decision: decision?.decision ?? null, at } },
  );
}
