import { isAbsolute, relative, resolve, sep } from "node:path";
import { Agent } from "../../../agent.ts";
import { permissions } from "../../../agents/index.ts";
import { namedModel } from "../../../capabilities/index.ts";
import { bashTool, fetchTool, fileTools, todoTool } from "../../../capabilities/tools/index.ts";
import {
  parseAgentId,
  type AgentResolver,
  type RunRecord,
  type SessionId,
  type Tool,
} from "../../../kernel/index.ts";
import { findSettings, type RunSettings } from "./run-settings.ts";

export const agentName = "assistant";

/**
 * The agent of one session. Its id contains the session, so a process that hosts it drives only the runs of this
 * session and not those that others left in the file.
 */
export function runAgent(settings: RunSettings, sessionId: SessionId, decider: Decider = {}): Agent {
  return agentWithKey(settings, sessionId.replaceAll("/", ":"), decider);
}

/** Who decides about calls that need approval. */
interface Decider {
  /** Every call is approved in advance. Default: `false`, so that a person is asked. */
  readonly yes?: boolean;
}

export interface RunResolverOptions extends Decider {
  /** Whether this process drives a run of `reeve run`. Other runs are left to other processes. */
  readonly accepts: (run: RunRecord, settings: RunSettings) => boolean;
}

/**
 * Makes the agents of runs that `reeve run` has started from what is stored with each run, so that any process can drive
 * them. The one way by which a run of the command line is resumed.
 */
export function runResolver({ accepts, ...decider }: RunResolverOptions): AgentResolver {
  return {
    name: agentName,
    resolve: (run) => {
      const settings = findSettings(run.metadata);
      const { key } = parseAgentId(run.agentId);
      if (settings === undefined || key === undefined || !accepts(run, settings)) return undefined;
      return agentWithKey(settings, key, decider);
    },
  };
}

/** Accepts the runs whose tools work in this folder or below it, for a worker of the folder. */
export function inFolder(folder: string): RunResolverOptions["accepts"] {
  return (_run, { root }) => {
    const path = relative(resolve(folder), resolve(root));
    return !isAbsolute(path) && path.split(sep)[0] !== "..";
  };
}

function agentWithKey(settings: RunSettings, key: string, { yes = false }: Decider): Agent {
  const { model, baseUrl, instructions, maxTurns } = settings;
  return new Agent({
    name: agentName,
    key,
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
