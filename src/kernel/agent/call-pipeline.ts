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
  /** Arguments as the model sent them, or as a person edited them. */
  readonly sent: JsonValue;
  /** Value that `Tool.execute` receives. It need not be JSON. An entry must not change it. */
  readonly parsed: unknown;
}

/** A tool call that the entries judge. The tool exists, the task may call it, and the arguments are parsed. */
export interface GatedCall extends CallArguments {
  /** The call. Its `input` is `parsed` in JSON form, so that the entries judge what is executed. */
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
  /** Run context for steps of the entries, scoped under this call. They are journaled and charged like any step. */
  readonly ctx: RunContext;
  /** Writes an event to the run's log, in the commit that records the call. Has the restrictions of `ctx.emitEvent`. */
  readonly emitEvent: (event: EmittableEvent) => void;
}

/** Asks a person in this process to decide on a call. An error that it throws counts as a denial. */
export type ApprovalHandler = (
  request: ApprovalRequest,
  facts: RunFacts,
) => ApprovalDecision | Promise<ApprovalDecision>;

/** What an entry objects to, without stopping the call. */
export interface Objection {
  /** The part that objects, for example `guardrail pii`. */
  readonly by: string;
  readonly reason: string;
}

/**
 * The decision of an entry about a tool call. `undefined` in its place means that the entry has no opinion, and the next
 * entry decides. `by` names the part that decided.
 *
 * - `allow`: the call is executed, whatever the entries after this one and the tool's `needsApproval` say.
 * - `edit`: the arguments are replaced and parsed, and they pass all entries again. The same arguments change nothing.
 * - `answer`: the model receives this result. Before the call, the call is then not executed.
 * - `deny`: before the call, it is not executed. After it, the result is withheld. The model receives the
 *   reason.
 * - `ask`: a person decides. Only before the call.
 * - `warn`: the call continues. After it, the objections are added to the result.
 * - `halt`: the run stops with the status `guardrail_tripped`, as if the entry had thrown `MiddlewareTermination`.
 * - `terminate`: the model receives this result, which also asks the loop to end after this turn. Only after the call.
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
  /** Whether an approval covers later calls of the same scope. `remember` is then called for every approval. */
  readonly once?: boolean;
  /** Identities of the rules that ask, for `remember`. Default: `reason`. */
  readonly rules?: readonly string[];
  /** Asks a person in this process. If absent, the task waits durably for `RunHandle.approve`. */
  readonly answer?: ApprovalHandler;
}

/**
 * An entry that decides before a tool call is executed.
 *
 * A cancel, an exhausted budget and `MiddlewareTermination` stop the run. Any other error of the entry denies the call.
 */
export interface BeforeCall {
  /** The part that the entry stands for, as errors and documentation name it. */
  readonly name: string;
  decide(call: GatedCall): CallVerdict | undefined | Promise<CallVerdict | undefined>;
  /**
   * Called when a person approves with `remember: true`, or approves a call about which an entry asked with `once`. May
   * be called twice for one call. `rules` are those of the verdict, as they were when the person was asked.
   */
  remember?(call: GatedCall, decision: ApprovalDecision, rules: readonly string[]): Promise<void>;
}

/**
 * An entry that decides about the result of a tool call, failed or not, also of one with invalid arguments. It does not see denied
 * calls.
 *
 * A cancel, an exhausted budget and `MiddlewareTermination` stop the run. Any other error of the entry withholds the
 * result.
 */
export interface AfterCall {
  /** The part that the entry stands for, as errors and documentation name it. */
  readonly name: string;
  decide(call: GatedCall, result: ToolResult): CallVerdict | undefined | Promise<CallVerdict | undefined>;
}

/**
 * The entries that every tool call of an agent passes, in the order of the fields. F1: a phase without entries is
 * absent. The runtime adds its own entries: the call limit before `repair`, the tools of the task and the turn after it,
 * and the tool's own need for approval and the person after `before`.
 *
 * - J7: a decision to ask is journaled before a person is asked, and the answer is bound to the arguments in the request
 *   and to the tool's digest. If the tool or the parsed arguments change before the call is executed, `before` decides
 *   again.
 * - Arguments that a person edited pass `before` again. Only `deny` and `halt` have an effect then.
 * - For a recorded call no entry runs.
 */
export interface ToolPipeline {
  /** Corrects a malformed call. The corrected call is validated and judged like any other. */
  readonly repair?: RepairToolCall;
  /** The entries that decide before the call (the gate), in this order. The first decision other than `warn` and `edit` counts. */
  readonly before?: readonly BeforeCall[];
  /** Middleware around the tool's body. It runs after `before` has allowed the call and a person has approved it. */
  readonly around?: FunctionMiddleware;
  /** Decide about the result, in this order. Each entry sees the result as the entries before it left it. */
  readonly after?: readonly AfterCall[];
}

/** The entries that every model call of an agent passes. F1: a phase without entries is absent. */
export interface ModelPipeline {
  /** Middleware around the call. The reservation, the call and its retries run inside it. */
  readonly around?: ChatMiddleware;
}

const mark = "[warning by the ";

/** Adds objections to a result, for the model to read. */
export function withObjections(result: ToolResult, objections: readonly Objection[]): ToolResult {
  if (objections.length === 0) return result;
  const lines = objections.map(({ by, reason }) => `${mark}${by}: ${reason}]`);
  return withNote(result, lines.join("\n"));
}

/** The tool's own text in an output without the objections of entries, to compare results. */
export function ownAnswer(output: ToolOutput): string {
  const text = output.type === "json" ? JSON.stringify(output.value) : asContent(output);
  const at = text.indexOf(`\n\n${mark}`);
  return at < 0 ? text : text.slice(0, at);
}

function asContent(output: Exclude<ToolOutput, { type: "json" }>): string {
  if (output.type === "text") return output.text;
  return output.parts.map((part) => (part.type === "text" ? part.text : JSON.stringify(part))).join("");
}
