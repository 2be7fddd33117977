import { expect, test } from "vitest";
import {
  actorCritic,
  blackboard,
  debate,
  router,
  supervisor,
  swarm,
} from "../../src/agents/architectures/index.ts";
import { Agent, OrchestratorAgent, UserProxyAgent } from "../../src/entries/index.ts";
import {
  answerIfLive,
  messageText,
  type Architecture,
  type Event,
  type ModelRequest,
} from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptedReply } from "../../src/testing/index.ts";
import { runWorkload, type Workload } from "../runtime/simulated-crash.ts";
import { deathsAt } from "../effort.ts";

type World = string[];
type Answer = (asked: string, turns: number) => string | ScriptedReply;

/**
 * A model whose answers depend only on the request, so that a restarted worker can continue. The model records its
 * requests.
 */
function answering(world: World, answer: Answer): ScriptedModel {
  return scriptedModel(
    Array.from({ length: 100 }, () => (request: ModelRequest) => {
      const asked = request.messages.map((message) => messageText(message)).join("\n");
      world.push(asked);
      return answer(asked, request.messages.filter(({ role }) => role === "assistant").length);
    }),
  );
}

const calling = (
  ...calls: readonly (readonly [string, Readonly<Record<string, string>>])[]
): ScriptedReply => ({
  text: "Let me see.",
  toolCalls: calls.map(([name, input]) => ({ name, input })),
});

const teams: Readonly<Record<string, (world: World) => Agent>> = {
  router: (world) => {
    const [a, b] = hands(world);
    return team(world, router({ routes: { a, b } }), () => "route: b\nconfidence: 1");
  },
  supervisor: (world) => {
    const [a, spawnable] = hands(world);
    const architecture = supervisor({ workers: { a }, spawnable, remember: true });
    const turns = [
      calling(["spawn_worker", { name: "own", instructions: "Be quick." }]),
      calling(
        ["delegate", { worker: "a", task: "one" }],
        ["delegate", { worker: "own", task: "two" }],
        ["delegate", { worker: "a", task: "three" }],
      ),
      calling(["forward_message", { worker: "a" }]),
    ];
    return team(world, architecture, (_asked, turn) => turns[turn] ?? "never");
  },
  "actor-critic": (world) => {
    const actor = hand(world, "actor", (asked) => (asked.includes("critic") ? "better" : "draft"));
    const critic = hand(world, "critic", (asked) => `{"score": ${asked.includes("better") ? 1 : 0}}`);
    return team(world, actorCritic({ actor, critic }));
  },
  debate: (world) => {
    const [ada, bob] = hands(world);
    const architecture = debate({ debaters: { ada, bob }, judge: "self" });
    return team(world, architecture, (asked) => `judged ${asked.length}`);
  },
  swarm: (world) => {
    const desk = hand(world, "desk", () => calling(["handoff", { target: "bank", message: "Pay." }]));
    const [bank, shop] = hands(world);
    const inputFilter = ({ message }: { readonly message: string }) => ({ prompt: `filtered ${message}` });
    return team(world, swarm({ peers: { desk, bank: { agent: bank, inputFilter }, shop } }));
  },
  blackboard: (world) => {
    const [ada, bob] = hands(world);
    const architecture = blackboard({ agents: { ada, bob }, coordinator: "self", decider: "self" });
    return team(world, architecture, (asked) => {
      if (!asked.includes("You choose who writes next")) return `decided ${asked.length}`;
      if (asked.includes("## bob")) return '{"terminate": true}';
      return `{"nextAgent": "${asked.includes("## ada") ? "bob" : "ada"}"}`;
    });
  },
  orchestrator: (world) => {
    const [a, b] = hands(world);
    const calls = calling(
      ["handoff_a", { task: "one" }],
      ["handoff_b", { task: "two" }],
      ["handoff_ada", { task: "?" }],
    );
    const ada = new UserProxyAgent({ name: "ada" });
    const subAgents = [{ agent: a, key: "a" }, { agent: b, key: "b" }, { agent: ada }];
    const model = answering(world, (asked, turn) => (turn === 0 ? calls : `done ${asked.length}`));
    return new OrchestratorAgent({ name: "team", model, subAgents });
  },
};

function team(world: World, architecture: Architecture, answer: Answer = () => "never"): Agent {
  return new Agent({ name: "team", architecture, model: answering(world, answer) });
}

function hand(world: World, name: string, answer: Answer): Agent {
  return new Agent({ name, model: answering(world, answer) });
}

function hands(world: World): readonly [Agent, Agent] {
  return [
    hand(world, "left", (asked) => `left of ${asked}`),
    hand(world, "right", (asked) => `right of ${asked}`),
  ];
}

/** Maximum number of calls in flight at the same time. */
const widest = 3;

test.for(Object.entries(teams))(
  "J1, J6: a team by %s has the same result wherever its worker dies, emits each event once, and repeats only calls in flight",
  async ([, make]) => {
    const workload = (world: World): Workload => ({
      agents: () => [make(world)],
      input: "What is it?",
      options: { unknownPrice: "ignore" },
      interact: async (handle, events) => {
        const asked = events.flatMap((event) => (event.type === "approval_request" ? [event.data] : []));
        for (const { approvalId } of asked) await answerIfLive(handle, approvalId, { decision: "skipped" });
      },
    });
    const calmWorld: World = [];
    const calm = await runWorkload(workload(calmWorld));
    expect(calm.status).toBe("completed");
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of deathsAt(at)) {
        const world: World = [];
        const { output, status, events } = await runWorkload(workload(world), { at, when });
        expect({ at, when, output, status, ...told(events) }).toEqual({
          at,
          when,
          output: calm.output,
          status: "completed",
          ...told(calm.events),
        });
        expect(world.length - calmWorld.length).toBeLessThanOrEqual(widest);
      }
    }
  },
);

/** The report of the root, the architecture's events and the agents it spawned. */
function told(events: readonly Event[]) {
  const metadata = events.flatMap((event) =>
    event.type === "task_end" && event.taskId === "t0" ? [event.data.metadata ?? null] : [],
  );
  const notes = events.flatMap((event) => (event.type === "architecture_event" ? [event.data] : []));
  const hired = events.flatMap((event) =>
    event.type === "spawn_start" || event.type === "handoff"
      ? [`${event.type} ${event.data.childTaskId}`]
      : [],
  );
  return { metadata, notes, hired: hired.toSorted() };
}
