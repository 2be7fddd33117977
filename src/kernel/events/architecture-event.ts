import type { JsonObject } from "../base/json-value.ts";

/** Events that architectures define, for example `plan.created`, `debate.converged` or `swarm.handoff`. */
export interface ArchitectureEvents {
  /** An event of an architecture, with its name and data. */
  architecture_event: { readonly architecture: string; readonly name: string; readonly data: JsonObject };
}
