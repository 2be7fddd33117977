import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { JsonSchema } from "../base/schema.ts";

/**
 * The kind of question that a person is asked. `tool_call`: whether a tool call may run. `question`: a question
 * that code asks with `ctx.approval`. `elicitation`: a form or a URL visit that an MCP server requests; `input` is
 * the request. `client_tool`: a call of a client-side tool, which a program outside the run executes;
 * `RunHandle.toolResult` answers it. `confirm`, `select` and `input`: questions of an extension. Their `input` is
 * `{ message }`, with the `choices` of a `select` and the `placeholder` of an `input`. The decision `approved`
 * means yes; for a `select` and an `input`, its `input` is the choice or the text. `top_up`: whether the budget of
 * a task is raised, because a call does not fit into it (`OnBudget`). Its `input` is a `TopUpQuestion`. The
 * decision `approved` adds its `input`, such as `{ maxCostUsd: 0.25 }`, or the offered amount if `input` is absent;
 * `denied` and `skipped` let the call fail with `budget_exhausted`. `foreign_tool_call`: whether a program that
 * Reeve does not run may make a call with its own tool (`ctx.attempt`); `foreign` contains what the program reports
 * about the call. Reeve does not check these reports, and a person cannot edit the arguments. `merge`: whether a
 * prepared merge of the work of tasks is executed (D9). Its `input` is a `MergeQuestion`.
 */
export type ApprovalKind =
  | "tool_call"
  | "question"
  | "elicitation"
  | "client_tool"
  | "confirm"
  | "select"
  | "input"
  | "top_up"
  | "foreign_tool_call"
  | "merge";

/** A place that a call of a program names. */
export interface ForeignLocation {
  /** Absolute path. */
  readonly path: string;
  /** Line, from 1. */
  readonly line?: number;
  /** Whether the path is outside the folder in which the program works. */
  readonly isOutside: boolean;
}

/** A change of a file that a call of a program would make, or has made. */
export interface ForeignDiff {
  /** Absolute path. */
  readonly path: string;
  /** The change as a unified diff. */
  readonly diff: string;
  /** Whether the path is outside the folder in which the program works. */
  readonly isOutside: boolean;
  /** Present if the texts were too long, so that a part of the change is missing. */
  readonly isCut?: true;
}

/** What a program tells a person about a call with its own tool. Reeve does not check it. */
export interface ForeignCallView {
  /** What the call does, in words. */
  readonly title?: string;
  /** Kind of the call, such as `edit`, `execute` or `fetch`. */
  readonly kind?: string;
  /**
   * The answers that the program offers, by kind. Reeve never uses a kind that ends with `_always`, because Reeve
   * itself remembers approvals.
   */
  readonly options?: readonly { readonly kind: string; readonly name: string }[];
  /** The places that the call concerns. */
  readonly locations?: readonly ForeignLocation[];
  /** The changes of files. */
  readonly diffs?: readonly ForeignDiff[];
}

/** Whether the question is about a tool call, made by the agent or by a program. */
export function asksAboutCall({ kind }: Pick<ApprovalRequest, "kind">): boolean {
  return kind === "tool_call" || kind === "foreign_tool_call";
}

/** A question to a person. It is durable until it is answered. */
export interface ApprovalRequest {
  /** Id of the request. Pass it to `RunHandle.approve`. */
  readonly approvalId: string;
  /**
   * The kind of question. The runtime sets it: only a check before a tool call asks with `tool_call`, and the
   * arguments of a call cannot change the kind.
   */
  readonly kind: ApprovalKind;
  /** Name of the tool to approve, or of the tool that asks. */
  readonly toolName: string;
  /** Id that the provider gave the call. */
  readonly callId: string;
  /** Arguments of the call as the model sent them, or the content of the question. */
  readonly input: JsonValue;
  /** Arguments with which the tool is executed, in JSON form. Present only if they differ from `input`. */
  readonly parsedInput?: JsonValue;
  /** Digest of `input`. The answer is valid only for these arguments. */
  readonly inputDigest: string;
  /**
   * Digest of the tool's server, name, description and schema. Present only for a `tool_call` and a
   * `foreign_tool_call`. If the tool changes before the call is executed, the answer is not used, and the person is
   * asked again.
   */
  readonly toolDigest?: string;
  /**
   * JSON Schema of the tool's arguments. Present only for a `tool_call`. Arguments that a person edits must match
   * it. It is absent from questions that earlier versions asked; the tool then checks the arguments.
   */
  readonly inputSchema?: JsonSchema;
  /** Why a person is asked: the permission rule, tool, guardrail or MCP server that requires the approval. */
  readonly reason: string;
  /** What the program reports about its call. Present only for a `foreign_tool_call`. */
  readonly foreign?: ForeignCallView & {
    /** Name of the program. */
    readonly program: string;
  };
}

/** A question of a run that no person has answered yet. */
export interface PendingApproval extends ApprovalRequest {
  /** The task that asks. */
  readonly taskId: TaskId;
  /** The agent that asks. */
  readonly agentId: AgentId;
  /** Time at which the person was asked, in epoch milliseconds. */
  readonly requestedAt: number;
}

