import {
  FatalError,
  Fault,
  formatRunId,
  type HostedAgent,
  type JsonValue,
  type RunHandle,
} from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventsOf,
  runIn,
  suspended,
  untilLongEnough,
  type EngineHarness,
} from "./engine-world.ts";

/** Returns an agent that publishes a value, handles updates that are numbers, and ends at the first number above 9. */
function counter(handled: number[] = []): HostedAgent {
  return agentOf("counter", async (ctx) => {
    for (let sum = 0; ;) {
      ctx.publish("sum", { sum });
      const update = await ctx.waitForUpdate("add", {
        accept: (value) => {
          if (typeof value !== "number") throw new Fault("invalid_argument", "expected a number");
        },
      });
      if (update === undefined) return null;
      const by = Number(update.value);
      sum = await ctx.step("add", async () => (handled.push(by), sum + by));
      await ctx.answerUpdate("add", update, { status: "completed", value: sum });
      if (by > 9) return sum;
    }
  });
}

/** Cases about published values, updates and signals between runs. */
export function messageCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "E4: read() returns the last committed value in every process, also after the run has ended",
    async (world) => {
      const one = await world.open("one");
      const worker = (): HostedAgent =>
        agentOf("worker", async (ctx) => {
          const state = { done: 0 };
          ctx.publish("progress", state);
          for (; state.done < 3; state.done++) await ctx.step("part", async () => null);
          ctx.publish("progress", state);
          ctx.publish("other", [state.done]);
          state.done = 99;
          await ctx.waitForSignal("go");
          ctx.publish("progress", { done: 4 });
        });
      const run = await one.submit(worker(), null);
      await suspended(run, "t0");
      const other = await world.open("two");
      const seen = await runIn(other, run);
      const before = (await eventsOf(seen)).length;
      expect([await seen.read("progress"), await seen.read("other"), await seen.read("none")]).toEqual([
        { done: 3 },
        [3],
        undefined,
      ]);
      expect((await eventsOf(seen)).length).toBe(before);
      await other.close();
      const resumed = await world.takeOver(one, run, worker());
      await resumed.signal("go");
      await resumed.result();
      expect(await resumed.read("progress")).toEqual({ done: 4 });
      const published = (await eventsOf(resumed)).filter(({ type }) => type === "value_published");
      expect(published.length).toBe(4);
    },
  );

  declare("P1: an update has one reply by its id, also early and after the run has ended", async (world) => {
    const runtime = await world.open();
    const handled: number[] = [];
    const run = await runtime.submit(counter(handled), null);
    const replies = await Promise.all([run.update("add", 5, { id: "a" }), run.update("add", 5, { id: "a" })]);
    expect([replies, handled]).toEqual([[5, 5], [5]]);
    expect(await run.update("add", 10)).toBe(15);
    expect((await run.result()).output).toBe(15);
    expect(await run.update("add", 7, { id: "a" })).toBe(5);
    await expect(run.update("add", 1)).rejects.toMatchObject({ code: "not_found" });
    const events = await eventsOf(run);
    expect(events.filter(({ type }) => type === "update_start").length).toBe(2);
    expect(events.filter(({ type }) => type === "update_end").length).toBe(2);
  });

  declare("update: a refused update changes nothing, and its sender receives the error", async (world) => {
    const runtime = await world.open();
    const handled: number[] = [];
    const run = await runtime.submit(counter(handled), null);
    await expect(run.update("add", "much")).rejects.toMatchObject({
      code: "invalid_argument",
      message: "expected a number",
    });
    expect([await run.update("add", 12), handled]).toEqual([12, [12]]);
  });

  declare("update: the next worker accepts the update and replies to a sender that waits", async (world) => {
    const one = await world.open("one");
    const run = await one.submit(counter(), null);
    expect(await run.update("add", 1)).toBe(1);
    const handled: number[] = [];
    const resumed = await world.takeOver(one, run, counter(handled));
    expect([await resumed.update("add", 11), handled]).toEqual([12, [11]]);
    expect(await resumed.read("sum")).toEqual({ sum: 1 });
  });

  declare("update: a run that ends without a reply rejects the sender with not_found", async (world) => {
    const runtime = await world.open();
    const run = await runtime.submit(
      agentOf("deaf", async (ctx) => (await ctx.waitForSignal("end")) ?? null),
      null,
    );
    const sent = run.update("add", 1, { id: "a" });
    const refused = expect(sent).rejects.toMatchObject({ code: "not_found", details: { updateId: "a" } });
    await suspended(run, "t0");
    await run.signal("end");
    await refused;
  });

  declare(
    "update: the wait for an update ends after its timeout, also after a refused update",
    async (world) => {
      const runtime = await world.open();
      const worker = agentOf("worker", async (ctx) => {
        const accept = (): never => {
          throw new Fault("invalid_argument", "closed");
        };
        return (await ctx.waitForUpdate("add", { timeoutMs: Number(ctx.input), accept })) === undefined;
      });
      await untilLongEnough(300, async (timeoutMs) => {
        const run = await runtime.submit(worker, timeoutMs);
        const refused = await run.update("add", 1).catch((error: unknown) => Fault.from(error));
        expect((await run.result()).output).toBe(true);
        const { code, message } = refused as Fault;
        // The wait was over before the update arrived.
        if (code === "not_found") return false;
        expect(message).toBe("closed");
        return true;
      });
    },
  );

  declare(
    "P1: a run sends a signal to another run with its commit, and a repeated signal id has no effect",
    async (world) => {
      const runtime = await world.open();
      const receiver = agentOf("receiver", async (ctx) => {
        await ctx.waitForSignal("go");
        const values: JsonValue[] = [];
        for (let count = 0; count < 3; count++) values.push((await ctx.waitForSignal("paid")) ?? null);
        return values;
      });
      const target = await runtime.submit(receiver, null);
      const sender = agentOf("sender", async (ctx) => {
        const { runId } = target;
        await ctx.sendSignal(runId, "paid", 1, { id: "event-1" });
        await ctx.sendSignal(runId, "paid", 2, { id: "event-1" });
        await ctx.sendSignal(runId, "paid", 3);
        await ctx.sendSignal(runId, "paid", 3);
        await ctx.sendSignal(runId, "go", null);
        return ctx
          .sendSignal(formatRunId("nowhere"), "paid", 1)
          .catch((error: Fault) => error.code as JsonValue as null);
      });
      await target.signal("paid", 0, { id: "event-1" });
      expect((await (await runtime.submit(sender, null)).result()).output).toBe("not_found");
      expect((await target.result()).output).toEqual([0, 3, 3]);
    },
  );

  declare(
    "S6: a run can send nothing to a run of another tenant or to a run that has ended",
    async (world) => {
      const runtime = await world.open();
      const waits = agentOf("waits", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
      const theirs = await runtime.submit(waits, null, { tenantId: "b" });
      const ours = await runtime.submit(waits, null, { tenantId: "a" });
      const sender = agentOf("sender", async (ctx) => {
        const send = (runId: string): Promise<string> =>
          ctx.sendSignal(runId, "go", 1).then(
            () => "sent",
            (error: Fault) => error.code,
          );
        return [await send(theirs.runId), await send(ours.runId)];
      });
      const first = await runtime.submit(sender, null, { tenantId: "a" });
      expect((await first.result()).output).toEqual(["not_found", "sent"]);
      expect((await ours.result()).output).toBe(1);
      const second = await runtime.submit(sender, null, { tenantId: "a" });
      expect((await second.result()).output).toEqual(["not_found", "not_found"]);
      await theirs.cancel("end");
      await theirs.result();
    },
  );
}

