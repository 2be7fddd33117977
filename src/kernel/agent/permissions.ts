import type { AgentId } from "../base/identity.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { ApprovalHandler } from "./tool-gate.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";

/** How much is allowed without a rule: `acceptEdits` lets edits of files through, `bypass` lets everything through. */
export type PermissionMode = "default" | "acceptEdits" | "bypass";

export type PermissionDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "deny"; readonly reason: string }
  /** A person decides; with nobody to ask it is a deny. */
  | { readonly decision: "ask"; readonly reason: string };

/** What a person does not want to be asked again: this user of this tenant, for this agent's tool. */
export interface RememberedApproval {
  readonly tenantId: string | null;
  /** `null`, nobody in particular, is a bucket of its own and no wildcard. */
  readonly userId: string | null;
  readonly agentId: AgentId;
  readonly toolName: string;
}

/** Where remembered approvals are kept. What it throws is: not remembered. */
export interface ApprovalMemory {
  has(approval: RememberedApproval): boolean | Promise<boolean>;
  add(approval: RememberedApproval): void | Promise<void>;
  delete(approval: RememberedApproval): void | Promise<void>;
}

/** Who may call what. Deny beats allow beats mode. One gate for every call of every architecture. */
export interface Permissions {
  check(call: ToolCall, tool: Tool, facts: RunFacts): PermissionDecision | Promise<PermissionDecision>;
  /** How a person is asked: `wait`, durably, for whoever answers the run; or a handler in this process. Absent: nobody can be asked. */
  readonly onAsk?: "wait" | ApprovalHandler;
  /** Absent: nothing is remembered. */
  readonly memory?: ApprovalMemory;
}
