import { describe, expect, test } from "vitest";
import { Agent, END, Parallel, START, Graph } from "../../../../src/entries/index.ts";
import {
  formatAgentId,
  messageText,
  type HostedAgent,
  type Event,
  type ModelRequest,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { runWorkload, type Workload } from "../../../runtime/simulated-crash.ts";
import { eventsOf, openBench, ran, speaker } from "./flow-run.ts";
import { deathsAt } from "../../../effort.ts";

const names = ["a", "b", "c", "d"] as const;

/** Builds a graph with four concurrent agents and a last agent that receives their answers. */
function wide(maxAgents: number, make: (name: string) => HostedAgent): Graph {
  const nodes = Object.fromEntries([...names, "last"].map((name) => [name, make(name)]));
  return new Graph({
    name: "wide",
    nodes,
    edges: [
      ...names.flatMap((name): [string, string][] => [
        [START, name],
        [name, "last"],
      ]),
      ["last", END],
    ],
    spawnBudget: { maxAgents },
  });
}

/** Returns the maximum number of tasks that ran concurrently, including the root task. */
function mostAtWork(events: readonly Event[]): number {
  let [now, most] = [0, 0];
  for (const { type } of events) {
    if (type === "task_start") most = Math.max(most, ++now);
    if (type === "task_end") now--;
  }
  return most;
}

function told(events: readonly Event[], type: Event["type"]): number {
  return events.filter((event) => event.type === type).length;
}

describe("a flow with fewer seats than concurrent tasks", () => {
  test.for([2, 3, 5])(
    "H1, H4: the four concurrent agents of a graph wait for free seats when maxAgents is %i",
    async (maxAgents) => {
      const make = (name: string) => speaker(name, `said by ${name}`).agent;
      const { result, events } = await ran(wide(maxAgents, make), "Go.");
      expect(result).toMatchObject({ status: "completed", output: "said by last" });
      expect(mostAtWork(events)).toBe(maxAgents);
      expect(told(events, "spawn_wait")).toBe(5 - maxAgents);
      expect(told(events, "spawn_refuse")).toBe(0);
    },
  );

  test("H1, H4: the branches of a Parallel flow with one free seat run one after another, and all of them answer", async () => {
    const branches = names.map((name) => speaker(name, name).agent);
    const flow = new Parallel({ name: "panel", branches, spawnBudget: { maxAgents: 2 } });
    const { result, events } = await ran(flow, "Go.");
    expect(result).toMatchObject({ status: "completed", output: "a\n\nb\n\nc\n\nd" });
    expect(mostAtWork(events)).toBe(2);
    const waits = events.flatMap((event) => (event.type === "spawn_wait" ? [event.data] : []));
    expect(waits.map(({ agentId, victim }) => [agentId, victim])).toEqual([
      ["b", null],
      ["c", null],
      ["d", null],
    ]);
    expect(told(events, "seat_grant")).toBe(3);
  });

  test("H4: a flow with a single seat fails at once and says to raise maxAgents, because no seat can become free", async () => {
    const make = (name: string) => speaker(name, name).agent;
    const { result, events } = await ran(wide(1, make), "Go.");
    expect(result.error).toMatchObject({
      code: "child_failed",
      message:
        "a was not spawned: every seat is held by a task that waits for a task without a seat; raise spawnBudget.maxAgents (1 seat)",
      details: { reason: "nobody_leaves" },
    });
    expect(told(events, "spawn_refuse")).toBeGreaterThan(0);
  });

  test("H4: if nested flows would wait for each other forever, the spawns of one flow are refused and the other flow completes", async () => {
    const pair = (name: string) =>
      new Parallel({
        name,
        branches: [1, 2].map((each) => speaker(`${name}${each}`, `${name}${each}`).agent),
      });
    const flow = new Parallel({
      name: "floors",
      branches: [pair("a"), pair("b")],
      spawnBudget: { maxAgents: 3 },
    });
    const { result, events } = await ran(flow, "Go.");
    expect(result).toMatchObject({ status: "completed", output: "a1\n\na2" });
    const refused = events.flatMap((event) => (event.type === "spawn_refuse" ? [event.data] : []));
    expect(refused.map(({ agentId, reason }) => [agentId, reason])).toEqual([
      ["b1", "nobody_leaves"],
      ["b2", "nobody_leaves"],
    ]);
  });

  test("C1: cancelling a flow also ends the tasks that wait for a seat, and they never start", async () => {
    const waiting = Promise.withResolvers<void>();
    const make = (name: string): HostedAgent => ({
      id: formatAgentId({ name }),
      run: async (ctx) => {
        waiting.resolve();
        return (await ctx.waitForSignal("never")) ?? null;
      },
    });
    const runtime = await openBench();
    const handle = await runtime.submit(wide(2, make), "Go.");
    await waiting.promise;
    await handle.cancel("enough");
    expect((await handle.result()).status).toBe("cancelled");
    const events = await eventsOf(handle);
    const ends = events.flatMap((event) => (event.type === "task_end" ? [event.data.status] : []));
    expect(ends).toEqual(Array.from({ length: 5 }, () => "cancelled"));
    await runtime.close();
  });

  test("J5: a flow that failed while tasks waited for a seat completes after resume() and leaves no seat taken", async () => {
    const badKey = { error: Object.assign(new Error("bad key"), { status: 401 }) };
    const make = (name: string) =>
      speaker(name, ...(name === "a" ? [badKey, "said by a"] : [`said by ${name}`])).agent;
    const runtime = await openBench();
    const handle = await runtime.submit(wide(2, make), "Go.");
    expect(await handle.result()).toMatchObject({ status: "failed", error: { code: "child_failed" } });
    await handle.resume();
    expect(await handle.result()).toMatchObject({ status: "completed", output: "said by last" });
    const { headcount } = await handle.snapshot();
    expect(Object.keys(headcount.tasks)).toEqual(["t0"]);
    await runtime.close();
  });

  test("J1, J6, H6: a graph has the same output wherever its worker dies, and never runs more tasks than seats", async () => {
    const workload = (world: string[]): Workload => {
      const make = (name: string): Agent =>
        new Agent({
          name,
          model: scriptedModel(
            Array.from({ length: 20 }, () => ({ messages }: ModelRequest) => {
              world.push(name);
              return `${name} of ${messages.map((message) => messageText(message)).join(" ")}`;
            }),
          ),
        });
      return { agents: () => [wide(3, make)], input: "Go.", options: { unknownPrice: "ignore" } };
    };
    const calm = await runWorkload(workload([]));
    expect(calm.status).toBe("completed");
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of deathsAt(at)) {
        const world: string[] = [];
        const life = await runWorkload(workload(world), { at, when });
        expect({ at, when, status: life.status, output: life.output }).toEqual({
          at,
          when,
          status: "completed",
          output: calm.output,
        });
        expect(mostAtWork(life.events)).toBeLessThanOrEqual(3);
        expect(told(life.events, "task_start")).toBe(6);
        // J6: at most the two model calls that were in flight repeat.
        expect(world.length).toBeLessThanOrEqual(5 + 2);
      }
    }
  });
});

describe("ctx.spawn() without a free seat", () => {
  test("H4: ctx.spawn() is refused by default when every seat is taken, and waits with onFull: wait", async () => {
    const refusals = async (onFull?: "wait"): Promise<number> => {
      const worker: HostedAgent = { id: formatAgentId({ name: "worker" }), run: async () => "done" };
      const lead: HostedAgent = {
        id: formatAgentId({ name: "lead" }),
        subAgents: [worker],
        run: async (ctx) => {
          const options = onFull === undefined ? {} : { onFull };
          const hired = [
            await ctx.spawn(worker.id, null, options),
            await ctx.spawn(worker.id, null, options),
          ];
          await ctx.joinAll(hired.flatMap((each) => (each.kind === "spawned" ? [each.handle] : [])));
          return hired.filter(({ kind }) => kind === "refused").length;
        },
      };
      const runtime = await openBench();
      const handle = await runtime.submit(lead, null, { spawnBudget: { maxAgents: 2 } });
      const { output } = await handle.result();
      await runtime.close();
      return output as number;
    };
    expect(await refusals()).toBe(1);
    expect(await refusals("wait")).toBe(0);
  });
});
