import {
  Fault,
  flowControl,
  type EventData,
  type FlowOptions,
  type HostedWorkflow,
  type JsonValue,
} from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventsOf,
  runIn,
  suspended,
  workflowOf,
  type EngineHarness,
} from "./engine-world.ts";

type Code = Parameters<typeof workflowOf>[1];

/** Returns a workflow whose input is an object with a text `shop`. `readInput` adds the member `currency`. */
function orderOf(
  run: Code,
  more: Partial<HostedWorkflow> = {},
  flow?: FlowOptions,
): HostedWorkflow<JsonValue> {
  const readInput = (input: JsonValue): JsonValue => {
    const { shop } = (input ?? {}) as { readonly shop?: JsonValue };
    if (typeof shop !== "string") throw new Fault("invalid_argument", "shop: expected a text");
    return { shop, currency: "EUR" };
  };
  const flowOf = flow && { flowOf: flowControl("workflow order", "order", flow) };
  return workflowOf("order", run, { readInput, ...flowOf, ...more });
}

const returnInput: Code = async (ctx) => ctx.step("read", async () => ctx.input);

/** Cases about runs that are started by the name of a workflow (L18). */
export function clientCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "L18: a run that is started by name waits for a worker that hosts the workflow, and that worker reads the input once",
    async (world) => {
      const starter = await world.open("starter", { group: "starters" });
      const run = await starter.start("order", { shop: "a" }, { runId: "run_named" });
      await run.signal("go", 1);
      const { status, waitsFor, kind } = await run.summary();
      expect({ status, waitsFor, kind }).toEqual({
        status: "pending",
        waitsFor: ["worker"],
        kind: "workflow",
      });
      let reads = 0;
      const order = orderOf(
        async (ctx) => {
          await ctx.step("first", async () => null);
          return { input: ctx.input, signal: (await ctx.waitForSignal("go")) ?? null };
        },
        {
          readInput: (input) => ({ ...(input as object), reads: ++reads }),
          version: "2",
          budget: { maxTurns: 3 },
          topUp: { maxTurns: 2 },
        },
      );
      const worker = await world.open("worker");
      worker.register(order);
      const { output } = await (await runIn(worker, run)).result();
      expect(output).toEqual({ input: { shop: "a", reads: 1 }, signal: 1 });
      const events = await eventsOf(run);
      expect(events.slice(0, 2).map(({ type }) => type)).toEqual(["run_start", "run_adopt"]);
      expect((await run.topUpLeft()).maxTurns).toBe(2);
      const adopted = events.find(({ type }) => type === "run_adopt")?.data as EventData["run_adopt"];
      expect([adopted.version, adopted.supervision.executionBudget.maxTurns]).toEqual(["2", 3]);
      const again = await starter.start("order", { shop: "a" }, { runId: "run_named" });
      expect(again.runId).toBe(run.runId);
      const other = starter.start("order", { shop: "b" }, { runId: "run_named" });
      expect(await other.catch((error: unknown) => Fault.from(error).code)).toBe("already_exists");
    },
  );

  declare(
    "L18: a run that is started by name fails before any step if the workflow refuses its input, and cannot be resumed",
    async (world) => {
      const worker = await world.open();
      let steps = 0;
      const run = await worker.start("order", { shop: 7 });
      worker.register(orderOf(async (ctx) => ctx.step("step", async () => ++steps)));
      const { status, error } = await run.result();
      expect([status, error?.code, error?.message]).toEqual([
        "failed",
        "invalid_argument",
        "shop: expected a text",
      ]);
      expect(steps).toBe(0);
      expect(await run.resume().catch((fault: unknown) => Fault.from(fault).code)).toBe("invalid_argument");
    },
  );

  declare("L18: an agent refuses a run that was started by its name", async (world) => {
    const worker = await world.open();
    const run = await worker.start("order", null);
    worker.register(agentOf("order", returnInput));
    const { status, error } = await run.result();
    expect([status, error?.code]).toEqual(["failed", "invalid_argument"]);
  });

  declare(
    "L18: the limits of a workflow apply to the runs that are started by its name, with the input that readInput returns",
    async (world) => {
      const worker = await world.open();
      const [first, second, other] = [
        await worker.start("order", { shop: "a" }, { runId: "run_first" }),
        await worker.start("order", { shop: "a" }, { runId: "run_second" }),
        await worker.start("order", { shop: "b" }, { runId: "run_other" }),
      ];
      const started: string[] = [];
      const key = ({ input }: { readonly input: JsonValue }): string => {
        const { shop, currency } = input as { readonly shop: string; readonly currency: string };
        return `${shop} ${currency}`;
      };
      worker.register(
        orderOf(
          async (ctx) => {
            await ctx.step("start", async () => (started.push(ctx.facts.runId), null));
            return (await ctx.waitForSignal("go")) ?? null;
          },
          {},
          { concurrency: { key, limit: 1 } },
        ),
      );
      await other.signal("go", "other");
      expect((await other.result()).output).toBe("other");
      await Promise.race([suspended(first, "t0"), suspended(second, "t0")]);
      const [holder, waiting] = started.includes(first.runId) ? [first, second] : [second, first];
      expect(started.filter((runId) => runId !== other.runId)).toEqual([holder.runId]);
      await waiting.signal("go", 2);
      await holder.signal("go", 1);
      expect((await holder.result()).output).toBe(1);
      expect((await waiting.result()).output).toBe(2);
      expect(started.filter((runId) => runId === waiting.runId).length).toBe(1);
    },
  );

  declare(
    "L18: a run that is started by name can be cancelled, and a run with a later start keeps its time",
    async (world) => {
      const worker = await world.open();
      const startAt = worker.clock.now() + 3_600_000;
      const [cancelled, later] = [
        await worker.start("order", { shop: "a" }),
        await worker.start("order", { shop: "a" }, { startAt }),
      ];
      await cancelled.cancel("no longer needed");
      await later.cancel("not today");
      let starts = 0;
      worker.register(orderOf(async (ctx) => ctx.step("step", async () => ++starts)));
      expect((await cancelled.result()).interruptionReason).toBe("no longer needed");
      expect((await later.result()).interruptionReason).toBe("not today");
      expect(starts).toBe(0);
    },
  );

  declare(
    "L18: cancel() ends a run that was started by name and that no worker hosts, also after a signal",
    async (world) => {
      const runtime = await world.open();
      const [run, later] = [
        await runtime.start("unknown", { orderId: "7" }),
        await runtime.start("unknown", null, { delayMs: 3_600_000 }),
      ];
      await run.signal("paid", 900);
      for (const each of [run, later]) {
        await each.cancel("a wrong name");
        const { status, interruptionReason } = await each.result();
        expect([status, interruptionReason]).toEqual(["cancelled", "a wrong name"]);
      }
      const types = (await eventsOf(run)).map(({ type }) => type);
      expect([types.includes("run_cancel"), types.includes("run_adopt")]).toEqual([true, false]);
    },
  );

  declare(
    "S6: the same run id names three runs: one for each of two tenants and one without a tenant",
    async (world) => {
      const runtime = await world.open();
      const order = orderOf(async (ctx) => (await ctx.waitForSignal("go")) ?? null);
      runtime.register(order);
      const callers = [
        runtime,
        runtime.forTenant({ tenantId: "acme" }),
        runtime.forTenant({ tenantId: "globex" }),
      ];
      const options = { runId: "run_order-7" };
      const ids: string[] = [];
      for (const [index, caller] of callers.entries()) {
        const input = { shop: `shop ${index}` };
        const run = await caller.start("order", input, options);
        const again = await caller.start("order", input, options);
        const byStoredId = await caller.start("order", input, { runId: run.runId });
        expect([again.runId, byStoredId.runId]).toEqual([run.runId, run.runId]);
        await expect(caller.start("order", { shop: "other" }, options)).rejects.toMatchObject({
          code: "already_exists",
        });
        ids.push(run.runId);
      }
      expect(new Set(ids).size).toBe(3);
      for (const [index, caller] of callers.entries()) {
        const found = await caller.find("run_order-7");
        expect(found?.runId).toBe(ids[index]);
        await found?.signal("go", index);
        expect((await found?.result())?.output).toBe(index);
      }
      const [, acme] = callers;
      expect(await acme?.find(ids[2] ?? "")).toBe(undefined);
    },
  );

  declare(
    "J9: a worker with a pinned workflow executes only runs by name that name its version",
    async (world) => {
      const worker = await world.open("one", { versionPolicy: "pin" });
      const [run, of1] = [
        await worker.start("order", { shop: "a" }, { version: "2" }),
        await worker.start("order", { shop: "a" }, { version: "1" }),
      ];
      worker.register(orderOf(returnInput, { version: "2" }));
      expect((await run.result()).output).toEqual({ shop: "a", currency: "EUR" });
      expect((await of1.summary()).status).toBe("pending");
    },
  );
}
