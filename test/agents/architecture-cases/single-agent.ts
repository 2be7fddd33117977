import {
  deepAgent,
  graphOfThoughts,
  planAndExecute,
  reflexion,
  rewoo,
  selfRefine,
  treeOfThoughts,
} from "../../../src/agents/architectures/index.ts";
import { AgentCore } from "../../../src/agents/index.ts";
import { ampleBudget as budget } from "../../crash/workload.ts";
import { roleModels, repliesByRole, type ModelCall, type ArchitectureCase } from "./architecture-case.ts";

const input = "How deep is it?";

/** Whether the conversation of a call already contains tool results. */
function hasResults({ messages }: ModelCall): boolean {
  return messages.some(({ role }) => role === "tool");
}

const react: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore({ name: "react", model: outside.model("main"), tools: [outside.tool("look")], budget }),
  input,
  reply: (asked) =>
    hasResults(asked)
      ? { text: "Two fathoms." }
      : { text: "Let me look.", calls: [1, 2].map((at) => ({ name: "look", input: { at } })) },
  output: "Two fathoms.",
  maxParallelCalls: 2,
};

const planning: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore({
      name: "planner",
      model: outside.model("main"),
      models: roleModels(outside, "planner", "executor", "synthesizer"),
      tools: [outside.tool("dig")],
      architecture: planAndExecute(),
      budget,
    }),
  input,
  reply: (asked) => {
    if (asked.role === "planner") return { text: '["dig", "measure"]' };
    if (asked.role === "synthesizer") return { text: "Dug and measured." };
    if (asked.last.includes("Your step: number 2")) return { text: "measured" };
    return hasResults(asked) ? { text: "dug" } : { text: "Let me dig.", calls: [{ name: "dig", input: {} }] };
  },
  output: "Dug and measured.",
};

const foreseeing: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore({
      name: "rewoo",
      model: outside.model("main"),
      models: roleModels(outside, "planner", "solver"),
      tools: [outside.tool("look"), outside.tool("weigh")],
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

const reflecting: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore({
      name: "reflexion",
      model: outside.model("main"),
      models: roleModels(outside, "evaluator", "reflector"),
      tools: [outside.tool("look")],
      architecture: reflexion(),
      budget,
    }),
  input,
  reply: (asked) => {
    const { role, messages, last } = asked;
    if (role === "evaluator") return { text: last.includes("exactly") ? '{"score": 1}' : '{"score": 0.1}' };
    if (role === "reflector") return { text: "Measure first." };
    const hasLesson = JSON.stringify(messages[0]).includes("Measure first.");
    if (!hasResults(asked))
      return {
        text: hasLesson ? "Let me measure." : "Let me look.",
        calls: [{ name: "look", input: { measure: hasLesson } }],
      };
    return { text: hasLesson ? "Two fathoms exactly." : "Deep." };
  },
  output: "Two fathoms exactly.",
};

const refining: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore({
      name: "refine",
      model: outside.model("main"),
      models: roleModels(outside, "critic", "refiner"),
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

const searching: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore({
      name: "tree",
      model: outside.model("main"),
      models: roleModels(outside, "proposer", "evaluator", "synthesizer"),
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

const weaving: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore({
      name: "graph",
      model: outside.model("main"),
      models: roleModels(outside, "thinker", "evaluator", "aggregator"),
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

const deep: ArchitectureCase = {
  agent: (outside) => {
    const helper = new AgentCore({ name: "helper", model: outside.model("helper") });
    return new AgentCore({
      name: "deep",
      model: outside.model("main"),
      models: roleModels(outside, "general"),
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
  react,
  "plan-and-execute": planning,
  rewoo: foreseeing,
  reflexion: reflecting,
  "self-refine": refining,
  "tree-of-thoughts": searching,
  "graph-of-thoughts": weaving,
  "deep-agent": deep,
};
