import type { HostedAgent, Dependencies, SpawnOptions, Tool } from "../../kernel/index.ts";
import { ownTool, refusal, said } from "../own-tool.ts";
import { runAndEmit } from "./inner-run.ts";
import { runWorker, stopIfBudgetSpent, describeWorkerFailure } from "./run-worker.ts";
import { markdownSections } from "./prompt-context.ts";
import { react } from "./react.ts";
import type { DeepAgentStateReader } from "./deep-agent-state.ts";

export interface SubAgent extends SpawnOptions {
  readonly agent: HostedAgent;
  /** What it is good at; the agent's own description unless told. */
  readonly description?: string;
}

/** The agent itself, with nothing in mind but the task: for work that would fill its conversation. */
export const generalAgent = "general";

export interface TaskToolParts {
  readonly subAgents: Readonly<Record<string, SubAgent>>;
  /** Whether there is `generalAgent`. */
  readonly general: boolean;
  readonly reader: DeepAgentStateReader;
  readonly deps: Dependencies;
  /** Those that the general agent is to have beside its own. */
  readonly generalTools: readonly Tool[];
  /** What it is told. */
  readonly instructions: string;
}

/**
 * Has a task done by someone else, who knows nothing but what the task says and the files that are handed over. Those that are agents are
 * hired; H4: a refused seat is a result to react to. Several of one turn work side by side.
 */
export function taskTool(parts: TaskToolParts): Tool {
  const { subAgents, general, reader, deps, generalTools, instructions } = parts;
  const names = [...Object.keys(subAgents), ...(general ? [generalAgent] : [])];
  const lines = Object.entries(subAgents).map(([name, each]) => `- ${name}: ${descriptionOf(each)}`);
  if (general) lines.push(`- ${generalAgent}: you, with your tools and a fresh mind`);
  return ownTool({
    name: "task",
    description: `Has a task done by somebody else, and gives what it came to. They know nothing but what you tell them. There are:\n${lines.join("\n")}`,
    input: {
      agent: { description: "Who is to do it", choices: names },
      task: { description: "All they need to know, and what you want back" },
      files: { description: "Paths of your files to hand over, one on each line", optional: true },
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
          ? refusal(`it ended early: ${inner.interruptionReason}. So far it said: ${inner.output}`)
          : said(inner.output);
      }
      const { agent: worker, description: _said, ...more } = subAgent;
      // H4: the model can react to a refusal.
      const options = { onFull: "refuse", ...more } as const;
      const result = await runWorker(deps.scopeForWorker(deps.role, ctx), { worker, input: prompt, options });
      stopIfBudgetSpent(deps, [result]);
      if (result.kind === "answered") return said(result.text, { agent });
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
