import type { ApprovalDecision, ApprovalRequest } from "../run/approval.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { TaskFolder } from "../run/task-folder.ts";
import { withNote } from "../messages/tool-note.ts";
import type { ToolCall, ToolResult } from "../messages/tool-call.ts";
import type { ToolOutput } from "../messages/content.ts";
import type { ChatMiddleware, FunctionMiddleware } from "./middleware.ts";
import type { RepairToolCall } from "./tool-repair.ts";
import type { Tool } from "./tool.ts";

/** A tool call with the result that the model received. */
export interface SettledCall {
  /** The call. */
  readonly call: ToolCall;
  /** The result that the model received. */
  readonly result: ToolResult;
}

/** The arguments of a call before and after `Tool.parse`. */
export interface CallArguments {
  /** Arguments as the model sent them, or as a person edited them in an approval. */
  readonly sent: JsonValue;
  /** Value that `Tool.execute` receives. It need not be JSON. The checks of the pipeline must not change it. */
  readonly parsed: unknown;
}

/**
 * A tool call that the checks of a pipeline judge. The tool exists, the task may call it, and its arguments are
 * parsed.
 */
export interface GatedCall extends CallArguments {
  /**
   * The call. Its `input` is the parsed value in JSON form, so that the checks judge the arguments that the tool
   * receives.
   */
  readonly call: ToolCall;
  /** The called tool. */
  readonly tool: Tool;
  /** Digest of the tool's server, name, description and schema. */
  readonly toolDigest: string;
  /** Whether the tool requires a person's approval for this call (`Tool.needsApproval`). */
  readonly needsApproval: boolean;
  /** Id of the calling agent. */
  readonly agentId: AgentId;
  /** Id of the calling task. */
  readonly taskId: TaskId;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** User, session and run of the task. */
  readonly facts: RunFacts;
  /** D1: the folder in which the task works. `null` if it has none. */
  readonly folder: TaskFolder | null;
  /**
   * The settled calls of the task, oldest first, including calls from the journal. A decision based on this list
   * survives a restart; a counter in memory does not. The list excludes calls of the same batch and calls inside the
   * body of another tool or step.
   */
  readonly history: readonly SettledCall[];
  /**
   * Run context for the steps of a check, scoped under this call. The runtime journals and charges them like all
   * steps.
   */
  readonly ctx: RunContext;
  /**
   * Writes an event to the run's log, in the commit that records the call. The restrictions of `ctx.emitEvent`
   * apply.
   */
  readonly emitEvent: (event: EmittableEvent) => void;
}

/** Asks a person in this process to decide on a call. An error that it throws counts as a denial. */
export type ApprovalHandler = (
  request: ApprovalRequest,
  facts: RunFacts,
) => ApprovalDecision | Promise<ApprovalDecision>;

/** An objection of a check that does not stop the call. */
export interface Objection {
  /** Name of the part of the agent that objects, for example `guardrail pii`. */
  readonly by: string;
  readonly reason: string;
}

/**
 * The decision of a check about a tool call. A check that returns `undefined` has no opinion, and the next one
 * decides. `by` names the part of the agent that decided.
 *
 * - `allow`: the tool is executed, whatever the later checks and the tool's `needsApproval` say.
 * - `edit`: other arguments replace those of the call. They are parsed and pass all checks again. If they equal the
 *   old ones, nothing changes.
 * - `answer`: the model receives this result. As a decision before the call, the tool is then not executed.
 * - `deny`: before the call, the tool is not executed. After the call, its result is withheld. The model receives
 *   the reason.
 * - `ask`: a person decides. Only before the call.
 * - `warn`: the call continues. After the call, the objections are added to its result.
 * - `halt`: the run stops with the status `guardrail_tripped`, as if the check had thrown `MiddlewareTermination`.
 * - `terminate`: the model receives this result, which also asks the loop to end after this turn. Only after the
 *   call.
 */
export type CallVerdict =
  | { readonly decision: "allow" }
  | { readonly decision: "edit"; readonly input: JsonValue }
  | { readonly decision: "answer"; readonly result: ToolResult }
  | Denial
  | AskVerdict
  | { readonly decision: "warn"; readonly objections: readonly Objection[] }
  | ({ readonly decision: "halt" } & Objection)
  | { readonly decision: "terminate"; readonly result: ToolResult };

