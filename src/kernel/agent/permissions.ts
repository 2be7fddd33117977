import { Fault } from "../base/fault.ts";
import type { AgentId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { ApprovalDecision } from "../run/approval.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { TaskFolder } from "../run/task-folder.ts";
import type { RunHandle, TopUpOptions } from "./run-handle.ts";
import type { ApprovalHandler, CallArguments } from "./call-pipeline.ts";
import type { Tool } from "./tool.ts";

/**
 * What happens to a tool call if no rule matches. `default` asks a person before critical and destructive calls,
 * and once for each value of `Tool.approvalScope`. `acceptEdits` also allows destructive calls that only edit
 * files. `bypass` allows everything.
 */
export type PermissionMode = "default" | "acceptEdits" | "bypass";

/** The decision of the permissions on one tool call. */
export type PermissionDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "deny"; readonly reason: string }
  /**
   * A person decides. If no person can be asked, the call is denied. `once` means that an approval covers later
   * calls of the same scope (`Tool.approvalScope`), even if the person does not ask to remember it. `rules`
   * identifies all rules that ask about the call: a remembered approval covers a call only if it covers each of
   * these rules. Default: `reason`.
   */
  | {
      readonly decision: "ask";
      readonly reason: string;
      readonly once?: boolean;
      readonly rules?: readonly string[];
    };

/** The effect of a permission rule. */
export type RuleKind = "allow" | "ask" | "deny";

/** What the predicate of a rule receives in addition to the parsed arguments and the facts of the run. */
export interface RuleDetails {
  /** Arguments as the model sent them, or as a person edited them. */
  readonly sent: JsonValue;
  /** Name of the called tool. */
  readonly toolName: string;
  /**
   * The effect of the rule. A predicate that is unsure returns `false` for `allow`, and `true` for the other
   * effects.
   */
  readonly kind: RuleKind;
  /** D1: the folder in which the calling task works. `null` if it has none. */
  readonly folder: TaskFolder | null;
}

/** What the permissions receive about a call in addition to the call itself. */
export interface CallDetails extends CallArguments {
  /** D1: the folder in which the calling task works. Absent or `null` if it has none. */
  readonly folder?: TaskFolder | null;
}

/**
 * The calls to which a rule applies: calls of tools by name or pattern (`mcp__*`), optionally only with certain
 * arguments.
 */
export type PermissionRule =
  | string
  | {
      /** Name or pattern of the tools. */
      readonly tool: string;
      /**
       * Whether the rule applies to a call. `input` is the value that the tool's body receives: coerced, validated
       * and transformed. If the predicate throws or returns no boolean, the call is treated as if the rule forbade
       * it.
       */
      readonly when?: (input: unknown, facts: RunFacts, details: RuleDetails) => boolean;
      /** The reason that the model and the person who is asked receive. */
      readonly reason?: string;
    };

/**
 * An approval that applies to later calls as well. It belongs to one user of one tenant, and to one tool of one
 * agent and one rule that asks. A memory compares all fields; `approvalKey()` makes one text of them.
 */
export interface RememberedApproval {
  /** Id of the tenant. `null` for runs without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. `null` matches only runs without a user; it is not a wildcard. */
  readonly userId: string | null;
  /** Id of the agent whose tool is approved. */
  readonly agentId: AgentId;
  /** Name of the approved tool. */
  readonly toolName: string;
  /** Digest of the tool's server, name, description and schema. A changed tool is not approved. */
  readonly toolDigest: string;
  /** What the approved call reaches (`Tool.approvalScope`), such as a host. `null` if the tool has no such value. */
  readonly scope: string | null;
  /**
   * Identity of the rule about which the person was asked, or the reason if no rule asked. The approval has no
   * effect on other rules that ask about the same tool.
   */
  readonly rule: string;
  /**
   * `always`: the person wants the approval to be remembered. `once`: the person approved a call that asks once for
   * each scope. An approval of kind `once` has no effect on a rule that asks, or on the tool's `needsApproval`.
   */
  readonly kind: "once" | "always";
}

/**
 * Returns a text that is equal for equal approvals, for a memory that needs one key. The text is JSON, so that a
 * user named "null" differs from no user, and adjacent names cannot be confused.
 */
export function approvalKey(approval: RememberedApproval): string {
  const { tenantId, userId, agentId, toolName, toolDigest, scope, rule, kind } = approval;
  return JSON.stringify([tenantId, userId, agentId, toolName, toolDigest, scope, rule, kind]);
}

/** Stores remembered approvals. If one of its methods throws, the runtime treats the approval as not remembered. */
export interface ApprovalMemory {
  /** Whether this approval is stored. */
  has(approval: RememberedApproval): boolean | Promise<boolean>;
  /** Stores an approval. */
  add(approval: RememberedApproval): void | Promise<void>;
  /** Deletes an approval. */
  delete(approval: RememberedApproval): void | Promise<void>;
}

/**
 * Decides which tool calls are allowed. A denying rule takes precedence over an allowing rule, and rules take
 * precedence over the mode.
 */
export interface Permissions {
  /** Decides on one tool call. `call.input` contains the parsed arguments in JSON form. */
  check(
    call: ToolCall,
    tool: Tool,
    facts: RunFacts,
    details: CallDetails,
  ): PermissionDecision | Promise<PermissionDecision>;
  /**
   * How a person is asked. `wait` suspends the run until `RunHandle.approve` answers, also over restarts. An
   * `ApprovalHandler` asks in this process. If absent, no person can be asked.
   */
  readonly onAsk?: "wait" | ApprovalHandler;
  /** Where remembered approvals are stored. If absent, approvals are not remembered. */
  readonly memory?: ApprovalMemory;
}

/** Answers an approval request of a run. Does nothing if the run has ended or another person has answered first. */
export async function answerIfLive(
  run: Pick<RunHandle, "approve">,
  approvalId: string,
  decision: ApprovalDecision,
  options: TopUpOptions = {},
): Promise<void> {
  try {
    await run.approve(approvalId, decision, options);
  } catch (error) {
    if (!Fault.is(error)) throw error;
    const hasEnded = error.code === "not_found" && error.details?.["status"] !== undefined;
    if (!hasEnded && error.code !== "already_exists") throw error;
  }
}

/**
 * Whether a mistaken call of the tool counts as `critical`, which is also the case if the tool states no known
 * risk.
 */
export function isCritical({ risk }: Partial<Pick<Tool, "risk">>): boolean {
  return risk !== "safe" && risk !== "high";
}

/** Returns what a call reaches (`Tool.approvalScope`), such as a host. `null` if the tool has no such value. */
export function scopeOfCall(tool: Pick<Tool, "approvalScope">, parsed: unknown): string | null {
  return tool.approvalScope?.(parsed) ?? null;
}

/**
 * Returns why a call needs a person's approval if no permissions decide: the tool is critical, or the call reaches
 * something that was not approved. `undefined` if the call needs no approval. The tool's own `needsApproval` is
 * checked separately.
 */
export function reasonToAsk(tool: Tool, parsed: unknown): string | undefined {
  if (isCritical(tool)) return `${tool.name} is critical`;
  const scope = scopeOfCall(tool, parsed);
  return scope === null ? undefined : `${tool.name} reaches ${scope}`;
}
