import { describe, expect, test } from "vitest";
import {
  Agent,
  END,
  memoryStore,
  openRuntime,
  Parallel,
  Sequential,
  sha256,
  START,
  tool,
  Graph,
  type NodeFunction,
} from "../../../../src/entries/index.ts";
import {
  formatAgentId,
  Fault,
  type HostedAgent,
  type RunHandle,
  type TaskId,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { eventsOf, diamond, mark, openBench, ran, speaker, toldBy } from "./flow-run.ts";
import { until } from "../../../runtime/runtime-setup.ts";
import { runWorkload, type Workload } from "../../../runtime/simulated-crash.ts";
import { company, worker } from "../../company.ts";
import { findRun } from "../../../runtime/find-run.ts";

describe("failure, cancellation and budget of a graph", () => {
  const failing = (fail: NodeFunction, other: HostedAgent | NodeFunction) =>
    new Graph({
      name: "w",
      nodes: { first: mark("first"), fail, other, after: mark("after") },
      edges: [
        [START, "first"],
        ["first", "fail"],
        ["first", "other"],
        ["fail", "after"],
        ["other", "after"],
        ["after", END],
      ],
    });

  test("a failing node of a graph cancels its running siblings and stops the graph with its fault and the output so far", async () => {
    const begun = Promise.withResolvers<void>();
    let stopped = false;
    const waiting: NodeFunction = (_input, { signal }) => {
      begun.resolve();
      return new Promise<never>((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          stopped = true;
          reject(signal.reason as Error);
        });
      });
    };
    const fail: NodeFunction = async () => {
      await begun.promise;
      throw new Fault("tool_failed", "no luck");
    };
    const { result, events } = await ran(failing(fail, waiting), "x");
    expect(result).toMatchObject({
      status: "failed",
      output: "x|first",
      error: { code: "tool_failed", message: "no luck" },
    });
    expect(stopped).toBe(true);
    expect(toldBy(events).slice(-2)).toEqual(["fail failed", "end failed"]);
  });

  test("a failing node of a graph cancels a running agent, and resume() continues that agent where it stopped", async () => {
    const begun = Promise.withResolvers<void>();
    const steps: string[] = [];
    const patient: HostedAgent = {
      id: formatAgentId({ name: "patient" }),
      run: async (ctx) => {
        await ctx.step("before", async () => (steps.push("before"), 1));
        begun.resolve();
        return (await ctx.waitForSignal("go")) ?? null;
      },
    };
    let broken = true;
    const fail: NodeFunction = async () => {
      await begun.promise;
      if (broken) throw new Fault("tool_failed", "no luck");
      return "mended";
    };
    const runtime = await openBench();
    const handle = await runtime.submit(failing(fail, patient), "x");
    expect(await handle.result()).toMatchObject({ status: "failed", error: { code: "tool_failed" } });
    const ends = (await eventsOf(handle)).filter(
      ({ type, taskId }) => type === "task_end" && taskId === "t1",
    );
    expect(ends).toMatchObject([{ data: { status: "cancelled" } }]);
    broken = false;
    await handle.resume();
    await handle.signal("go", "gone", await taskOf(handle, "patient"));
    expect((await handle.result()).output).toBe('["mended","gone"]|after');
    expect(steps).toEqual(["before"]);
    await runtime.close();
  });

  test("B5: an agent that fails or exhausts its budget stops its graph with child_failed or budget_exhausted", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const { result } = await ran(failing(mark("fail"), speaker("broken", { error }).agent), "x");
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "child_failed", details: { worker: "other", status: "failed" } },
    });
    const poor = new Agent({ name: "poor", model: scriptedModel([]), budget: { maxTurns: 0 } });
    expect((await ran(failing(mark("fail"), poor), "x")).result.status).toBe("budget_exhausted");
  });

  test("topUp() continues a graph at the node where the budget ran out", async () => {
    const [one, two] = [speaker("one", "1"), speaker("two", "2")];
    const flow = new Graph({
      name: "w",
      nodes: { one: one.agent, two: two.agent },
      edges: [
        [START, "one"],
        ["one", "two"],
        ["two", END],
      ],
      budget: { maxTurns: 1 },
    });
    const runtime = await openBench();
    const handle = await runtime.submit(flow, "x");
    expect(await handle.result()).toMatchObject({ status: "budget_exhausted", output: "1" });
    await handle.topUp({ maxTurns: 1 });
    expect(await handle.result()).toMatchObject({ status: "completed", output: "2", turns: 2 });
    expect([one.model.calls.length, two.model.calls.length]).toEqual([1, 1]);
    await runtime.close();
  });

  test("C1, C2: cancelling a graph cancels its running agent, and no further node starts", async () => {
    const begun = Promise.withResolvers<void>();
    let after = 0;
    const patient: HostedAgent = {
      id: formatAgentId({ name: "patient" }),
      run: async (ctx) => {
        begun.resolve();
        return (await ctx.waitForSignal("never")) ?? null;
      },
    };
    const flow = new Graph({
      name: "w",
      nodes: { one: mark("one"), patient, after: () => ++after },
      edges: [
        [START, "one"],
        ["one", "patient"],
        ["patient", "after"],
        ["after", END],
      ],
    });
    const runtime = await openBench();
    const handle = await runtime.submit(flow, "x");
    await begun.promise;
    await handle.cancel("enough");
    expect(await handle.result()).toMatchObject({ status: "cancelled", output: "x|one" });
    expect(after).toBe(0);
    expect(toldBy(await eventsOf(handle)).slice(-2)).toEqual(["patient cancelled", "end cancelled"]);
    await runtime.close();
  });
});

