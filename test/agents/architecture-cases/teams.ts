import {
  actorCritic,
  blackboard,
  debate,
  router,
  supervisor,
  swarm,
} from "../../../src/agents/architectures/index.ts";
import { AgentCore, information, orchestration } from "../../../src/agents/index.ts";
import { messageText, type Architecture } from "../../../src/kernel/index.ts";
import { ampleBudget as budget } from "../../crash/workload.ts";
import {
  roleModels,
  repliesByRole,
  type ModelCall,
  type ExternalServices,
  type ArchitectureCase,
} from "./architecture-case.ts";

const input = "How deep is it?";

function worker(outside: ExternalServices, name: string): AgentCore {
  return new AgentCore({ name, model: outside.model(name) });
}

function team(
  outside: ExternalServices,
  name: string,
  architecture: Architecture,
  ...roles: string[]
): AgentCore {
  return new AgentCore({
    name,
    model: outside.model("main"),
    models: roleModels(outside, ...roles),
    architecture,
    budget,
  });
}

/** Number of replies of the model in the conversation of a call. */
function turnOf({ messages }: ModelCall): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

const routing: ArchitectureCase = {
  agent: (outside) => {
    const [diver, climber] = [worker(outside, "diver"), worker(outside, "climber")];
    return team(outside, "desk", router({ routes: { diver, climber } }), "classifier");
  },
  input,
  reply: repliesByRole({ classifier: "route: diver\nconfidence: 1", diver: "Two fathoms." }),
  output: "Two fathoms.",
  hasNoPartial: true,
};

const supervising: ArchitectureCase = {
  agent: (outside) => {
    const [diver, spawnable] = [worker(outside, "diver"), worker(outside, "spare")];
    return team(outside, "boss", supervisor({ workers: { diver }, spawnable }));
  },
  input,
  reply: (asked) => {
    if (asked.role !== "main") return { text: `${asked.role} measured` };
    const turns = [
      { calls: [{ name: "spawn_worker", input: { name: "own", instructions: "Be quick." } }] },
      {
        text: "I have it measured.",
        calls: ["diver", "own"].map((each) => ({
          name: "delegate",
          input: { worker: each, task: `${each}, measure` },
        })),
      },
      { calls: [{ name: "forward_message", input: { worker: "diver" } }] },
    ];
    return turns[turnOf(asked)] ?? { text: "never" };
  },
  output: "diver measured",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

const orchestrating: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore(
      orchestration({
        name: "lead",
        model: outside.model("main"),
        subAgents: ["diver", "climber"].map((name) => ({ agent: worker(outside, name) })),
        budget,
      }),
    ),
  input,
  reply: (asked) => {
    if (asked.role !== "main") return { text: `${asked.role} measured` };
    if (turnOf(asked) > 0) return { text: "Both measured." };
    return {
      text: "I have it measured.",
      calls: ["diver", "climber"].map((each) => ({ name: `handoff_${each}`, input: { task: "measure" } })),
    };
  },
  output: "Both measured.",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

const criticising: ArchitectureCase = {
  agent: (outside) => {
    const actor = new AgentCore({
      name: "actor",
      model: outside.model("actor"),
      tools: [outside.tool("look")],
    });
    const critic = worker(outside, "critic");
    return team(outside, "pair", actorCritic({ actor, critic }));
  },
  input,
  reply: ({ role, messages, last }) => {
    if (role === "critic") return { text: last.includes("fathoms") ? '{"score": 1}' : '{"score": 0}' };
    const isFirst = messages.some((message) => message.role === "user" && messageText(message) === input);
    if (messages.at(-1)?.role === "tool") return { text: isFirst ? "Deep." : "Two fathoms." };
    return { text: "Let me look.", calls: [{ name: "look", input: { again: !isFirst } }] };
  },
  output: "Two fathoms.",
};

const debating: ArchitectureCase = {
  agent: (outside) => {
    const [ada, bob] = [worker(outside, "ada"), worker(outside, "bob")];
    return team(outside, "panel", debate({ debaters: { ada, bob }, judge: "self" }), "judge");
  },
  input,
  reply: ({ role, last }) => {
    if (role === "judge") return { text: "Two fathoms, they say." };
    return { text: last === input ? `${role} guesses` : `${role} insists on it` };
  },
  output: "Two fathoms, they say.",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

const swarming: ArchitectureCase = {
  agent: (outside) =>
    team(
      outside,
      "crowd",
      swarm({ peers: { diver: worker(outside, "diver"), climber: worker(outside, "climber") } }),
    ),
  input,
  reply: ({ role }) =>
    role === "climber"
      ? { text: "Two fathoms." }
      : {
          text: "Not mine.",
          calls: [{ name: "handoff", input: { target: "climber", message: "Measure." } }],
        },
  output: "Two fathoms.",
};

const writing: ArchitectureCase = {
  agent: (outside) => {
    const agents = { diver: worker(outside, "diver"), climber: worker(outside, "climber") };
    const architecture = blackboard({ agents, coordinator: "self", decider: "self" });
    return team(outside, "board", architecture, "coordinator", "decider");
  },
  input,
  reply: ({ role, last }) => {
    if (role === "decider") return { text: "Two fathoms." };
    if (role !== "coordinator") return { text: `{"kind": "note", "content": "${role} was there"}` };
    if (last.includes("climber was there")) return { text: '{"terminate": true}' };
    const nextAgent = last.includes("diver was there") ? "climber" : "diver";
    return { text: JSON.stringify({ terminate: false, nextAgent, instruction: "look" }) };
  },
  output: "Two fathoms.",
};

/** A blackboard without a coordinator: the agents write in turn until one of them writes the answer. */
const takingTurns: ArchitectureCase = {
  agent: (outside) =>
    team(
      outside,
      "wall",
      blackboard({ agents: { diver: worker(outside, "diver"), climber: worker(outside, "climber") } }),
    ),
  input,
  reply: ({ role }) => ({
    text: `{"kind": "${role === "climber" ? "answer" : "note"}", "content": "${role} was there"}`,
  }),
  output: "climber was there",
};

/** An agent that follows a topic, summarises what is published and publishes the summary. */
const informing: ArchitectureCase = {
  agent: (outside) =>
    new AgentCore(
      information({
        name: "herald",
        sources: ["news/coast"],
        topic: "digest/all",
        model: outside.model("main"),
        models: roleModels(outside, "summarizer"),
        budget,
      }),
    ),
  input: "The tide is out.",
  reply: repliesByRole({ summarizer: "Low water." }),
  output: "Low water.",
  hasNoPartial: true,
};

/** Cases of architectures of several agents. */
export const teamCases: Readonly<Record<string, ArchitectureCase>> = {
  router: routing,
  supervisor: supervising,
  orchestrator: orchestrating,
  "actor-critic": criticising,
  debate: debating,
  swarm: swarming,
  blackboard: writing,
  "blackboard in turn": takingTurns,
  information: informing,
};
