import { Agent } from "../../../src/assembly/agent.ts";
import {
  ConditionalFlow,
  END,
  ParallelFlow,
  SequentialFlow,
  START,
  GraphFlow,
} from "../../../src/agents/index.ts";
import { Fault } from "../../../src/kernel/index.ts";
import { ampleBudget as budget } from "../../crash/workload.ts";
import { repliesByRole, type ExternalServices, type ArchitectureCase } from "./architecture-case.ts";

const input = "How deep is it?";

function worker(services: ExternalServices, name: string): Agent {
  return new Agent({ name, model: services.model(name) });
}

const sequential: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "line",
      architecture: new SequentialFlow(["first", "second"].map((name) => worker(services, name))),
      budget,
    }),
  input,
  reply: repliesByRole({ first: "one", second: "two" }),
  output: "two",
};

const parallel: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "choir",
      architecture: new ParallelFlow({
        branches: ["first", "second"].map((name) => worker(services, name)),
        merge: (texts) => texts.join(" and "),
      }),
      budget,
    }),
  input,
  reply: repliesByRole({ first: "one", second: "two" }),
  output: "one and two",
  maxParallelCalls: 2,
};

const conditional: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "fork",
      architecture: new ConditionalFlow({
        predicate: (text) => text.includes("deep"),
        ifTrue: worker(services, "diver"),
        ifFalse: worker(services, "climber"),
      }),
      budget,
    }),
  input,
  reply: repliesByRole({ diver: "Two fathoms." }),
  output: "Two fathoms.",
  hasNoPartial: true,
};

/** A diamond of agents and functions, with a loop that runs twice. */
const workflow: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "works",
      architecture: new GraphFlow({
        nodes: {
          left: worker(services, "left"),
          right: worker(services, "right"),
          join: (_input, { text, visit }) => `${text} ${visit}`,
          polish: worker(services, "polish"),
        },
        edges: [
          [START, "left"],
          [START, "right"],
          ["left", "join"],
          ["right", "join"],
          ["join", "polish"],
        ],
        routers: {
          polish: { to: ["join", END], choose: (_value, text) => (text === "again" ? "join" : END) },
        },
      }),
      budget,
    }),
  input,
  reply: ({ role, last }) => {
    if (role === "polish") return { text: last.endsWith("1") ? "again" : `done: ${last}` };
    return { text: role };
  },
  output: "done: again 2",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

/** A parallel flow inside a sequential flow. */
const nested: ArchitectureCase = {
  agent: (services) => {
    const pair = new Agent({
      name: "pair",
      architecture: new ParallelFlow({
        branches: ["first", "second"].map((name) => worker(services, name)),
        merge: "vote",
      }),
    });
    return new Agent({
      name: "nest",
      architecture: new SequentialFlow([pair, worker(services, "third")]),
      budget,
    });
  },
  input,
  reply: repliesByRole({ first: "one", second: "two", third: "three" }),
  output: "three",
  maxParallelCalls: 2,
};

/** A graph with a node that fails. The graph keeps the output that it has so far. */
const failing: ArchitectureCase = {
  agent: (services) =>
    new Agent({
      name: "broken",
      architecture: new GraphFlow({
        nodes: {
          work: worker(services, "work"),
          fail: () => {
            throw new Fault("tool_failed", "no luck");
          },
        },
        edges: [
          [START, "work"],
          ["work", "fail"],
          ["fail", END],
        ],
      }),
      budget,
    }),
  input,
  reply: repliesByRole({ work: "worked" }),
  output: "worked",
};

/** Cases of flows that fail. They must fail in the same way wherever their worker process crashes. */
export const failingFlowCases: Readonly<Record<string, ArchitectureCase>> = {
  "a graph that fails": failing,
  /** Cases of flows that complete. */
};

export const flowCases: Readonly<Record<string, ArchitectureCase>> = {
  sequential,
  parallel,
  conditional,
  workflow,
  "flows in flows": nested,
};
