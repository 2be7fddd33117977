import type { ApprovalHandler, ApprovalMemory, Permissions, Tool } from "../../kernel/index.ts";
import { selects, type ToolSelection } from "./tool-selection.ts";

export interface HumanApprovalOptions {
  /** Which tools want a person's yes. Unless told: those of risk `critical`. */
  readonly tools?: ToolSelection;
  /** Shown to whoever is asked. */
  readonly reason?: string;
  /** `wait`, durably, unless told; or a handler in this process. */
  readonly onAsk?: "wait" | ApprovalHandler;
  /** Absent: every call is asked for. */
  readonly memory?: ApprovalMemory;
}

/**
 * A person decides, for some tools. Not a layer: a layer cannot wait durably, the gate can. It belongs where permissions are asked,
 * and the answer survives a restart, is bound to the arguments and may change them.
 */
export function humanApproval(options: HumanApprovalOptions = {}): Permissions {
  const { tools = isCritical, reason, onAsk = "wait", memory } = options;
  const selected = selects(tools);
  return {
    check: (_call, tool) =>
      selected(tool)
        ? { decision: "ask", reason: reason ?? `${tool.name} wants a person's approval` }
        : { decision: "allow" },
    onAsk,
    ...(memory && { memory }),
  };
}

function isCritical({ risk }: Tool): boolean {
  return risk === "critical";
}
