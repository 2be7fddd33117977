import type { GatedCall, GateVerdict, ToolResult } from "../../../kernel/index.ts";

/** One part of the tool gate. F1: it defines only the methods that it needs. */
export interface GateLayer {
  /** Decides before a call. `undefined` leaves the decision to the next part. */
  before?: (call: GatedCall) => Promise<GateVerdict | undefined>;
  /** Returns the result that the next part, and finally the model, receives. */
  after?: (call: GatedCall, result: ToolResult) => Promise<ToolResult>;
}
