import type { RunStatus } from "../run/run-result.ts";

/** Events of flows and workflow graphs. */
export interface FlowEvents {
  /** A flow started. */
  flow_start: { readonly flow: string };
  /** A step of a flow started. */
  flow_step_start: { readonly flow: string; readonly step: string };
  /** A step of a flow ended. */
  flow_step_end: { readonly flow: string; readonly step: string; readonly status: RunStatus };
  /** A flow ended. */
  flow_end: { readonly flow: string; readonly status: RunStatus };
}
