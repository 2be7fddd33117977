import { describe, expect, it } from "vitest";
import { Agent, OrchestratorAgent, tool } from "../../../src/entries/index.ts";
import type { Event, Model } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { runWorkload, type WorkloadResult, type Workload } from "../simulated-crash.ts";

/** Counts the calls of the agents to the outside: calls that are answered, and calls that never are. */
class World {
  answered = 0;
  stuck = 0;

  readonly never = (): Promise<never> => {
    this.stuck++;
    return new Promise(() => {});
  };

  readonly look = tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    execute: () => {
      this.answered++;
      return "rain";
    },
  });

  readonly see = tool({
    name: "see",
    description: "Sees",
    inputSchema: { type: "object" },
    execute: this.never,
  });

  get calls(): number {
    return this.answered + this.stuck;
  }

  /** Script of a model that calls `look` first and then `next`. */
  script(next: string) {
    return Array.from({ length: 4 }, () => ({ messages }: { readonly messages: readonly unknown[] }) => {
      this.answered++;
      return { toolCalls: [{ name: messages.length > 1 ? next : "look", input: {} }] };
    });
  }
}

/** Cancels the run once the call that never ends is in flight and an event of type `after` is stored. */
function cancelOnce(world: World, after: Event["type"]): NonNullable<Workload["interact"]> {
  let isCancelled = false;
  return async (handle, events) => {
    if (isCancelled || world.stuck === 0 || !events.some(({ type }) => type === after)) return;
    isCancelled = true;
    await handle.cancel("enough");
  };
}

const options = { stopGraceMs: 200, prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) } };

const middlewareCode = "middleware code";
const childOfEndedParent = "a child whose parent has ended";

const workloads = {
  "a tool": (world: World): Workload => ({
    agents: () => [
      new Agent({
        name: "scout",
        model: scriptedModel(world.script("see")),
        tools: [world.look, world.see],
      }),
    ],
    input: "Where?",
    options,
    interact: cancelOnce(world, "tool_execution_end"),
  }),
  "a model": (world: World): Workload => {
    const script = scriptedModel(world.script("look"));
    const model: Model = {
      provider: "own",
      modelId: "own",
      stream: (...args) => script.stream(...args),
      generate: (request, more) =>
        request.messages.length > 1 ? world.never() : script.generate(request, more),
    };
    return {
      agents: () => [new Agent({ name: "scout", model, tools: [world.look] })],
      input: "Where?",
      options,
      interact: cancelOnce(world, "tool_execution_end"),
    };
  },
  [middlewareCode]: (world: World): Workload => ({
    agents: () => [
      new Agent({
        name: "scout",
        model: scriptedModel(["It rains."]),
        middleware: [{ agent: async (_context, next) => (await next(), world.never()) }],
      }),
    ],
    input: "Where?",
    options,
    interact: cancelOnce(world, "message_end"),
  }),
  [childOfEndedParent]: (world: World): Workload => ({
    agents: () => {
      const child = new Agent({
        name: "child",
        model: scriptedModel(world.script("see")),
        tools: [world.look, world.see],
      });
      const handsOff = { toolCalls: [{ name: "handoff_child", input: { task: "look" } }] };
      const script = ({ messages }: { readonly messages: readonly unknown[] }) =>
        messages.length > 1 ? "Unknown." : handsOff;
      return [
        new OrchestratorAgent({
          name: "lead",
          model: scriptedModel([script, script, script]),
          subAgents: [{ agent: child, askTimeoutMs: 1_000 }],
        }),
        child,
      ];
    },
    input: "Where?",
    options,
  }),
};

describe.each(Object.entries(workloads))(
  "a cancelled run whose code ignores the cancellation: %s",
  (name, workload) => {
    it("C2, B3, J6: a cancelled run has the same outcome wherever its worker crashes, and pays for no recorded call again", async () => {
      const calmWorld = new World();
      const calm = await runWorkload(workload(calmWorld), { countCalls: () => calmWorld.calls });
      expect(calm.status).toBe(name === childOfEndedParent ? "completed" : "cancelled");
      expect(calmWorld.stuck).toBe(1);
      let crashesInGrace = 0;
      // Write 1 registers the worker, which has no run yet.
      for (let at = 2; at <= calm.writes; at++) {
        for (const when of ["before", "after"] as const) {
          const world = new World();
          const life = await runWorkload(workload(world), { at, when, countCalls: () => world.calls });
          const inGrace = isStopping(life.eventsAtCrash);
          if (inGrace) crashesInGrace++;
          expect({ at, when, ...endOf(life) }).toEqual({ at, when, ...endOf(calm) });
          // J6: a call in flight at the crash may start again. C2: no call starts once the cancellation is stored. Middleware code is not a
          // call, so it runs again in either case.
          expect(world.stuck).toBeLessThanOrEqual(inGrace && name !== middlewareCode ? 1 : 2);
          expect(world.answered).toBeLessThanOrEqual(calmWorld.answered + 1);
        }
      }
      expect(crashesInGrace).toBeGreaterThan(0);
    });
  },
);

/** The parts of a result that must be the same in every run of the workload. */
function endOf({ status, output, events, costUsd }: WorkloadResult) {
  const lost = events.reduce(
    (sum, event) => sum + (event.type === "budget_lost" ? (event.data.costUsd ?? 0) : 0),
    0,
  );
  const ends = events.flatMap((event) =>
    event.type === "task_end" || event.type === "run_end"
      ? [`${event.type} ${event.taskId} ${event.data.status}`]
      : [],
  );
  return {
    status,
    output,
    gaps: events.filter(({ seq }, index) => seq !== index),
    // B3: without the unreported charges, every run costs the same.
    paid: Math.round(((costUsd ?? 0) - lost) * 1e9),
    ends: ends.toSorted(),
    closed: events.filter(({ type }) => type === "agent_end" || type === "settled").map(({ type }) => type),
  };
}

/** Whether the run was cancelled, or the parent had ended, while a task was still running. */
function isStopping(events: readonly Event[]): boolean {
  const types = events.map(({ type }) => type);
  return (types.includes("run_cancel") || types.includes("task_end")) && !types.includes("run_end");
}
