import { singleAgentCases } from "./single-agent.ts";
import { flowCases } from "./flows.ts";
import { teamCases } from "./teams.ts";
import type { ArchitectureCase } from "./architecture-case.ts";

/** One case for every architecture, flow and team. */
export const architectureCases: Readonly<Record<string, ArchitectureCase>> = {
  ...singleAgentCases,
  ...teamCases,
  ...flowCases,
};