/** A person's answer to an `ApprovalRequest`. `by` names the person. */
export type ApprovalDecision =
  /**
   * Runs the call. `input` replaces the arguments that the model sent; it is parsed and checked again. `remember`
   * also approves later calls of this tool for this user.
   */
  | {
      readonly decision: "approved";
      readonly input?: JsonValue;
      readonly remember?: boolean;
      readonly by?: string;
    }
  /** Does not run the call. The model receives an error with the reason. */
  | { readonly decision: "denied"; readonly reason?: string; readonly by?: string }
  /** Does not run the call. The model receives a note that the call was skipped, and continues. */
  | { readonly decision: "skipped"; readonly by?: string };

/**
 * Whether a value is a valid decision. Any other value, such as `true` or a misspelt word, does not count as an
 * approval.
 */
export function isApprovalDecision(value: unknown): value is ApprovalDecision {
  if (typeof value !== "object" || value === null || !("decision" in value)) return false;
  return value.decision === "approved" || value.decision === "denied" || value.decision === "skipped";
}

/** The question of `ctx.approval`: code inside a run, such as a tool's body, asks a person. */
export interface PersonQuestion extends Pick<ApprovalRequest, "toolName" | "callId" | "input" | "reason"> {
  /** The kind of question. Default: `question`. Code cannot ask with `tool_call`, `top_up` and `foreign_tool_call`. */
  readonly kind?: Exclude<ApprovalKind, "tool_call" | "top_up" | "foreign_tool_call">;
}

/** A question of any run that no person has answered yet. */
export interface OpenApproval extends PendingApproval {
  /** Id of the run that asks. Answer with `RunHandle.approve` or `toolResult` of this run. */
  readonly runId: RunId;
  /** Id of the run's session. */
  readonly sessionId: SessionId;
  /** Id of the agent of the run's root task. `agentId` is the agent that asks. */
  readonly rootAgentId: AgentId;
  /** Id of the run's tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** Id of the run's user. `null` for a run without a user. */
  readonly userId: string | null;
}

/** Selects open questions. A question must match all given fields. */
export interface ApprovalQuery {
  /** Id of the run that asks. */
  readonly runId?: string;
  /** Id of the agent that asks. */
  readonly agentId?: string;
  /** Id of the run's tenant. `null` selects runs without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the run's user. `null` selects runs without a user. */
  readonly userId?: string | null;
  /** Maximum number of questions per page. Default: 50. */
  readonly limit?: number;
  /** The `next` value of the previous page. If absent, returns the first page. */
  readonly after?: string;
}

/** One page of open questions. */
export interface ApprovalPage {
  /** The questions, longest wait first. */
  readonly approvals: readonly OpenApproval[];
  /**
   * Position of the next page, for `ApprovalQuery.after`. It stays valid when questions are asked or answered
   * between two reads. `null` on the last page.
   */
  readonly next: string | null;
}

/**
 * The decision of a guardrail. S4: if a guardrail throws, the error is recorded, and `onError` of the guardrail
 * determines whether it counts as `block` or `allow`.
 *
 * | stage | warn | block | halt | |---|---|---|---| | input | recorded | the invocation ends as `guardrail_tripped`
 * before any call is paid | like `block` | | tool_call | recorded | the call is not executed; the model gets an
 * error result with the reason | the run stops | | tool_result | the reason is appended to the result | the result
 * is **withheld**: the call took place and stays recorded, but the model gets an error result with the reason (trap
 * O6) | the run stops | | output | recorded | the output is withheld: `output` is the reason, status
 * `guardrail_tripped` | like `block` |
 */
export type GuardrailDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "warn" | "block" | "halt"; readonly reason: string };

/** The place at which a guardrail decides: the input, a tool call, a tool result or the output. */
export type GuardrailStage = "input" | "tool_call" | "tool_result" | "output";

/** What an error of a guardrail counts as. */
export type OnGuardrailError = "block" | "allow";

/**
 * The value that ends a task's wait. `join`, `ask`, `sleepUntil`, `waitForSignal` and approvals use one mechanism:
 * a task waits for a name, and a resolution with that name ends the wait. W1: a resolution that arrives before the
 * wait is kept. Each resolution is consumed once, by the step that waited. W2: several resolutions of one name are
 * consumed in the order of arrival.
 */
export interface Resolution {
  /** Id of the waiting task. */
  readonly taskId: TaskId;
  /** Name of the wait. */
  readonly wait: string;
  /** Value that the wait returns. */
  readonly value: JsonValue;
  /**
   * S5: the id of the run that the input would have started. Present for an input that was submitted and became
   * steering.
   */
  readonly runId?: RunId;
  /** S5: the metadata of the submission. Present for an input that was submitted and became steering. */
  readonly metadata?: JsonObject;
  /**
   * Id of an input that waits in a queue of the run. Absent for other values, and for input that an earlier build
   * received.
   */
  readonly inputId?: string;
}