/** The decision that a call is not executed, or that its result is withheld. */
export interface Denial extends Objection {
  readonly decision: "deny";
  /** What the model receives. Default: a text with the reason. */
  readonly text?: string;
}

/** The decision to ask a person about a call. */
export interface AskVerdict extends Objection {
  readonly decision: "ask";
  /**
   * Whether an approval also covers later calls of the same scope. If set, `BeforeCall.remember` is called for
   * every approval.
   */
  readonly once?: boolean;
  /** Identities of the rules that ask. `BeforeCall.remember` receives them. Default: `reason`. */
  readonly rules?: readonly string[];
  /** Asks a person in this process. If absent, the task waits durably for `RunHandle.approve`. */
  readonly answer?: ApprovalHandler;
}

/**
 * A check that decides before a tool call is executed.
 *
 * A cancel, an exhausted budget and `MiddlewareTermination` stop the run. Any other error of the check denies the
 * call.
 */
export interface BeforeCall {
  /** Name of the part of the agent that makes this check, as errors and documentation name it. */
  readonly name: string;
  decide(call: GatedCall): CallVerdict | undefined | Promise<CallVerdict | undefined>;
  /**
   * Remembers an approval. Called when a person approves with `remember: true`, or approves a call about which this
   * check asked with `once`. May be called twice for one call. `rules` are those of the verdict at the time when
   * the person was asked.
   */
  remember?(call: GatedCall, decision: ApprovalDecision, rules: readonly string[]): Promise<void>;
}

/**
 * A check of the result of a tool call. It also sees failed calls and calls with invalid arguments, but no denied
 * calls.
 *
 * A cancel, an exhausted budget and `MiddlewareTermination` stop the run. Any other error of the check withholds
 * the result.
 */
export interface AfterCall {
  /** Name of the part of the agent that makes this check, as errors and documentation name it. */
  readonly name: string;
  decide(call: GatedCall, result: ToolResult): CallVerdict | undefined | Promise<CallVerdict | undefined>;
}

/**
 * The phases that every tool call of an agent passes, in the order of the fields. F1: a phase without checks is
 * absent. Before `repair` the runtime checks the call limit. After `repair` it checks the tools of the task and of
 * the turn, and after `before` the tool's own need for approval, and it asks the person.
 *
 * - J7: a decision to ask is journaled before a person is asked, and the answer is bound to the arguments in the
 *   request and to the tool's digest. If the tool or the parsed arguments change before the call is executed,
 *   `before` decides again.
 * - Arguments that a person edited pass `before` again. Only `deny` and `halt` have an effect then.
 * - No check runs for a call that the journal has recorded.
 */
export interface ToolPipeline {
  /** Corrects a malformed call. The corrected call is validated and judged like any other. */
  readonly repair?: RepairToolCall;
  /** The checks before the call, in this order. The first decision other than `warn` and `edit` counts. */
  readonly before?: readonly BeforeCall[];
  /** Middleware around the tool's body. It runs after `before` has allowed the call and a person has approved it. */
  readonly around?: FunctionMiddleware;
  /** The checks of the result, in this order. Each check receives the result as the checks before it left it. */
  readonly after?: readonly AfterCall[];
}

/** The phases that every model call of an agent passes. F1: a phase without middleware is absent. */
export interface ModelPipeline {
  /**
   * Middleware around the call. The runtime makes the reservation, the call and its retries inside this middleware.
   */
  readonly around?: ChatMiddleware;
}

const mark = "[warning by the ";

/** Adds objections to a result, for the model to read. */
export function withObjections(result: ToolResult, objections: readonly Objection[]): ToolResult {
  if (objections.length === 0) return result;
  const lines = objections.map(({ by, reason }) => `${mark}${by}: ${reason}]`);
  return withNote(result, lines.join("\n"));
}

/** Returns the tool's own text in an output, without the objections that checks added. Used to compare results. */
export function ownAnswer(output: ToolOutput): string {
  const text = output.type === "json" ? JSON.stringify(output.value) : asContent(output);
  const at = text.indexOf(`\n\n${mark}`);
  return at < 0 ? text : text.slice(0, at);
}

function asContent(output: Exclude<ToolOutput, { type: "json" }>): string {
  if (output.type === "text") return output.text;
  return output.parts.map((part) => (part.type === "text" ? part.text : JSON.stringify(part))).join("");
}
