import type { AgentId } from "../base/identity.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { ApprovalHandler } from "./tool-gate.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";

/**
 * What is allowed if no rule matches. `default` asks a person before critical and destructive calls. `acceptEdits` also
 * allows destructive calls that only edit files. `bypass` allows everything.
 */
export type PermissionMode = "default" | "acceptEdits" | "bypass";

/** The decision of the permissions on one tool call. */
export type PermissionDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "deny"; readonly reason: string }
  /** A person decides. If no person can be asked, the call is denied. */
  | { readonly decision: "ask"; readonly reason: string };

/** An approval that applies to later calls as well: one user of one tenant, for one tool of one agent. */
export interface RememberedApproval {
  /** Id of the tenant. `null` for runs without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. `null` matches only runs without a user; it is not a wildcard. */
  readonly userId: string | null;
  /** Id of the agent whose tool is approved. */
  readonly agentId: AgentId;
  /** Name of the approved tool. */
  readonly toolName: string;
}

/** Stores remembered approvals. If a method throws, the approval counts as not remembered. */
export interface ApprovalMemory {
  /** Whether this approval is stored. */
  has(approval: RememberedApproval): boolean | Promise<boolean>;
  /** Stores an approval. */
  add(approval: RememberedApproval): void | Promise<void>;
  /** Deletes an approval. */
  delete(approval: RememberedApproval): void | Promise<void>;
}

/**
 * Decides which tool calls are allowed. A denying rule takes precedence over an allowing rule, and both over the mode.
 */
export interface Permissions {
  /** Decides on one tool call. */
  check(call: ToolCall, tool: Tool, facts: RunFacts): PermissionDecision | Promise<PermissionDecision>;
  /**
   * How a person is asked. `wait` suspends the run durably until `RunHandle.approve` answers. A handler asks in this
   * process. If absent, no person can be asked.
   */
  readonly onAsk?: "wait" | ApprovalHandler;
  /** Where remembered approvals are stored. If absent, none is remembered. */
  readonly memory?: ApprovalMemory;
}
