import {
  isCritical,
  type ApprovalHandler,
  type ApprovalMemory,
  type Permissions,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { selects, toolSelection, type ToolSelection } from "./tool-selection.ts";

/** Options of `humanApproval`. */
export interface HumanApprovalOptions {
  /** Tools that need a person's approval, in addition to those with risk `critical`, which always need it. */
  readonly tools?: ToolSelection;
  /** The reason that is shown to the person. */
  readonly reason?: string;
  /** `"wait"` waits durably; a handler is asked in this process. Default: `"wait"`. */
  readonly onAsk?: "wait" | ApprovalHandler;
  /** Where remembered approvals are stored. If absent, a person is asked about every call. */
  readonly memory?: ApprovalMemory;
}

const knownOptions = optionTable({
  tools: toolSelection,
  reason: is.text(),
  onAsk: is.any,
  memory: is.any,
} satisfies OptionKinds<HumanApprovalOptions>);

/**
 * Creates permissions that require a person's approval for some tools. They are part of the checks before a call
 * and not middleware, because only these checks can wait durably. The answer survives a restart, is valid only for
 * the arguments and may change them.
 */
export function humanApproval(options: HumanApprovalOptions = {}): Permissions {
  const { tools = [], reason, onAsk = "wait", memory } = knownOptions.read("humanApproval()", options);
  const selected = selects(tools);
  return {
    check: (_call, tool) =>
      isCritical(tool) || selected(tool)
        ? { decision: "ask", reason: reason ?? `${tool.name} needs a person's approval` }
        : { decision: "allow" },
    onAsk,
    ...(memory && { memory }),
  };
}
