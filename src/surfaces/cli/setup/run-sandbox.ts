import { Sandbox } from "../../../capabilities/sandbox/sandbox.ts";
import type { SandboxMode } from "../../../capabilities/tools/index.ts";
import { Fault } from "../../../kernel/index.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Workspace } from "../../../workspace/workspace.ts";
import { defaultAgentName } from "./run-agent.ts";
import type { RunSettings } from "./run-settings.ts";

export const sandboxModes: readonly SandboxMode[] = ["enforce", "warn", "off"];

/**
 * Checks before a run begins that its shell commands have the sandbox that the settings ask for, and says if they have
 * none. Throws `dependency_missing` if a sandbox is enforced and not available.
 */
export async function checkSandbox(
  workspace: Workspace,
  { root, agent: name = defaultAgentName }: RunSettings,
  terminal: Terminal,
): Promise<void> {
  const { sandbox: mode = "enforce" } = workspace.settings;
  const { tools = [] } = workspace.agents().find((each) => each.name === name) ?? {};
  if (!tools.some((tool) => ["all", "bash"].includes(tool.toLowerCase()))) return;
  if (mode === "off") {
    terminal.say("reeve: shell commands run WITHOUT a sandbox, with all your permissions (--sandbox off)");
    return;
  }
  const problem = await new Sandbox({ mode }).problem(root);
  if (problem === undefined) return;
  if (mode === "enforce")
    throw new Fault(
      "dependency_missing",
      `--tools all needs a sandbox for shell commands: ${problem} (--sandbox off); --tools read needs none`,
    );
  terminal.say(`reeve: shell commands run WITHOUT a sandbox, with all your permissions: ${problem}`);
}
