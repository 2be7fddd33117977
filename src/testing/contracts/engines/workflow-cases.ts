import { Fault, formatRunId, type HostedWorkflow, type JsonValue } from "../../../kernel/index.ts";
import { agentOf, casesOf, runIn, suspended, type EngineHarness } from "./engine-world.ts";

type Code = Parameters<typeof agentOf>[1];

/** A workflow whose input is an object with a number `cents`. `readInput` adds the member `currency`. */
function workflowOf(name: string, run: Code, more: Partial<HostedWorkflow> = {}): HostedWorkflow<JsonValue> {
  const readInput = (input: JsonValue): JsonValue => {
    const { cents } = (input ?? {}) as { readonly cents?: JsonValue };
    if (typeof cents !== "number") throw new Fault("invalid_argument", "cents: expected a number");
    return { cents, currency: "EUR" };
  };
  return { ...agentOf(name, run), name, readInput, runKind: "workflow", ...more };
}

/** Cases about durable functions: start, input, session and repeated ids. */
export function workflowCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare("workflow: start() stores what readInput returns, and the run has kind workflow", async (world) => {
    const runtime = await world.open();
    const order = workflowOf("order", async (ctx) => ctx.step("price", async () => ctx.input));
    const run = await runtime.start(order, { cents: 5 });
    expect((await run.result()).output).toEqual({ cents: 5, currency: "EUR" });
    const { runs } = await runtime.list({ kind: "workflow" });
    expect(runs.map(({ runId, agentId, kind }) => ({ runId, agentId, kind }))).toEqual([
      { runId: run.runId, agentId: order.id, kind: "workflow" },
    ]);
    expect(await runtime.sessions.get(run.sessionId)).toBeUndefined();
  });

  declare("workflow: an input that readInput refuses leaves no run", async (world) => {
    const runtime = await world.open();
    const order = workflowOf("order", async () => null);
    await expect(runtime.start(order, { cents: "5" })).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await runtime.list()).runs).toEqual([]);
  });

  declare("workflow: a repeated runId returns the run, and is refused with another input", async (world) => {
    const runtime = await world.open();
    let executions = 0;
    const order = workflowOf("order", async (ctx) => ctx.step("count", async () => ++executions));
    const runId = formatRunId("order-7");
    const [first, second] = [
      await runtime.start(order, { cents: 5 }, { runId }),
      await runtime.start(order, { cents: 5 }, { runId }),
    ];
    expect([(await first.result()).output, (await second.result()).output, executions]).toEqual([1, 1, 1]);
    await expect(runtime.start(order, { cents: 6 }, { runId })).rejects.toMatchObject({
      code: "already_exists",
      details: { runId },
    });
  });

  declare("workflow: the next worker continues a workflow and repeats no recorded step", async (world) => {
    const steps: string[] = [];
    const order = (): HostedWorkflow<JsonValue> =>
      workflowOf("order", async (ctx) => {
        await ctx.step("reserve", async () => (steps.push("reserve"), null));
        const paid = await ctx.waitForSignal("paid");
        return ctx.step("ship", async () => (steps.push("ship"), paid ?? null));
      });
    const one = await world.open("one");
    const run = await one.start(order(), { cents: 5 });
    await suspended(await runIn(one, run), "t0");
    const resumed = await world.takeOver(one, await runIn(one, run), order());
    await resumed.signal("paid", 5);
    expect([(await resumed.result()).output, steps]).toEqual([5, ["reserve", "ship"]]);
  });

  declare(
    "workflow: the input of a child task is read by its readInput, and refused input is a fault",
    async (world) => {
      const runtime = await world.open();
      const child = workflowOf("child", async (ctx) => ctx.input);
      const parent = agentOf(
        "parent",
        async (ctx) => {
          const refused = await ctx.spawn(child.id, null).catch((error: Fault) => error.code);
          const spawned = await ctx.spawn(child.id, { cents: 1 });
          const output = spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : null;
          return [refused as string, output];
        },
        { subAgents: [child] },
      );
      const { output } = await (await runtime.submit(parent, null)).result();
      expect(output).toEqual(["invalid_argument", { cents: 1, currency: "EUR" }]);
    },
  );

  declare("workflow: a session, steering and follow-ups are refused", async (world) => {
    const runtime = await world.open();
    const order = workflowOf("order", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    await expect(runtime.submit(order, { cents: 5 }, { sessionId: "session_a" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    const run = await runtime.start(order, { cents: 5 });
    await expect(run.steer("more")).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(run.followUp("more")).rejects.toMatchObject({ code: "invalid_argument" });
    await run.cancel("enough");
    const { status, interruptionReason } = await run.result();
    expect([status, interruptionReason]).toEqual(["cancelled", "enough"]);
  });

  declare("workflow: a fork continues after the shared steps", async (world) => {
    const runtime = await world.open();
    const steps: string[] = [];
    const order = workflowOf("order", async (ctx) => {
      await ctx.step("reserve", async () => (steps.push("reserve"), null));
      return ctx.step("ship", async () => (steps.push("ship"), "shipped"));
    });
    const run = await runtime.start(order, { cents: 5 });
    await run.result();
    const [, reserved] = await stepEnds(await runIn(runtime, run));
    const fork = await run.fork({ at: (reserved ?? 0) - 1 });
    expect([(await fork.result()).output, steps]).toEqual(["shipped", ["reserve", "ship", "ship"]]);
    expect((await runtime.list({ kind: "workflow" })).runs.length).toBe(2);
  });
}

async function stepEnds(run: Awaited<ReturnType<typeof runIn>>): Promise<readonly number[]> {
  const seqs: number[] = [];
  for await (const event of run.events({ types: ["step_end"], follow: false }))
    if ("seq" in event) seqs.push(event.seq);
  return seqs;
}