/** Cases about promises that others settle. */
export function promiseCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);
  /**
   * Returns an agent that publishes the ids of two promises, waits for both, and then waits for the first one
   * again.
   */
  const waiter = (): HostedAgent =>
    agentOf("waiter", async (ctx) => {
      const [first, second] = [ctx.newPromise(), ctx.newPromise()];
      await ctx.step("tell", async () => null);
      ctx.publish("ids", [first, second]);
      const value = await ctx.waitForPromise(first);
      const failed = await ctx.waitForPromise(second).catch(({ code, message }: Fault) => [code, message]);
      return [value, failed, await ctx.waitForPromise(first)];
    });
  const idsOf = async (run: RunHandle): Promise<readonly [string, string]> => {
    await suspended(run, "t0");
    return (await run.read("ids")) as unknown as readonly [string, string];
  };

  declare(
    "J2: a durable promise is settled once, by any process, before or after a task waits for it",
    async (world) => {
      const one = await world.open("one");
      const run = await one.submit(waiter(), null);
      const [first, second] = await idsOf(run);
      expect(await one.promise(second).reject(new FatalError("declined"))).toBe(true);
      expect(await one.promise(second).resolve("too late")).toBe(false);
      const resumed = await world.takeOver(one, run, waiter());
      const other = await world.open("three");
      // The workers of a group host the same agents, because each of them may execute the run.
      other.register(waiter());
      expect(await other.promise(first).resolve({ paid: true })).toBe(true);
      expect((await resumed.result()).output).toEqual([
        { paid: true },
        ["fatal", "declined"],
        { paid: true },
      ]);
      await expect(other.promise(first).resolve(1)).rejects.toMatchObject({ code: "not_found" });
    },
  );

  declare("J2: a run settles a durable promise of another run with its commit", async (world) => {
    const runtime = await world.open();
    const run = await runtime.submit(waiter(), null);
    const ids = await idsOf(run);
    const settler = agentOf("settler", async (ctx) => {
      await ctx.settlePromise(ids[0], { status: "resolved", value: 1 });
      await ctx.settlePromise(ids[0], { status: "resolved", value: 2 });
      await ctx.settlePromise(ids[1], { status: "rejected", failure: { code: "fatal", message: "no" } });
    });
    await (await runtime.submit(settler, null)).result();
    expect((await run.result()).output).toEqual([1, ["fatal", "no"], 1]);
  });

  declare("S6: a durable promise of another tenant does not exist", async (world) => {
    const runtime = await world.open();
    const run = await runtime.submit(waiter(), null, { tenantId: "a" });
    const [first, second] = await idsOf(run);
    const theirs = runtime.forTenant({ tenantId: "b" });
    await expect(theirs.promise(first).resolve(1)).rejects.toMatchObject({ code: "not_found" });
    const settler = agentOf("settler", async (ctx) =>
      ctx.settlePromise(first, { status: "resolved", value: 1 }).then(
        () => "settled",
        ({ code }: Fault) => code,
      ),
    );
    const attempt = await runtime.submit(settler, null, { tenantId: "b" });
    expect((await attempt.result()).output).toBe("not_found");
    const ours = runtime.forTenant({ tenantId: "a" });
    await ours.promise(first).resolve(1);
    await ours.promise(second).resolve(2);
    expect((await run.result()).output).toEqual([1, 2, 1]);
    await expect((async () => runtime.promise("order-7"))()).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });

  declare(
    "J5: resume() waits again for a durable promise whose refused value or whose error ended the run",
    async (world) => {
      const worker = (): HostedAgent =>
        agentOf("worker", async (ctx) => {
          const id = ctx.newPromise();
          ctx.publish("ids", [id]);
          const accept = (value: JsonValue): void => {
            if (typeof value !== "number") throw new Fault("invalid_argument", "expected a number");
          };
          const { value } = await ctx.race<JsonValue>({
            promise: async (branch) => branch.waitForPromise(id, { accept }),
            never: async (branch) => (await branch.waitForSignal("never")) ?? null,
          });
          return [value, await ctx.waitForPromise(id, { accept })];
        });
      const one = await world.open("one");
      const run = await one.submit(worker(), null);
      const [id] = await idsOf(run);
      const promise = one.promise(id);
      expect(await promise.resolve("bad")).toBe(true);
      // The first value may have ended the run already.
      const second = await promise.resolve(5).catch(({ code }: Fault) => code);
      expect(second === false || second === "not_found").toBe(true);
      expect((await run.result()).error?.message).toBe("expected a number");
      await run.resume();
      // At once, so that the worker may not have handled the resume yet.
      expect(await promise.reject(new Error("declined"))).toBe(true);
      expect((await run.result()).error?.message).toBe("declined");
      await run.resume();
      const resumed = await world.takeOver(one, run, worker());
      const other = await world.open("three");
      other.register(worker());
      expect(await other.promise(id).resolve(7)).toBe(true);
      expect((await resumed.result()).output).toEqual([7, 7]);
      expect((await eventsOf(resumed)).filter(({ type }) => type === "promise_reopen").length).toBe(2);
    },
  );

  declare(
    "J5: a rejected durable promise ends the run if the code does not handle the error",
    async (world) => {
      const runtime = await world.open();
      const worker = agentOf("worker", async (ctx) => {
        const id = ctx.newPromise();
        ctx.publish("ids", [id]);
        return ctx.waitForPromise(id);
      });
      const run = await runtime.submit(worker, null);
      const [id] = await idsOf(run);
      await runtime.promise(id).reject(new Error("declined"));
      const { status, error } = await run.result();
      expect([status, error?.message]).toEqual(["failed", "declined"]);
      expect((await eventsOf(run)).filter(({ type }) => type === "task_retry")).toEqual([]);
    },
  );
}
