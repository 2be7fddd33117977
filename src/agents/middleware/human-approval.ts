import type { Permissions, Tool } from "../../kernel/index.ts";
import { selects, type ToolSelection } from "./tool-selection.ts";

export interface HumanApprovalOptions {
  /** Which tools want a person's yes. Unless told: those of risk `critical`. */
  readonly tools?: ToolSelection;
  /** Shown to whoever is asked. */
  readonly reason?: string;
}

/**
 * A person decides, for some tools. Not a layer: a layer cannot wait durably, the gate can. It belongs where permissions are asked,
 * and the answer survives a restart, is bound to the arguments and may change them.
 */
export function humanApproval({ tools = isCritical, reason }: HumanApprovalOptions = {}): Permissions {
  const selected = selects(tools);
  return {
    onAsk: "wait",
    check: (_call, tool) =>
      selected(tool)
        ? { decision: "ask", reason: reason ?? `${tool.name} wants a person's approval` }
        : { decision: "allow" },
  };
}

function isCritical({ risk }: Tool): boolean {
  return risk === "critical";
}
