import type { GatedCall, GateVerdict, ToolResult } from "../../kernel/index.ts";

/** One part of the gate. It has only the methods it needs, so that only those are in the path (F1). */
export interface GateLayer {
  /** `undefined`: nothing to say, the next layer is asked. */
  before?: (call: GatedCall) => Promise<GateVerdict | undefined>;
  /** What the next layer, and in the end the model, is given in place of `result`. */
  after?: (call: GatedCall, result: ToolResult) => Promise<ToolResult>;
}
