import type { JsonObject } from "../base/json-value.ts";

/** What an architecture says of itself: `plan.created`, `debate.converged`, `swarm.handoff`. */
export interface ArchitectureEvents {
  architecture_event: { readonly architecture: string; readonly name: string; readonly data: JsonObject };
}
