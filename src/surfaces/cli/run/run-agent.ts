import { Agent } from "../../../agent.ts";
import { permissions } from "../../../agents/index.ts";
import { namedModel } from "../../../capabilities/index.ts";
import { bashTool, fetchTool, fileTools, todoTool } from "../../../capabilities/tools/index.ts";
import type { SessionId, Tool } from "../../../kernel/index.ts";
import type { RunSettings } from "./run-settings.ts";

export const agentName = "assistant";

/**
 * The agent of one session. Its id contains the session, so a process that hosts it drives only the runs of this
 * session and not those that others left in the file.
 */
export function runAgent(
  settings: RunSettings,
  sessionId: SessionId,
  { yes = false }: { readonly yes?: boolean } = {},
): Agent {
  const { model, baseUrl, instructions, maxTurns } = settings;
  return new Agent({
    name: agentName,
    key: sessionId.replaceAll("/", ":"),
    model: namedModel(model, baseUrl === undefined ? {} : { baseUrl }),
    instructions: instructions ?? usualInstructions(settings),
    tools: toolsOf(settings),
    permissions: permissions({ mode: yes ? "bypass" : "default", onAsk: "wait" }),
    ...(maxTurns !== undefined && { maxTurns }),
  });
}

function toolsOf({ tools, root, sandbox = "enforce" }: RunSettings): readonly Tool[] {
  if (tools === "none") return [];
  if (tools === "read") return fileTools({ root, readOnly: true });
  return [...fileTools({ root }), bashTool({ root, sandbox }), fetchTool(), todoTool()];
}

function usualInstructions({ tools, root }: RunSettings): string {
  const able =
    tools === "none"
      ? "You have no tools."
      : `You work in the folder ${root}; paths are relative to it. Use your tools instead of guessing.`;
  return `You are a capable assistant at a command line. ${able} Answer briefly, in plain text.`;
}
