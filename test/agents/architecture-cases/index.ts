import { singleAgentCases } from "./single-agent.ts";
import { flowCases } from "./flows.ts";
import { teamCases } from "./teams.ts";
import type { ArchitectureCase } from "./architecture-case.ts";

/** Every way to think there is. */
export const architectureCases: Readonly<Record<string, ArchitectureCase>> = {
  ...singleAgentCases,
  ...teamCases,
  ...flowCases,
};
