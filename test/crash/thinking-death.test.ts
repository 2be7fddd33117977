import { expect, test } from "vitest";
import {
  deepAgent,
  graphOfThoughts,
  planAndExecute,
  react,
  reflexion,
  rewoo,
  selfRefine,
  treeOfThoughts,
} from "../../src/agents/architectures/index.ts";
import { Agent, tool } from "../../src/entries/index.ts";
import type { Architecture, Event, ModelRequest } from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptedReply } from "../../src/testing/index.ts";
import { runWorkload, type Workload } from "../runtime/simulated-crash.ts";
import { read, turn, write } from "../agents/architectures/deep-agent-script.ts";
import { promptOf } from "../agents/architectures/run-agent.ts";
import { deathsAt } from "../effort.ts";

/**
 * A model whose answers depend only on the request, so that a restarted worker can continue. The model records its
 * requests.
 */
function answering(
  world: string[],
  answer: (asked: string, turns: number) => string | ScriptedReply,
): ScriptedModel {
  return scriptedModel(
    Array.from({ length: 200 }, () => (request: ModelRequest) => {
      const asked = promptOf(request);
      world.push(asked);
      return answer(asked, request.messages.filter(({ role }) => role === "assistant").length);
    }),
  );
}

/** An agent with the model roles of all architectures, each with answers that let the architecture continue and end. */
function thinker(architecture: Architecture, world: string[]): Agent {
  const says = (answer: (asked: string) => string) => answering(world, answer);
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    execute: (input) => {
      world.push("look");
      return `seen ${JSON.stringify(input)}`;
    },
  });
  const calls = ["E1", "E2"].map((id) => ({ id, tool: "look", args: { id } }));
  const plan = [...calls, { id: "E3", tool: "look", args: { both: "{{E1}}{{E2}}" } }];
  const reader = new Agent({ name: "reader", model: says(() => "read") });
  const worker =
    architecture.name === "deep-agent"
      ? (turns: number): ScriptedReply | string =>
          [
            turn(write("a.md", "one"), read("a.md")),
            turn(
              ["edit_file", { path: "a.md", old_text: "one", new_text: "two" }],
              ["task", { agent: "reads", task: "Read.", files: "a.md" }],
              ["task", { agent: "general", task: "Think.", files: "a.md" }],
              read("a.md"),
            ),
          ][turns] ?? "done"
      : (turns: number): ScriptedReply | string => (turns === 0 ? turn(["look", {}]) : "done");
  return new Agent({
    name: "thinker",
    architecture:
      architecture.name === "deep-agent" ? deepAgent({ subAgents: { reads: reader } }) : architecture,
    model: answering(world, (_asked, turns) => worker(turns)),
    tools: [look],
    models: {
      general: says(() => "thought"),
      planner: says((asked) => (asked.includes("args:") ? JSON.stringify(plan) : '["one", "two"]')),
      solver: says((asked) => `solved ${asked.length}`),
      synthesizer: says((asked) => `answer ${asked.length}`),
      evaluator: says((asked) => `{"score": ${(asked.length % 10) / 20}}`),
      reflector: says((asked) => `lesson ${asked.length}`),
      critic: says((asked) => (asked.includes("better") ? "no issues" : "make it better")),
      refiner: says(() => "better"),
      proposer: says((asked) => JSON.stringify([`x${asked.length}`, `yy${asked.length}`])),
      thinker: says(() => "draft"),
      aggregator: says((asked) => `merged ${asked.length}`),
    },
  });
}

const architectures = [
  planAndExecute(),
  rewoo(),
  reflexion(react(), { maxAttempts: 2 }),
  selfRefine(),
  treeOfThoughts({ branches: 2, depth: 2 }),
  graphOfThoughts(),
  deepAgent(),
];

/** Maximum number of calls in flight at the same time. */
const widest = 4;

test.for(architectures.map((architecture) => [architecture.name, architecture] as const))(
  "J1, J6: %s has the same result wherever its worker dies, emits each event once, and repeats only calls in flight",
  async ([, architecture]) => {
    const workload = (world: string[]): Workload => ({
      agents: () => [thinker(architecture, world)],
      input: "What is it?",
      options: { unknownPrice: "ignore" },
    });
    const calmWorld: string[] = [];
    const calm = await runWorkload(workload(calmWorld));
    expect(calm.status).toBe("completed");
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of deathsAt(at)) {
        const world: string[] = [];
        const life = await runWorkload(workload(world), { at, when });
        const { output, status } = life;
        expect({ at, when, output, status, ...told(life.events) }).toEqual({
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

/** The report of the root and the architecture's events. */
function told(events: readonly Event[]) {
  const metadata = events.flatMap((event) =>
    event.type === "task_end" && event.taskId === "t0" ? [event.data.metadata ?? null] : [],
  );
  const notes = events.flatMap((event) => (event.type === "architecture_event" ? [event.data] : []));
  return { metadata, notes };
}
