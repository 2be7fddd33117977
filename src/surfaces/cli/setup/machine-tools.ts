import { Sandbox } from "../../../capabilities/sandbox/sandbox.ts";
import { Fault } from "../../../kernel/index.ts";
import type { MissingTool, Workspace } from "../../../workspace/workspace.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { defaultAgentName } from "./run-agent.ts";
import type { RunSettings } from "./run-settings.ts";

/**
 * Prints which tools of these agents the machine cannot offer, and whether their shell commands run without a
 * sandbox. Returns the missing tools. Agents are not refused here: an agent that names a missing tool is refused
 * when it is created.
 */
export async function reportTools(
  workspace: Workspace,
  agents: readonly string[],
  root: string,
  terminal: Terminal,
): Promise<readonly MissingTool[]> {
  const missing = await workspace.missingTools(agents);
  for (const each of missing) terminal.say(`reeve: ${printable(describe(each))}`);
  const unsafe = await withoutSandbox(workspace, agents, root);
  if (unsafe !== undefined)
    terminal.say(`reeve: shell commands run WITHOUT a sandbox, with all your permissions${unsafe}`);
  return missing;
}

/**
 * Does the same as `reportTools` for the agent of one run that a person starts or resumes, before the run begins.
 * Throws `dependency_missing` if the agent names a missing tool, or if the shell is missing and `needsShell` names
 * the part that requires it.
 */
export async function requireTools(
  workspace: Workspace,
  settings: RunSettings,
  terminal: Terminal,
  needsShell: ((problem: string) => string) | undefined,
): Promise<void> {
  const { agent = defaultAgentName, root } = settings;
  const missing = await workspace.missingTools([agent]);
  const shell = missing.find(({ tool }) => tool === "bash");
  if (shell !== undefined && needsShell !== undefined)
    throw new Fault("dependency_missing", needsShell(shell.problem));
  // Making the agent throws the error that names it.
  if (missing.some(({ refused }) => refused.length > 0)) await workspace.agent(settings.agent);
  await reportTools(workspace, [agent], root, terminal);
}

function describe({ tool, problem, without, refused }: MissingTool): string {
  const absent = without.length === 0 ? "" : ` Without it work: ${without.join(", ")}.`;
  const named = refused.length === 0 ? "" : ` Refused, because they name it: ${refused.join(", ")}.`;
  return `this machine cannot offer the tool ${tool}: ${problem}.${absent}${named}`;
}

/**
 * Returns why shell commands of the agents have no sandbox, as the end of a sentence. `undefined` if they run in a
 * sandbox or are refused.
 */
async function withoutSandbox(
  workspace: Workspace,
  agents: readonly string[],
  root: string,
): Promise<string | undefined> {
  const { sandbox: mode = "enforce" } = workspace.settings;
  const hasShell = workspace
    .agents()
    .some(
      ({ name, tools = [] }) =>
        agents.includes(name) && tools.some((tool) => ["all", "bash"].includes(tool.toLowerCase())),
    );
  if (!hasShell || mode === "enforce") return undefined;
  if (mode === "off") return " (--sandbox off)";
  const problem = await new Sandbox({ mode }).problem(root);
  return problem === undefined ? undefined : `: ${problem}`;
}
