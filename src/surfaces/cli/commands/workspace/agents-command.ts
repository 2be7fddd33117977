import { openWorkspace } from "../../../../workspace/workspace.ts";
import type { WorkspaceAgent } from "../../../../workspace/workspace-agents.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { reportNotices } from "../../setup/run-workspace.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface AgentsCommandOptions {
  readonly profile?: string;
  readonly json?: boolean;
}

/** Lists the agents of the workspace with the places that define them. */
export async function agentsCommand(
  { profile, json = false }: AgentsCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  await using workspace = await openWorkspace(profile === undefined ? {} : { profile });
  for (const agent of workspace.agents()) {
    const { name, origin, path, description } = agent;
    const facts = [name, origin, workerOf(agent), path ?? "-", description ?? ""];
    await terminal.out(json ? JSON.stringify(agent) : facts.map(printable).join("  ").trimEnd());
  }
  reportNotices(workspace, terminal);
  return "ok";
}

/** Returns the model of a Reeve agent, or for a hired agent the program that is started for it. */
function workerOf({ model = "-", harness, command }: WorkspaceAgent): string {
  if (harness === undefined) return model;
  return command === undefined ? `unknown harness ${harness}` : `starts ${command.join(" ")} (${harness})`;
}
