import { dirname } from "node:path";
import { permissions } from "../../../agents/index.ts";
import { OrchestratorAgent } from "../../../assembly/agent-kinds.ts";
import type { Agent } from "../../../assembly/agent.ts";
import { hiredAgent } from "../../../assembly/hired-agent.ts";
import { worktreeTools } from "../../../capabilities/worktrees/worktree-tools.ts";
import type { Gateway } from "../../../capabilities/gateway/gateway.ts";
import type { SandboxMode } from "../../../capabilities/sandbox/sandbox-policy.ts";
import { readProperty } from "../../../kernel/index.ts";
import { demoModels, lines, type ProviderBook } from "./demo-model.ts";

export const hireTask = "Repair the rounding of tally and write down what is new";

/** Maximum cost of the lead and its employees together, in dollars. */
export const hireCapUsd = 0.5;

export interface HireCompanyOptions {
  readonly gateway: Gateway;
  readonly book: ProviderBook;
  /** The repository of the project. */
  readonly root: string;
  /** The folder of the worktrees. */
  readonly trees: string;
  /** Duration of an average model call in milliseconds. */
  readonly paceMs: number;
  /** `enforce` if bubblewrap is available, otherwise `off`. */
  readonly sandbox: SandboxMode;
}

/**
 * A lead of Reeve with two employees that are separate processes: the demo agent, which speaks the Agent Client
 * Protocol as Claude Code does. Each employee works in a worktree. All three share one budget.
 */
export function hireCompany(options: HireCompanyOptions): OrchestratorAgent {
  const { book, paceMs, trees } = options;
  return new OrchestratorAgent({
    name: "lead",
    description: "Owns the package.",
    instructions: "You lead two employees. Hand the work out, look for files that both changed, and merge.",
    ...demoModels({ agent: "lead", size: "large", part: leadPart, book, worker: "demo", paceMs }),
    subAgents: [
      employee(options, "coder", "Repairs code. A person approves each change of a file."),
      employee(options, "writer", "Writes changelogs and documents."),
    ],
    tools: worktreeTools({ folder: trees }),
    budget: { maxCostUsd: hireCapUsd },
  });
}

function employee(
  { gateway, root, trees, sandbox }: HireCompanyOptions,
  name: "coder" | "writer",
  description: string,
): Agent {
  const allow = name === "writer" ? ["shell"] : [{ tool: "shell", when: isTest }];
  return hiredAgent({
    name,
    description,
    preset: "demo",
    model: "small",
    instructions: `You are ${name}. ${description}`,
    gateway,
    folder: root,
    isolation: { worktree: { repository: root, folder: trees } },
    permissions: permissions({ allow, onAsk: "wait" }),
    sandbox,
    // The commands of the script use the Node of this process.
    env: { PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}` },
  });
}

/** The command with which the coder runs the tests. It needs no approval by a person. */
export const testCommand = "node test/tally.test.js";

function isTest(input: unknown): boolean {
  return readProperty(input, "command") === testCommand;
}

const leadPart = lines(
  () => ({
    text: "The code and the documents can change at the same time.",
    calls: [
      { tool: "handoff_coder", input: { task: "Repair the rounding error that the tests report." } },
      { tool: "handoff_writer", input: { task: "Write the changelog of 0.9.0 from NOTES.md." } },
    ],
  }),
  () => ({ text: "Did both change a file?", calls: [{ tool: "worktrees", input: {} }] }),
  (results) => ({
    text: "A person decides about the merge.",
    calls: [{ tool: "merge_worktrees", input: { tasks: taskIdsIn(results.at(-1)) } }],
  }),
  (results) => ({
    text:
      results.at(-1)?.startsWith("merged") === true ? "The work of both is merged." : "Nothing was merged.",
  }),
);

/** Returns the task ids at the beginning of the lines that the tool `worktrees` returns. */
function taskIdsIn(listing = ""): string[] {
  return [...listing.matchAll(/^(\S+) \(/gmu)].map(([, taskId = ""]) => taskId).toSorted();
}
