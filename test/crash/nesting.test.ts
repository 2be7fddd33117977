import { expect, test } from "vitest";
import {
  debate,
  deepAgent,
  planAndExecute,
  reflexion,
  router,
  selfRefine,
  supervisor,
  swarm,
} from "../../src/agents/architectures/index.ts";
import { Agent, END, Parallel, Sequential, START, Graph } from "../../src/entries/index.ts";
import type { Architecture, Event, ModelRequest } from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptedReply } from "../../src/testing/index.ts";
import { company } from "../agents/company.ts";
import { until } from "../runtime/runtime-setup.ts";
import { runWorkload, type Workload } from "../runtime/simulated-crash.ts";
import { turn } from "../agents/architectures/deep-agent-script.ts";
import { promptOf } from "../agents/architectures/run-agent.ts";
import { deathsAt } from "../effort.ts";

type World = string[];
type Answer = (asked: string, turns: number) => string | ScriptedReply;

/**
 * A model whose answers depend only on the request, so that a restarted worker can continue. The model records its
 * requests.
 */
function answering(world: World, answer: Answer): ScriptedModel {
  return scriptedModel(
    Array.from({ length: 200 }, () => (request: ModelRequest) => {
      const asked = promptOf(request);
      world.push(asked);
      return answer(asked, request.messages.filter(({ role }) => role === "assistant").length);
    }),
  );
}

const roles: Readonly<Record<string, Answer>> = {
  evaluator: (asked) => `{"score": ${(asked.length % 10) / 20}}`,
  reflector: (asked) => `lesson ${asked.length}`,
  planner: () => '["one", "two"]',
  synthesizer: (asked) => `answer ${asked.length}`,
  classifier: () => "route: a\nconfidence: 1",
  judge: (asked) => `judged ${asked.length}`,
  critic: (asked) => (asked.includes("better") ? "no issues" : "make it better"),
  refiner: () => "better",
};

function thinker(
  world: World,
  architecture: Architecture,
  answer: Answer = () => "never",
  more: Readonly<Record<string, Answer>> = {},
): Agent {
  const models = Object.entries({ ...roles, ...more }).map(([role, each]) => [role, answering(world, each)]);
  return new Agent({
    name: architecture.name,
    architecture,
    model: answering(world, answer),
    models: Object.fromEntries(models) as Record<string, ScriptedModel>,
  });
}

function hand(world: World, name: string): Agent {
  return new Agent({ name, model: answering(world, (asked) => `${name} of ${asked.length}`) });
}

/** Answers with the replies in order, one per turn, and then ends. */
function turns(...replies: readonly ScriptedReply[]): Answer {
  return (_asked, at) => replies[at] ?? "done";
}

const delegating = turns(
  turn(["delegate", { worker: "a", task: "one" }], ["delegate", { worker: "b", task: "two" }]),
  turn(["forward_message", { worker: "a" }]),
);
const tasks = turns(
  turn(
    ["write_file", { path: "x", content: "y" }],
    ["task", { agent: "a", task: "one", files: "x" }],
    ["task", { agent: "general", task: "two", files: "x" }],
  ),
);
const general: Answer = (asked) => `thought ${asked.length}`;
const setItself = turn(["task", { agent: "general", task: "one" }]);

const nests: Readonly<Record<string, (world: World, a: Agent, b: Agent) => Agent>> = {
  "reflexion over a supervisor": (world, a, b) =>
    thinker(world, reflexion(supervisor({ workers: { a, b } }), { maxAttempts: 2 }), delegating),
  "reflexion over a supervisor whose workers remember": (world, a, b) => {
    const base = supervisor({ workers: { a, b }, remember: true });
    return thinker(world, reflexion(base, { maxAttempts: 2 }), delegating);
  },
  "reflexion over self-refine over a plan": (world) =>
    thinker(
      world,
      reflexion(selfRefine(planAndExecute()), { maxAttempts: 2 }),
      (asked) => `did ${asked.length}`,
    ),
  "a plan over deep agents": (world, a) =>
    thinker(world, planAndExecute({ base: deepAgent({ subAgents: { a } }) }), () => "never", {
      executor: tasks,
      general,
    }),
  "a plan over debates": (world, a, b) =>
    thinker(world, planAndExecute({ base: debate({ debaters: { a, b } }) })),
  "a supervisor over a plan": (world, a, b) =>
    thinker(world, supervisor({ workers: { a, b }, base: planAndExecute() }), () => "never", {
      executor: delegating,
    }),
  "a supervisor over a deep agent that delegates to itself": (world, a, b) =>
    thinker(
      world,
      supervisor({ workers: { a, b }, base: deepAgent() }),
      turns(setItself, turn(["forward_message", { worker: "a" }])),
      { general: turns(turn(["delegate", { worker: "a", task: "one" }])) },
    ),
  "a swarm with a deep agent that delegates to itself": (world, bank) => {
    const handing = turns(turn(["handoff", { target: "bank", message: "Pay." }]));
    const desk = thinker(world, deepAgent(), turns(setItself), { general: handing });
    return thinker(world, swarm({ peers: { desk, bank } }));
  },
  "a swarm with a flow": (world, a, b) => {
    const desk = thinker(world, deepAgent(), turns(turn(["handoff", { target: "line", message: "Go on." }])));
    const line = new Sequential({ name: "line", steps: [a, b] });
    return thinker(world, swarm({ peers: { desk, line } }));
  },
  "self-refine over a router": (world, a, b) => thinker(world, selfRefine(router({ routes: { a, b } }))),
  "a flow of a debate and a router that share their agents": (world, a, b) =>
    new Parallel({
      name: "both",
      branches: [
        thinker(world, debate({ debaters: { a, b }, judge: "self" })),
        thinker(world, router({ routes: { a, b } })),
      ],
    }),
  "a debate of flows": (world, a, b) => {
    const parallel = new Parallel({ name: "both", branches: [a, b] });
    const graph = new Graph({
      name: "graph",
      nodes: { a, b },
      edges: [
        [START, "a"],
        [START, "b"],
        ["a", END],
        ["b", END],
      ],
    });
    return thinker(world, debate({ debaters: { parallel, graph } }));
  },
};

