import { relative } from "node:path";
import { Fault, formatSessionId, parseSessionId } from "../../../kernel/index.ts";
import type { Workspace } from "../../../workspace/workspace.ts";
import {
  extensionCommands,
  type PromptFile,
  type PromptText,
  type ServedAgent,
} from "../../http/served-agents.ts";
import { currentSettings, type HostedFacts } from "./hosted-agents.ts";
import { runAgent } from "./run-agent.ts";
import { toMetadata, type RunSettings } from "./run-settings.ts";

/**
 * Returns an agent of the workspace that callers of the server can start. Each session gets its own instance,
 * created from the current files.
 */
export function servedAgent(
  workspace: Workspace,
  { name, settings: hosted, isUsable, description, model, maxCostUsd, inputSchema, ...lists }: HostedFacts,
  flags: RunSettings,
  onSaved: () => Promise<void>,
): ServedAgent {
  const { path } = workspace.agents().find((each) => each.name === name) ?? {};
  const settingsNow = async (): Promise<RunSettings> =>
    (await currentSettings(workspace, flags, name)) ?? hosted;
  return {
    name,
    hidden: !isUsable,
    ...lists,
    ...(description !== null && { description }),
    ...(model !== null && { model }),
    ...(maxCostUsd !== null && { maxCostUsd }),
    ...(inputSchema !== null && { inputSchema }),
    ...(path?.endsWith(".md") === true && { prompt: promptFile(workspace, name, onSaved) }),
    describe: async () => runAgent(workspace, await settingsNow(), formatSessionId("described")),
    expand: (text, session) => workspace.expand(text, session),
    commands: async (runtime) => {
      const described = await runAgent(workspace, await settingsNow(), formatSessionId("described"));
      const { templates, skills } = workspace;
      return [
        ...(await extensionCommands(described, runtime)),
        ...templates.map((each) => ({
          name: each.name,
          description: each.description,
          kind: "prompt" as const,
        })),
        ...skills.map((each) => ({
          name: `skill:${each.name}`,
          description: each.description,
          kind: "skill" as const,
        })),
      ];
    },
    runCommand: async ({ command, args, sessionId, runtime }) => {
      const agent = await runAgent(workspace, await settingsNow(), parseSessionId(sessionId));
      return agent.runCommand(command, args, { sessionId, runtime });
    },
    start: async ({ runId, sessionId }) => {
      const session = sessionId === undefined ? formatSessionId(runId) : parseSessionId(sessionId);
      const settings = await settingsNow();
      const agent = await runAgent(workspace, settings, session);
      return { agent, metadata: toMetadata(settings), sessionId: session };
    },
  };
}

/** Gives access to the Markdown file of an agent, for callers who change its instructions. */
function promptFile(workspace: Workspace, name: string, onSaved: () => Promise<void>): PromptFile {
  const shown = ({ path, ...text }: PromptText): PromptText => ({
    ...text,
    path: relative(workspace.places.project, path),
  });
  return {
    read: async () => {
      const found = await workspace.instructions(name);
      if (found === undefined) throw new Fault("not_found", `agent ${name} no longer has a Markdown file`);
      return shown(found);
    },
    save: async (instructions, hash) => {
      const saved = await workspace.saveInstructions(name, instructions, hash);
      // The list of agents and the workspaces of running sessions read the file again.
      await onSaved();
      return shown(saved);
    },
  };
}