describe("stopping a graph while functions and agents run", () => {
  const looks = (name: string) => ({ text: `${name} looks`, toolCalls: [{ name: "look", input: {} }] });
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    execute: () => "seen",
  });
  const allAtOnce = (nodes: Readonly<Record<string, HostedAgent | NodeFunction>>) =>
    new Graph({
      name: "w",
      nodes,
      edges: Object.keys(nodes).flatMap((node) => [[START, node] as const, [node, END] as const]),
    });
  /**
   * Returns a node that rejects with its own error when its signal aborts, and returns at once on a later
   * visit.
   */
  const obedient = () => {
    const begun = Promise.withResolvers<void>();
    let times = 0;
    const node: NodeFunction = (_input, { signal }) => {
      if (++times > 1) return "gone on";
      begun.resolve();
      return new Promise<never>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("told to leave")));
      });
    };
    return { node, begun: begun.promise };
  };

  test.each([
    ["cancelled", "cancelled"],
    ["stopped by its deadline", "deadline_exceeded"],
  ] as const)(
    "B5: when a graph is %s, its output has the agent's text and every node gets an end event",
    async (_how, status) => {
      const { runtime, ended, clock } = await company();
      const [one, two] = [obedient(), obedient()];
      const script = [looks("a"), { text: "late", delayMs: 60_000 }];
      const { agent: a, model } = worker("a", script, { tools: [look] }, { clock });
      const deadline = status === "cancelled" ? {} : { budget: { deadlineMs: 1_000 } };
      const run = await runtime.submit(allAtOnce({ one: one.node, a, two: two.node }), "x", deadline);
      await Promise.all([one.begun, two.begun, until(() => model.calls.length === 2)]);
      if (status === "cancelled") await run.cancel("enough");
      else await clock.advance(1_500);
      const { result, events } = await ended(run);
      expect(result).toMatchObject({ status, output: "a looks" });
      const ends = toldBy(events).slice(-4);
      expect(ends.toSorted()).toEqual([`a ${status}`, `end ${status}`, `one ${status}`, `two ${status}`]);
    },
  );

  test.each([
    [["a", "b"], "of a"],
    [["b", "a"], "of a"],
    [["b", "next", "a"], "of next"],
  ] as const)(
    "the output of a stopped graph depends on the order of its nodes, not on the order in which they finish: %j",
    async (order, output) => {
      const gates = {
        a: Promise.withResolvers<string>(),
        b: Promise.withResolvers<string>(),
        next: Promise.withResolvers<string>(),
      };
      const flow = new Graph({
        name: "w",
        nodes: {
          last: () => "late",
          a: () => gates.a.promise,
          b: () => gates.b.promise,
          next: () => gates.next.promise,
          waits: () => new Promise<never>(() => {}),
        },
        edges: [
          [START, "a"],
          [START, "b"],
          [START, "waits"],
          ["b", "next"],
          ["a", "last"],
          ["next", "last"],
          ["waits", "last"],
          ["last", END],
        ],
      });
      const { runtime, ended, clock } = await company({ stopGraceMs: 100 });
      const run = await runtime.submit(flow, "x");
      for (const node of order) {
        gates[node].resolve(`of ${node}`);
        for await (const event of run.events())
          if (event.type === "flow_step_end" && event.data.step === node) break;
      }
      await run.cancel("enough");
      await clock.advance(100);
      expect((await ended(run)).result).toMatchObject({ status: "cancelled", output });
    },
  );

  test("J5: function nodes of a graph that were cancelled start again after resume()", async () => {
    const [one, two] = [obedient(), obedient()];
    const runtime = await openBench();
    const run = await runtime.submit(allAtOnce({ one: one.node, two: two.node }), "x");
    await Promise.all([one.begun, two.begun]);
    await run.cancel("enough");
    expect(await run.result()).toMatchObject({ status: "cancelled" });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: "completed", output: "gone on\n\ngone on" });
    await runtime.close();
  });

  test("a graph that is cancelled while a router chooses ends as cancelled, together with its running agent", async () => {
    const { runtime, ended, clock } = await company();
    const script = [looks("a"), { text: "late", delayMs: 60_000 }];
    const { agent: a, model } = worker("a", script, { tools: [look] }, { clock });
    const choosing = Promise.withResolvers<void>();
    const chosen = Promise.withResolvers<void>();
    const flow = new Graph({
      name: "w",
      nodes: { a, quick: () => "", after: mark("after") },
      edges: [
        [START, "a"],
        [START, "quick"],
        ["a", END],
        ["after", END],
      ],
      routers: {
        quick: {
          to: ["after", END],
          choose: async () => {
            choosing.resolve();
            await chosen.promise;
            throw new Error("cannot choose");
          },
        },
      },
    });
    const run = await runtime.submit(flow, "x");
    await Promise.all([choosing.promise, until(() => model.calls.length === 2)]);
    await run.cancel("enough");
    chosen.resolve();
    const { result, events } = await ended(run);
    expect(result.status).toBe("cancelled");
    expect(toldBy(events)).toContain("a cancelled");
  });

  test("an agent's answer stays the output of a cancelled graph wherever the worker dies", async () => {
    const b: HostedAgent = {
      id: formatAgentId({ name: "b" }),
      run: async (ctx) => {
        ctx.report({ output: "b looks" });
        return (await ctx.waitForSignal("never")) ?? null;
      },
    };
    const workload = (): Workload => {
      const a = speaker("a", "a said", "a said").agent;
      let told = false;
      return {
        agents: () => [allAtOnce({ a, b }), a, b],
        input: "x",
        options: { unknownPrice: "ignore" },
        interact: async (handle, events) => {
          if (told || !events.some(({ type, agentId }) => type === "task_end" && agentId === "a")) return;
          told = true;
          await handle.cancel("enough");
        },
      };
    };
    const { writes } = await runWorkload(workload());
    for (let at = 3; at <= writes; at++)
      for (const when of ["before", "after"] as const) {
        const { status, output, events } = await runWorkload(workload(), { at, when });
        expect({ at, when, status, output }).toEqual({ at, when, status: "cancelled", output: "a said" });
        expect(toldBy(events)).not.toContain("a cancelled");
      }
  });
});