/** Maximum number of calls in flight at the same time. */
const widest = 4;

test.for(Object.entries(nests))(
  "J1, J2, J6, J7: %s has the same result wherever its worker dies, emits each event once, and repeats only calls in flight",
  async ([, make]) => {
    const workload = (world: World): Workload => ({
      agents: () => [make(world, hand(world, "a"), hand(world, "b"))],
      input: "What is it?",
      options: { unknownPrice: "ignore" },
    });
    const calmWorld: World = [];
    const calm = await runWorkload(workload(calmWorld));
    expect(calm.status).toBe("completed");
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of deathsAt(at)) {
        const world: World = [];
        const { output, status, events } = await runWorkload(workload(world), { at, when });
        expect({ at, when, output, status, told: told(events) }).toEqual({
          at,
          when,
          output: calm.output,
          status: "completed",
          told: told(calm.events),
        });
        expect(world.length - calmWorld.length).toBeLessThanOrEqual(widest);
      }
    }
  },
);

test.for(Object.entries(nests))(
  "B1, B5, J5: %s ends as budget_exhausted without turns left, and completes after topUp() without repeating a call",
  async ([, make]) => {
    const { run, runtime } = await company({ unknownPrice: "ignore" });
    const all: World = [];
    const agent = (world: World): Agent => make(world, hand(world, "a"), hand(world, "b"));
    const calm = await run(agent(all), "What is it?");
    await runtime.close();
    for (let maxTurns = 0; maxTurns < all.length; maxTurns++) {
      const world: World = [];
      const tight = await company({ unknownPrice: "ignore" });
      const handle = await tight.runtime.submit(agent(world), "What is it?", { budget: { maxTurns } });
      expect(await handle.result()).toMatchObject({
        status: "budget_exhausted",
        error: { code: "budget_exhausted", details: { dimension: "turns", limit: maxTurns } },
      });
      expect(world.length).toBeLessThanOrEqual(maxTurns);
      await handle.topUp({ maxTurns: all.length - maxTurns });
      const { result } = await tight.ended(handle);
      expect({ maxTurns, status: result.status, output: result.output, asked: world.length }).toEqual({
        maxTurns,
        status: "completed",
        output: calm.result.output,
        asked: all.length,
      });
      await tight.runtime.close();
    }
  },
);

test.for(Object.entries(nests))(
  "C1, C2: %s that is cancelled at any call ends all its tasks and makes no further call",
  async ([, make]) => {
    const all: World = [];
    const calm = await company({ unknownPrice: "ignore" });
    await calm.run(make(all, hand(all, "a"), hand(all, "b")), "What is it?");
    await calm.runtime.close();
    for (let at = 1; at < all.length; at++) {
      const { runtime, ended, clock } = await company({ unknownPrice: "ignore" });
      const world: World = [];
      const handle = await runtime.submit(make(world, hand(world, "a"), hand(world, "b")), "What is it?");
      await until(() => world.length >= at);
      await handle.cancel("enough");
      const { result, events } = await ended(handle);
      const asked = world.length;
      await clock.advance(10_000);
      expect({ at, asked: world.length }).toEqual({ at, asked });
      // The run may complete before it receives the cancellation.
      expect(["cancelled", "completed"]).toContain(result.status);
      const begun = events.filter(({ type }) => type === "task_start").length;
      expect(events.filter(({ type }) => type === "task_end")).toHaveLength(begun);
      await runtime.close();
    }
  },
);

/**
 * Returns the architecture events and reports of each task. They are grouped by task, because the order of concurrent
 * tasks varies.
 */
function told(events: readonly Event[]) {
  const byTask = new Map<string, unknown[]>();
  for (const { type, taskId, data } of events) {
    const isTold = type === "architecture_event" || type === "task_end" || type.startsWith("flow_");
    if (isTold) byTask.set(taskId, [...(byTask.get(taskId) ?? []), shown(type, data)]);
  }
  return Object.fromEntries(byTask);
}

/** Data of an event without the parts that depend on timing. */
function shown(type: string, data: object): unknown {
  return type === "task_end" ? { metadata: Reflect.get(data, "metadata") ?? null } : data;
}
