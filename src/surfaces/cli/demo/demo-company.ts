import { OrchestratorAgent } from "../../../agent-kinds.ts";
import { Agent } from "../../../agent.ts";
import { fileTools } from "../../../capabilities/tools/index.ts";
import { Priority, type ModelRequest } from "../../../kernel/index.ts";
import { DemoModel, type Line, type ProviderBook } from "./demo-model.ts";

export interface CompanyOptions {
  readonly book: ProviderBook;
  /** The folder that the researchers examine. */
  readonly root: string;
  /** How long a model takes per answer, in milliseconds. */
  readonly paceMs: number;
}

export const demoTask = "Is this package fit to build on?";

/**
 * The agents of the demo: three seats, including the lead's. The lead spawns two researchers. One of them needs a third
 * agent of higher priority, so the other one yields its seat at its next step and is recalled when a seat is free.
 */
export function demoCompany({ book, root, paceMs }: CompanyOptions): OrchestratorAgent {
  const tools = fileTools({ root, readOnly: true });
  const model = (role: string, lines: readonly Line[]): DemoModel => new DemoModel(role, lines, book, paceMs);
  const licence = new Agent({
    name: "licence",
    description: "reads licences",
    model: model("licence", licenceLines),
    tools,
  });
  const packages = new OrchestratorAgent({
    name: "packages",
    description: "reads what a package depends on",
    model: model("packages", packagesLines),
    tools,
    subAgents: [{ agent: licence, priority: Priority.HIGH }],
  });
  const size = new Agent({
    name: "size",
    description: "counts files and classes",
    model: model("size", sizeLines),
    tools,
  });
  return new OrchestratorAgent({
    name: "lead",
    model: model("lead", leadLines),
    instructions: "You examine packages. Hand off what others can find out, and assess their answers.",
    subAgents: [
      { agent: size, priority: Priority.LOW },
      { agent: packages, priority: Priority.NORMAL },
    ],
    spawnBudget: { maxAgents: 3, allowPreempt: true },
    budget: { maxCostUsd: 0.25, maxTurns: 40 },
  });
}

const leadLines: readonly Line[] = [
  () => ({
    text: "Two questions, two people.",
    calls: [
      { tool: "handoff_size", input: { task: "How much code is its kernel?" } },
      { tool: "handoff_packages", input: { task: "What does it depend on, and may we use it?" } },
    ],
  }),
  (request) => ({
    text: `Fit to build on.\n${results(request)
      .map((line) => `- ${line}`)
      .join("\n")}`,
  }),
];

/** Counts declaration files: the published package has them all, while its modules are bundled into a few. */
const sizeLines: readonly Line[] = [
  () => ({ calls: [{ tool: "ls", input: {} }] }),
  () => ({ calls: [{ tool: "find", input: { pattern: "**/*.d.ts", path: "dist/kernel", ignored: true } }] }),
  () => ({
    calls: [
      {
        tool: "grep",
        input: { pattern: "^export declare class", path: "dist/kernel", glob: "**/*.d.ts", ignored: true },
      },
    ],
  }),
  (request) => ({
    text: `${count(results(request)[1] ?? "")} files make its kernel, with ${count(results(request)[2] ?? "")} classes in them.`,
  }),
];

const packagesLines: readonly Line[] = [
  () => ({ calls: [{ tool: "read", input: { path: "package.json" } }] }),
  () => ({
    text: "Whether we may use it is for someone who reads licences.",
    calls: [{ tool: "handoff_licence", input: { task: "Under which licence is it?" } }],
  }),
  (request) => {
    const [manifest = "", licence = ""] = results(request);
    const block = /"dependencies": \{([^}]*)\}/u.exec(manifest)?.[1] ?? "";
    const names = [...block.matchAll(/"([^"]+)":/gu)].map(([, name]) => name);
    return { text: `It stands on ${names.length} packages (${names.join(", ")}). ${licence}` };
  },
];

const licenceLines: readonly Line[] = [
  () => ({ calls: [{ tool: "read", input: { path: "LICENSE" } }] }),
  (request) => ({
    text: `It is under the ${/\w+ License/u.exec(results(request)[0] ?? "")?.[0] ?? "No licence"}.`,
  }),
];

/** The tool results in a conversation, in order. */
function results({ messages }: ModelRequest): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "tool"
      ? message.content.map(({ output }) => (output.type === "text" ? output.text : JSON.stringify(output)))
      : [],
  );
}

function count(listing: string): number {
  return listing.split("\n").filter((line) => line.includes(".d.ts")).length;
}