describe("restart and nesting of a graph", () => {
  test("J1: another process resumes the recorded visits of a graph, in whatever order they finish", async () => {
    const store = memoryStore({ hash: sha256 });
    const done: string[] = [];
    const wait = (name: string): HostedAgent => ({
      id: formatAgentId({ name }),
      run: async (ctx) => (await ctx.waitForSignal("go")) ?? null,
    });
    const flow = (): Graph =>
      new Graph({
        name: "w",
        nodes: {
          a: (input) => (done.push("a"), input),
          b: wait("b"),
          c: wait("c"),
          d: (input) => (done.push("d"), JSON.stringify(input)),
        },
        edges: diamond.edges,
      });
    const one = await openRuntime({ store, unknownPrice: "ignore" });
    let handle = await one.submit(flow(), "x");
    for await (const event of handle.events())
      if (event.type === "task_suspend" && event.taskId === "t0") break;
    await one.close();
    const two = await openRuntime({ store, unknownPrice: "ignore" });
    two.register(flow());
    handle = await findRun(two, handle);
    await handle.signal("go", "from c", await taskOf(handle, "c"));
    for await (const event of handle.events())
      if (event.type === "flow_step_end" && event.data.step === "c") break;
    await two.close();
    const three = await openRuntime({ store, unknownPrice: "ignore" });
    three.register(flow());
    handle = await findRun(three, handle);
    await handle.signal("go", "from b", await taskOf(handle, "b"));
    expect((await handle.result()).output).toBe('["from b","from c"]');
    expect(done).toEqual(["a", "d"]);
    expect(toldBy(await eventsOf(handle)).filter((line) => line === "a completed")).toHaveLength(1);
    await three.close();
  });

  test("a graph nests in flows, and flows nest in a graph", async () => {
    const inner = new Graph({ ...diamond, name: "inner" });
    const pair = new Parallel({ name: "pair", branches: [speaker("p", "P").agent, speaker("q", "Q").agent] });
    const outer = new Graph({
      name: "outer",
      nodes: { inner, pair },
      edges: [
        [START, "inner"],
        ["inner", "pair"],
        ["pair", END],
      ],
    });
    const { result } = await ran(new Sequential({ name: "s", steps: [outer] }), "x");
    expect(result.output).toBe("P\n\nQ");
  });
});

/** Returns the id of the first task of the agent. */
async function taskOf(handle: RunHandle, agentId: string): Promise<TaskId> {
  for await (const event of handle.events({ types: ["task_start"] }))
    if (event.type === "task_start" && event.agentId === agentId) return event.taskId;
  throw new Error(`no task of ${agentId}`);
}
