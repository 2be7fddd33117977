import { Agent } from "../../../assembly/agent.ts";
import { askHumanTool, fileTools } from "../../../capabilities/tools/index.ts";
import type { CompanyOptions } from "./demo-company.ts";
import { demoModels, lines, sinceQuestion, type Part } from "./demo-model.ts";

/** The other agents of the demo, outside the company, for shorter runs. */
export interface DemoDesk {
  /** Agent that answers questions about the project and the shop. It asks a person before a refund. */
  readonly support: Agent;
  /** Agent that writes a report about the orders of the shop. */
  readonly bookkeeper: Agent;
  /** Agent that reads the checklist of releases. Its budget is too small for this task. */
  readonly upkeep: Agent;
}

export function demoDesk({ book, root, worker, paceMs }: CompanyOptions): DemoDesk {
  const tools = fileTools({ root, readOnly: true });
  const write = fileTools({ root }).filter(({ name }) => name === "write");
  const options = (name: string, description: string, part: Part) => ({
    name,
    description,
    instructions: `You are ${name}. ${description}`,
    ...demoModels({ agent: name, size: "small", part, book, worker, paceMs }),
  });
  return {
    support: new Agent({
      ...options("support", "Answers questions about the project and its orders.", supportPart),
      tools: [...tools, askHumanTool()],
      budget: { maxCostUsd: 0.5 },
    }),
    bookkeeper: new Agent({
      ...options("bookkeeper", "Writes a weekly report about the orders.", bookkeeperPart),
      tools: [...tools, ...write],
      budget: { maxCostUsd: 0.2 },
    }),
    upkeep: new Agent({
      ...options("upkeep", "Keeps the checklist of releases.", upkeepPart),
      tools: tools.filter(({ name }) => name === "read"),
      budget: { maxCostUsd: 0.005 },
    }),
  };
}

/** Searches for the subject of the person's question, and answers with the found lines. */
const supportPart: Part = (request) => {
  const { question, turn, results } = sinceQuestion(request);
  if (turn === 0) return { calls: [{ tool: "grep", input: { pattern: subjectOf(question) } }] };
  if (!/refund/iu.test(question)) return { text: found(subjectOf(question), results[0]) };
  if (turn > 1) return { text: `Refund noted: ${results[1]}.` };
  const asked = {
    question: `Refund order ${subjectOf(question)} in full, or the damaged item only?`,
    options: ["in full", "the damaged item only"],
  };
  return { text: "A refund needs a person.", calls: [{ tool: "ask_human", input: asked }] };
};

function found(subject: string, result = ""): string {
  const hits = result.split("\n").filter((line) => line !== "" && !line.startsWith("["));
  return hits.length === 0
    ? `Nothing in the project mentions ${subject}.`
    : `I found ${hits.length} ${hits.length === 1 ? "line" : "lines"} about ${subject}:\n${hits
        .slice(0, 4)
        .map((line) => `- ${line}`)
        .join("\n")}`;
}

/** Returns the number in a question, or else its longest word. */
function subjectOf(question: string): string {
  const [number] = /\d{3,}/u.exec(question) ?? [];
  const words = question.match(/\p{L}+/gu) ?? [];
  return number ?? words.toSorted((one, other) => other.length - one.length)[0] ?? "tally";
}

const bookkeeperPart: Part = lines(
  () => ({ calls: [{ tool: "read", input: { path: "shop/orders.csv" } }] }),
  ([orders = ""]) => ({
    calls: [{ tool: "write", input: { path: "shop/report.md", content: `# Orders\n\n${report(orders)}\n` } }],
  }),
  ([orders = ""]) => ({ text: report(orders) }),
);

function report(orders: string): string {
  const rows = orders.trim().split("\n").slice(1);
  const total = rows.reduce((sum, row) => sum + Number(row.split(",")[2]), 0);
  const numbers = new Set(rows.map((row) => row.split(",")[0]));
  return `${numbers.size} orders with ${rows.length} items, ${total.toFixed(2)} in all.`;
}

const upkeepPart: Part = lines(
  () => ({ calls: [{ tool: "read", input: { path: "RELEASING.md" } }] }),
  ([list = ""]) => ({ text: `The checklist has ${list.match(/^\d+\./gmu)?.length ?? 0} points.` }),
);
