import type { RunStatus } from "../run/run-result.ts";

/** Flows and workflow graphs: agents made of agents. */
export interface FlowEvents {
  flow_start: { readonly flow: string };
  flow_step_start: { readonly flow: string; readonly step: string };
  flow_step_end: { readonly flow: string; readonly step: string; readonly status: RunStatus };
  flow_end: { readonly flow: string; readonly status: RunStatus };
}
