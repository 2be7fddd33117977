import {
  deepAgent,
  graphOfThoughts,
  planAndExecute,
  reflexion,
  rewoo,
  selfRefine,
  treeOfThoughts,
} from "../../../src/agents/architectures/index.ts";
import { Agent } from "../../../src/assembly/agent.ts";
import { ampleBudget as budget } from "../../crash/workload.ts";
import { roleModels, repliesByRole, type ModelCall, type ArchitectureCase } from "./architecture-case.ts";

const input = "How deep is it?";

/** Whether the conversation of a call already contains tool results. */
function hasResults({ messages }: ModelCall): boolean {
  return messages.some(({ role }) => role === "tool");
}

const reactCase: ArchitectureCase = {
  agent: (services) =>
    new Agent({ name: "react", model: services.model("main"), tools: [services.tool("look")], budget }),
  input,
  reply: (call) =>
    hasResults(call)
      ? { text: "Two fathoms." }
      : { text: "Let me look.", calls: [1, 2].map((at) => ({ name: "look", input: { at } })) },
  output: "Two fathoms.",
  maxParallelCalls: 2,
};

const planAndExecuteCase: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "planner",
      model: services.model("main"),
      models: roleModels(services, "planner", "executor", "synthesizer"),
      tools: [services.tool("dig")],
      architecture: planAndExecute(),
      budget,
    }),
  input,
  reply: (call) => {
    if (call.role === "planner") return { text: '["dig", "measure"]' };
    if (call.role === "synthesizer") return { text: "Dug and measured." };
    if (call.last.includes("Your step: number 2")) return { text: "measured" };
    return hasResults(call) ? { text: "dug" } : { text: "Let me dig.", calls: [{ name: "dig", input: {} }] };
  },
  output: "Dug and measured.",
};

const rewooCase: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "rewoo",
      model: services.model("main"),
      models: roleModels(services, "planner", "solver"),
      tools: [services.tool("look"), services.tool("weigh")],
      architecture: rewoo(),
      budget,
    }),
  input,
  reply: ({ role }) => ({
    text:
      role === "solver"
        ? "Weighed."
        : JSON.stringify([
            { id: "E1", tool: "look", args: { at: 1 } },
            { id: "E2", tool: "look", args: { at: 2 } },
            { id: "E3", tool: "weigh", args: { what: "{{E1}}" } },
          ]),
  }),
  output: "Weighed.",
  maxParallelCalls: 2,
};

const reflexionCase: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "reflexion",
      model: services.model("main"),
      models: roleModels(services, "evaluator", "reflector"),
      tools: [services.tool("look")],
      architecture: reflexion(),
      budget,
    }),
  input,
  reply: (call) => {
    const { role, messages, last } = call;
    if (role === "evaluator") return { text: last.includes("exactly") ? '{"score": 1}' : '{"score": 0.1}' };
    if (role === "reflector") return { text: "Measure first." };
    const hasLesson = JSON.stringify(messages[0]).includes("Measure first.");
    if (!hasResults(call))
      return {
        text: hasLesson ? "Let me measure." : "Let me look.",
        calls: [{ name: "look", input: { measure: hasLesson } }],
      };
    return { text: hasLesson ? "Two fathoms exactly." : "Deep." };
  },
  output: "Two fathoms exactly.",
};

const selfRefineCase: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "refine",
      model: services.model("main"),
      models: roleModels(services, "critic", "refiner"),
      architecture: selfRefine(),
      budget,
    }),
  input,
  reply: ({ role, last }) => {
    if (role === "critic") return { text: last.includes("fathoms") ? "No issues." : "Give a number." };
    return { text: role === "refiner" ? "Two fathoms." : "Deep." };
  },
  output: "Two fathoms.",
};

const treeOfThoughtsCase: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "tree",
      model: services.model("main"),
      models: roleModels(services, "proposer", "evaluator", "synthesizer"),
      architecture: treeOfThoughts({ branches: 2, depth: 1, beam: 1 }),
      budget,
    }),
  input,
  reply: ({ role, last }) => {
    if (role === "proposer") return { text: '["guess", "measure"]' };
    if (role === "evaluator") return { text: last.includes("measure") ? '{"score": 0.9}' : '{"score": 0.1}' };
    return { text: "Measured." };
  },
  output: "Measured.",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

const graphOfThoughtsCase: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "graph",
      model: services.model("main"),
      models: roleModels(services, "thinker", "evaluator", "aggregator"),
      architecture: graphOfThoughts({
        operations: [{ do: "generate", count: 2 }, { do: "score" }, { do: "aggregate" }],
      }),
      budget,
    }),
  input,
  reply: ({ role, messages }) => {
    if (role === "evaluator") return { text: '{"score": 0.5}' };
    if (role === "aggregator") return { text: "Both." };
    return { text: JSON.stringify(messages[0]).includes("number 1") ? "one" : "two" };
  },
  output: "Both.",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

const deepAgentCase: ArchitectureCase = {
  agent: (services) => {
    const helper = new Agent({ name: "helper", model: services.model("helper") });
    return new Agent({
      name: "deep",
      model: services.model("main"),
      models: roleModels(services, "general"),
      architecture: deepAgent({ subAgents: { helper } }),
      budget,
    });
  },
  input,
  reply: ({ role, messages }) => {
    if (role !== "main")
      return repliesByRole({ helper: "helped", general: "thought" })({ role, messages, last: "" });
    const turn = messages.filter((message) => message.role === "assistant").length;
    if (turn === 0) {
      const todos = [{ content: "measure", status: "pending" }];
      return {
        calls: [
          { name: "write_todos", input: { todos } },
          { name: "write_file", input: { path: "notes", content: "deep" } },
        ],
      };
    }
    if (turn > 1) return { text: "Measured by others." };
    return {
      text: "I have it measured.",
      calls: ["helper", "general"].map((agent) => ({
        name: "task",
        input: { agent, task: `${agent}, measure`, files: "notes" },
      })),
    };
  },
  output: "Measured by others.",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

/** Cases of architectures of one agent. The deep agent also has a sub-agent. */
export const singleAgentCases: Readonly<Record<string, ArchitectureCase>> = {
  react: reactCase,
  "plan-and-execute": planAndExecuteCase,
  rewoo: rewooCase,
  reflexion: reflexionCase,
  "self-refine": selfRefineCase,
  "tree-of-thoughts": treeOfThoughtsCase,
  "graph-of-thoughts": graphOfThoughtsCase,
  "deep-agent": deepAgentCase,
};
