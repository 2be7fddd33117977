import {
  actorCritic,
  blackboard,
  debate,
  router,
  supervisor,
  swarm,
} from "../../../src/agents/architectures/index.ts";
import { Agent } from "../../../src/assembly/agent.ts";
import { informationAgent, orchestration } from "../../../src/agents/index.ts";
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

function worker(services: ExternalServices, name: string): Agent {
  return new Agent({ name, model: services.model(name) });
}

function team(
  services: ExternalServices,
  name: string,
  architecture: Architecture,
  ...roles: string[]
): Agent {
  return new Agent({
    name,
    model: services.model("main"),
    models: roleModels(services, ...roles),
    architecture,
    budget,
  });
}

/** Number of replies of the model in the conversation of a call. */
function replyCount({ messages }: ModelCall): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

const routerCase: ArchitectureCase = {
  agent: (services) => {
    const [diver, climber] = [worker(services, "diver"), worker(services, "climber")];
    return team(services, "desk", router({ routes: { diver, climber } }), "classifier");
  },
  input,
  reply: repliesByRole({ classifier: "route: diver\nconfidence: 1", diver: "Two fathoms." }),
  output: "Two fathoms.",
  hasNoPartial: true,
};

const supervisorCase: ArchitectureCase = {
  agent: (services) => {
    const [diver, spawnable] = [worker(services, "diver"), worker(services, "spare")];
    return team(services, "boss", supervisor({ workers: { diver }, spawnable }));
  },
  input,
  reply: (call) => {
    if (call.role !== "main") return { text: `${call.role} measured` };
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
    return turns[replyCount(call)] ?? { text: "never" };
  },
  output: "diver measured",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

const orchestratorCase: ArchitectureCase = {
  agent: (services) =>
    new Agent(
      orchestration({
        name: "lead",
        model: services.model("main"),
        subAgents: ["diver", "climber"].map((name) => ({ agent: worker(services, name) })),
        budget,
      }),
    ),
  input,
  reply: (call) => {
    if (call.role !== "main") return { text: `${call.role} measured` };
    if (replyCount(call) > 0) return { text: "Both measured." };
    return {
      text: "I have it measured.",
      calls: ["diver", "climber"].map((each) => ({ name: `handoff_${each}`, input: { task: "measure" } })),
    };
  },
  output: "Both measured.",
  maxParallelCalls: 2,
  hasUnorderedEvents: true,
};

const actorCriticCase: ArchitectureCase = {
  agent: (services) => {
    const actor = new Agent({
      name: "actor",
      model: services.model("actor"),
      tools: [services.tool("look")],
    });
    const critic = worker(services, "critic");
    return team(services, "pair", actorCritic({ actor, critic }));
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

const debateCase: ArchitectureCase = {
  agent: (services) => {
    const [ada, bob] = [worker(services, "ada"), worker(services, "bob")];
    return team(services, "panel", debate({ debaters: { ada, bob }, judge: "self" }), "judge");
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

const swarmCase: ArchitectureCase = {
  agent: (services) =>
    team(
      services,
      "crowd",
      swarm({ peers: { diver: worker(services, "diver"), climber: worker(services, "climber") } }),
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

const blackboardCase: ArchitectureCase = {
  agent: (services) => {
    const agents = { diver: worker(services, "diver"), climber: worker(services, "climber") };
    const architecture = blackboard({ agents, coordinator: "self", decider: "self" });
    return team(services, "board", architecture, "coordinator", "decider");
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
const blackboardInTurnCase: ArchitectureCase = {
  agent: (services) =>
    team(
      services,
      "wall",
      blackboard({ agents: { diver: worker(services, "diver"), climber: worker(services, "climber") } }),
    ),
  input,
  reply: ({ role }) => ({
    text: `{"kind": "${role === "climber" ? "answer" : "note"}", "content": "${role} was there"}`,
  }),
  output: "climber was there",
};

/** An agent that follows a topic, summarises what is published and publishes the summary. */
const informationCase: ArchitectureCase = {
  agent: (services) =>
    new Agent(
      informationAgent({
        name: "herald",
        sources: ["news/coast"],
        topic: "digest/all",
        model: services.model("main"),
        models: roleModels(services, "summarizer"),
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
  router: routerCase,
  supervisor: supervisorCase,
  orchestrator: orchestratorCase,
  "actor-critic": actorCriticCase,
  debate: debateCase,
  swarm: swarmCase,
  blackboard: blackboardCase,
  "blackboard in turn": blackboardInTurnCase,
  information: informationCase,
};
