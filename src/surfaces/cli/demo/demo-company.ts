import { tool } from "../../../capabilities/index.ts";
import { execFile } from "node:child_process";
import { OrchestratorAgent } from "../../../assembly/agent-kinds.ts";
import { Agent } from "../../../assembly/agent.ts";
import { permissions } from "../../../agents/index.ts";
import { fileTools } from "../../../capabilities/tools/index.ts";
import { type ExecutionBudget, Priority, type Tool } from "../../../kernel/index.ts";
import * as parts from "./demo-parts.ts";
import { demoModels, type Part, type ProviderBook } from "./demo-model.ts";

/** Creates the tool `test`, which runs the tests of the demo's project with Node. */
function testsTool(root: string): Tool {
  return tool({
    name: "test",
    description: "Runs the tests of the project.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    timeoutMs: 30_000,
    execute: (_input, { signal }) =>
      new Promise<string>((resolve, reject) => {
        const args = ["--test-reporter=tap", "test/tally.test.js"];
        const options = { cwd: root, signal, env: { ...process.env, NODE_TEST_CONTEXT: "" } };
        execFile(process.execPath, args, options, (error, stdout) => {
          // Exit code 1 means that a test failed, which is a result.
          if (error !== null && error.code !== 1) reject(error);
          else resolve(summary(stdout));
        });
      }),
  });
}

/** Returns the names of the failed tests, and the numbers of passed and failed tests. */
function summary(tap: string): string {
  const lines = tap.split("\n");
  return lines.filter((line) => /^(?:not ok|# (?:tests|pass|fail)) /u.test(line)).join("\n");
}

export interface CompanyOptions {
  readonly book: ProviderBook;
  /** The folder of the project that the agents work on. */
  readonly root: string;
  /** The worker that hosts the agents. */
  readonly worker: string;
  /** Duration of an average model call in milliseconds. */
  readonly paceMs: number;
}

export const companyTask = "Audit release 0.9 of tally, fix what blocks it, prepare it";

/** Budget of the lead until a person adds money. It is sufficient for the audit, but not for the release. */
const budgetUsd = 0.21;

/**
 * The agents of the demo's run: a lead with four reports, who themselves have seven reports, and nine seats. The
 * agent `licence` has a higher priority than the others, so that `size` must give its seat away. Changes of source
 * code need a person's approval.
 */
export function demoCompany(options: CompanyOptions): OrchestratorAgent {
  const { root } = options;
  const tools = new Map(fileTools({ root }).map((each) => [each.name, each]));
  tools.set("test", testsTool(root));
  const hire = new Hiring(options, tools);
  const licence = hire.agent("licence", "Reads licences.", ["read"], parts.licence);
  const packages = hire.lead("packages", "Examines dependencies.", ["read"], parts.packages, [
    { agent: licence, priority: Priority.HIGH, budget: usd(0.02) },
  ]);
  const advisories = new Agent(
    hire.options("advisories", "Compares advisories.", ["read", "grep"], parts.advisories),
  );
  const size = hire.agent("size", "Counts files and exports.", ["ls", "find", "grep"], parts.size);
  const research = hire.lead("research", "Finds out what a release stands on.", [], parts.research, [
    { agent: packages, budget: usd(0.07) },
    { agent: advisories, budget: usd(0.09) },
    { agent: size, priority: Priority.LOW, budget: usd(0.03) },
  ]);
  const build = new Agent({
    ...hire.options("build", "Runs the tests and repairs the code.", ["test", "read", "edit"], parts.build),
    permissions: permissions({
      mode: "acceptEdits",
      ask: [{ tool: "edit", reason: "a change of source code needs a maintainer's approval" }],
      onAsk: "wait",
    }),
  });
  const review = hire.lead("review", "Judges the surface and the documents.", [], parts.review, [
    { agent: hire.reviewer("api", parts.reviewerApi), budget: usd(0.09) },
    { agent: hire.reviewer("docs", parts.reviewerDocs), budget: usd(0.09) },
  ]);
  const changelog = hire.agent("changelog", "Writes changelogs.", ["read", "write"], parts.changelog);
  const release = hire.lead("release", "Prepares releases.", ["grep", "edit"], parts.release, [
    { agent: changelog, budget: usd(0.04) },
  ]);
  return new OrchestratorAgent({
    ...hire.options("lead", "Owns releases.", ["read"], parts.lead),
    subAgents: [
      { agent: research, budget: usd(0.17) },
      { agent: build, budget: usd(0.1) },
      { agent: review, budget: usd(0.19) },
      { agent: release, priority: Priority.HIGH, budget: usd(0.12) },
    ],
    spawnBudget: { maxAgents: 9, allowPreempt: true },
    budget: usd(budgetUsd),
  });
}

function usd(maxCostUsd: number): Partial<ExecutionBudget> {
  return { maxCostUsd };
}

type SubAgents = ConstructorParameters<typeof OrchestratorAgent>[0]["subAgents"];

/** Creates the agents of the company. Agents that lead others or judge use the large model. */
class Hiring {
  readonly #options: CompanyOptions;
  readonly #tools: ReadonlyMap<string, Tool>;

  constructor(options: CompanyOptions, tools: ReadonlyMap<string, Tool>) {
    this.#options = options;
    this.#tools = tools;
  }

  agent(name: string, description: string, tools: readonly string[], part: Part): Agent {
    return new Agent({
      ...this.options(name, description, tools, part),
      ...this.#models(name, "small", part),
    });
  }

  lead(
    name: string,
    description: string,
    tools: readonly string[],
    part: Part,
    subAgents: SubAgents,
  ): OrchestratorAgent {
    return new OrchestratorAgent({ ...this.options(name, description, tools, part), subAgents });
  }

  reviewer(key: string, part: Part): Agent {
    return new Agent({
      ...this.options("reviewer", `Reviews the ${key}.`, ["read", "grep"], part),
      key,
      ...this.#models(`reviewer/${key}`, "large", part),
    });
  }

  options(name: string, description: string, tools: readonly string[], part: Part) {
    return {
      name,
      description,
      instructions: `You are ${name}. ${description} Work in the folder of the project, and report in one sentence.`,
      ...this.#models(name, "large", part),
      tools: tools.flatMap((each) => this.#tools.get(each) ?? []),
    };
  }

  #models(agent: string, size: "large" | "small", part: Part): ReturnType<typeof demoModels> {
    const { book, worker, paceMs } = this.#options;
    const maxOutputTokens = agent === "lead" ? 300 : 160;
    return demoModels({ agent, size, part, book, worker, paceMs, maxOutputTokens });
  }
}
