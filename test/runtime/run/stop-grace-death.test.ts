import { describe, expect, it } from "vitest";
import { Agent, OrchestratorAgent, tool } from "../../../src/index.ts";
import type { Event, Model } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { live, type Life, type Workload } from "../simulated-crash.ts";

/** What the world outside was asked: calls that are answered, and those that never are. */
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

  get asked(): number {
    return this.answered + this.stuck;
  }

  /** Looks, then calls `next`. */
  script(next: string) {
    return Array.from({ length: 4 }, () => ({ messages }: { readonly messages: readonly unknown[] }) => {
      this.answered++;
      return { toolCalls: [{ name: messages.length > 1 ? next : "look", input: {} }] };
    });
  }
}

/** Once what never ends has begun, and what came before it is stored. */
function cancels(world: World, after: Event["type"]): NonNullable<Workload["outside"]> {
  let told = false;
  return async (handle, events) => {
    if (told || world.stuck === 0 || !events.some(({ type }) => type === after)) return;
    told = true;
    await handle.cancel("enough");
  };
}

const options = { stopGraceMs: 200, prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) } };

const ownCode = "code of its own";
const withLead = "a worker of a lead that has answered";

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
    outside: cancels(world, "tool_execution_end"),
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
      outside: cancels(world, "tool_execution_end"),
    };
  },
  [ownCode]: (world: World): Workload => ({
    agents: () => [
      new Agent({
        name: "scout",
        model: scriptedModel(["It rains."]),
        middleware: [{ agent: async (_context, next) => (await next(), world.never()) }],
      }),
    ],
    input: "Where?",
    options,
    outside: cancels(world, "message_end"),
  }),
  [withLead]: (world: World): Workload => ({
    agents: () => {
      const kid = new Agent({
        name: "kid",
        model: scriptedModel(world.script("see")),
        tools: [world.look, world.see],
      });
      const handsOff = { toolCalls: [{ name: "handoff_kid", input: { task: "look" } }] };
      const script = ({ messages }: { readonly messages: readonly unknown[] }) =>
        messages.length > 1 ? "Nobody knows." : handsOff;
      return [
        new OrchestratorAgent({
          name: "lead",
          model: scriptedModel([script, script, script]),
          subAgents: [{ agent: kid, askTimeoutMs: 1_000 }],
        }),
        kid,
      ];
    },
    input: "Where?",
    options,
  }),
};

describe.each(Object.entries(workloads))("a stop that is ignored by %s", (name, workload) => {
  it("ends alike wherever its worker dies, also in the grace: nothing paid twice, spent and lost right (C2, B3, J6)", async () => {
    const still = new World();
    const calm = await live(workload(still), { asked: () => still.asked });
    expect(calm.status).toBe(name === withLead ? "completed" : "cancelled");
    expect(still.stuck).toBe(1);
    let diedInGrace = 0;
    // The first write is the worker saying that it is there; it has nothing to lose yet.
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of ["before", "after"] as const) {
        const world = new World();
        const life = await live(workload(world), { at, when, asked: () => world.asked });
        const inGrace = wasStopped(life.toldByThen);
        if (inGrace) diedInGrace++;
        expect({ at, when, ...endOf(life) }).toEqual({ at, when, ...endOf(calm) });
        // J6: a call that was in flight may be begun again; C2: but none once the stop is known. What is no call runs again.
        expect(world.stuck).toBeLessThanOrEqual(inGrace && name !== ownCode ? 1 : 2);
        expect(world.answered).toBeLessThanOrEqual(still.answered + 1);
      }
    }
    expect(diedInGrace).toBeGreaterThan(0);
  }, 60_000);
});

/** What must be the same whoever lived to tell it. */
function endOf({ status, output, events, costUsd }: Life) {
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
    // B3: what was spent beside what was lost is what the calm run spends.
    paid: Math.round(((costUsd ?? 0) - lost) * 1e9),
    ends: ends.toSorted(),
    closed: events.filter(({ type }) => type === "agent_end" || type === "settled").map(({ type }) => type),
  };
}

/** The run was told to stop, or its lead had ended, and something of it was still at work. */
function wasStopped(events: readonly Event[]): boolean {
  const types = events.map(({ type }) => type);
  return (types.includes("run_cancel") || types.includes("task_end")) && !types.includes("run_end");
}
