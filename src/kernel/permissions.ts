import type { RunFacts } from "./run-facts.ts";
import type { ToolCall } from "./tool-host.ts";
import type { Tool } from "./tool.ts";

/** How much is allowed without a rule: `acceptEdits` lets edits of files through, `bypass` lets everything through. */
export type PermissionMode = "default" | "acceptEdits" | "bypass";

export type PermissionDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "deny"; readonly reason: string }
  /** A person decides; with nobody to ask it is a deny. */
  | { readonly decision: "ask"; readonly reason: string };

/** Who may call what. Deny beats allow beats mode. One gate for every call of every architecture. */
export interface Permissions {
  check(call: ToolCall, tool: Tool, facts: RunFacts): PermissionDecision | Promise<PermissionDecision>;
}
