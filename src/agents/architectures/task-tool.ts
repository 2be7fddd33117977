import {
  withWork,
  type HostedAgent,
  type Dependencies,
  type SpawnOptions,
  type Tool,
} from "../../kernel/index.ts";
import { ownTool, refusal, said } from "../base/own-tool.ts";
import { runAndEmit } from "./inner-run.ts";
import { runWorker, stopIfBudgetSpent, describeWorkerFailure } from "../team/run-worker.ts";
import { markdownSections } from "../context/prompt-context.ts";
import { react } from "./react.ts";
import type { DeepAgentStateReader } from "./deep-agent-state.ts";

/** An agent that a deep agent may spawn, with the options to spawn it. */
export interface SubAgent extends SpawnOptions {
  /** The agent to spawn. */
  readonly agent: HostedAgent;
  /** What the agent is good at, shown to the model. Default: the agent's own description. */
  readonly description?: string;
}

/** Name of the built-in sub-agent: the agent itself, with a conversation that contains only the task. */
export const generalAgent = "general";

/** The parts of a deep agent that its `task` tool needs. */
export interface TaskToolParts {
  /** Agents that can be spawned, by name. */
  readonly subAgents: Readonly<Record<string, SubAgent>>;
  /** Whether `generalAgent` can be chosen. */
  readonly general: boolean;
  /** Gives access to the files that the agent can hand over to a sub-agent. */
  readonly reader: DeepAgentStateReader;
  readonly deps: Dependencies;
  /** Tools that the general agent gets in addition to the agent's own. */
  readonly generalTools: readonly Tool[];
  /** Instructions of the general agent. */
  readonly instructions: string;
}

/**
 * Creates the tool that delegates a task. The sub-agent sees only the task and the files that are handed over to
 * it. It runs as a child task; H4: if no seat is free, the tool returns a result to which the model can react.
 * Several calls of one turn run in parallel.
 */
export function taskTool(parts: TaskToolParts): Tool {
  const { subAgents, general, reader, deps, generalTools, instructions } = parts;
  const names = [...Object.keys(subAgents), ...(general ? [generalAgent] : [])];
  const lines = Object.entries(subAgents).map(([name, each]) => `- ${name}: ${descriptionOf(each)}`);
  if (general) lines.push(`- ${generalAgent}: yourself, with your tools and an empty conversation`);
  return ownTool({
    name: "task",
    description: `Delegates a task to a sub-agent and returns its result. The sub-agent knows only what you tell it. Sub-agents:\n${lines.join("\n")}`,
    input: {
      agent: { description: "Name of the sub-agent", choices: names },
      task: { description: "Everything the sub-agent needs to know, and what it should return" },
      files: { description: "Paths of your files to hand over, one per line", optional: true },
    },
    suspends: true,
    execute: async ({ agent, task, files }, { ctx }) => {
      const handedFiles = readHandedFiles(reader, files);
      if ("missing" in handedFiles) return refusal(`there is no file ${handedFiles.missing}`);
      const prompt =
        handedFiles.text === "" ? task : markdownSections({ Task: task, Files: handedFiles.text });
      const subAgent = subAgents[agent];
      if (subAgent === undefined) {
        const inner = deps.freshSession(generalAgent, instructions);
        const scoped = deps.scopeForWorker(generalAgent, ctx).withExtraTools(generalTools);
        await runAndEmit(react(), inner, scoped, prompt);
        return inner.interrupted
          ? refusal(
              `${generalAgent} ended early: ${inner.interruptionReason}. Its output so far: ${inner.output}`,
            )
          : said(inner.output);
      }
      const { agent: worker, description: _description, ...spawnOptions } = subAgent;
      // H4: the model can react to a refused seat.
      const options = { onFull: "refuse", ...spawnOptions } as const;
      const result = await runWorker(deps.scopeForWorker(deps.role, ctx), { worker, input: prompt, options });
      stopIfBudgetSpent(deps, [result]);
      if (result.kind === "answered") return withWork(said(result.text, { agent }), result.work);
      const why = result.kind === "refused" ? { refused: result.reason } : { status: result.status };
      return refusal(`${describeWorkerFailure(agent, result)}. Do it yourself, or try again later`, {
        agent,
        ...why,
      });
    },
  });
}

function descriptionOf({ agent, description }: SubAgent): string {
  const own: unknown = Reflect.get(agent, "description");
  return description ?? (typeof own === "string" && own !== "" ? own : agent.id);
}

function readHandedFiles(
  reader: DeepAgentStateReader,
  files: string,
): { readonly text: string } | { readonly missing: string } {
  const known = reader.current().files;
  const paths = files.split("\n").map((each) => each.trim());
  const texts: string[] = [];
  for (const path of paths.filter((each) => each !== "")) {
    const text = known.get(path);
    if (text === undefined) return { missing: path };
    texts.push(`## ${path}\n${text}`);
  }
  return { text: texts.join("\n\n") };
}
