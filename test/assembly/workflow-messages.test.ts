import { describe, expect, test } from "vitest";
import { z } from "zod";
import { FatalError, object, query, signal, update, workflow } from "../../src/entries/workflow.ts";
import { withRuntime } from "./with-runtime.ts";

describe("mistakes in messages of a workflow", () => {
  const paid = signal("paid", z.number());
  const done = query("done", z.object({ parts: z.number() }));
  const move = update("move");

  test("each method for messages of a workflow refuses a message of another kind, and names the kind of the message", () =>
    withRuntime(async (runtime) => {
      const flow = workflow("kinds", async (ctx) => {
        const texts: string[] = [];
        const note = ({ message }: Error): void => void texts.push(message);
        await ctx.waitForSignal(done as never).catch(note);
        await ctx.waitForSignal(move as never).catch(note);
        await ctx.sendSignal("run_a", done as never, null as never).catch(note);
        try {
          ctx.publish(paid as never, 5);
        } catch (error) {
          note(error as Error);
        }
        return texts;
      });
      const run = await runtime.start(flow, null);
      const { output } = await run.result();
      expect(output).toEqual([
        expect.stringMatching(
          /^invalid signal a query of ctx\.waitForSignal\(\): expected a name or a signal/u,
        ),
        expect.stringMatching(/^invalid signal an update of ctx\.waitForSignal\(\)/u),
        expect.stringMatching(/^invalid signal a query of ctx\.sendSignal\(\)/u),
        expect.stringMatching(/^invalid query a signal of ctx\.publish\(\): expected a name or a query/u),
      ]);
      await expect(run.signal(done as never, null as never)).rejects.toThrow("invalid signal a query");
      await expect(run.read(paid as never)).rejects.toThrow("invalid query a signal of read()");
      await expect(run.update(paid as never, 5 as never)).rejects.toThrow("invalid update a signal");
    }));

  test("publish() refuses a value that the schema of the query refuses, and publishes nothing", () =>
    withRuntime(async (runtime) => {
      const flow = workflow("published", async (ctx) => {
        ctx.publish(done, { parts: 1 });
        try {
          ctx.publish(done, { parts: "two" } as never);
        } catch (error) {
          return (error as Error).message;
        }
        return "accepted";
      });
      const run = await runtime.start(flow, null);
      expect((await run.result()).output).toMatch(/^invalid value of query done: parts /u);
      expect(await run.read(done)).toEqual({ parts: 1 });
    }));

  test("a query value that an asynchronous schema refuses fails the function of the workflow at its end", () =>
    withRuntime(async (runtime) => {
      const slow = query(
        "slow",
        z.string().refine(async (text) => text !== "wrong", "is wrong"),
      );
      const flow = workflow("slowly", async (ctx, text) => {
        ctx.publish(slow, text as string);
        return "ended";
      });
      const results = await Promise.all(
        ["right", "wrong"].map(async (text) => (await runtime.start(flow, text)).result()),
      );
      expect(results.map(({ output, error }) => [output, error?.message ?? null])).toEqual([
        ["ended", null],
        [null, expect.stringMatching(/^invalid value of query slow: is wrong/u)],
      ]);
    }));

  test("an update whose validate returns false is refused, and the workflow continues to wait", () =>
    withRuntime(async (runtime) => {
      const flow = workflow("choosy", async (ctx) => {
        const handled = await ctx.handleUpdate(move, async () => null, { validate: (to) => to !== "away" });
        return handled?.value ?? null;
      });
      const run = await runtime.start(flow, null);
      await expect(run.update(move, "away")).rejects.toMatchObject({
        code: "update_refused",
        message: expect.stringContaining('ctx.handleUpdate("move") refused the value by returning false'),
      });
      await run.update(move, "home");
      expect((await run.result()).output).toBe("home");
    }));
});

describe("messages of a workflow", () => {
  const rename = update("rename", {
    input: z.object({ to: z.string().min(1) }),
    output: z.string().toUpperCase(),
  });
  const progress = query("progress", z.object({ done: z.number() }));

  test("handleUpdate() refuses an update by schema and by validate, replies with a handler's error, and continues", () =>
    withRuntime(async (runtime) => {
      const named = workflow("named", async (ctx) => {
        const taken = "taken";
        const validate = ({ to }: { to: string }): void => {
          if (to === taken) throw new Error("the name is taken");
        };
        const handler = async ({ to }: { to: string }): Promise<string> => {
          if (to === "broken") throw new FatalError("no such name");
          return ctx.step("rename", () => to);
        };
        const failed = await ctx.handleUpdate(rename, handler, { validate });
        const completed = await ctx.handleUpdate(rename, handler, { validate });
        const late = await ctx.handleUpdate(rename, handler, { timeoutMs: 1 });
        return [failed?.status ?? null, completed?.status ?? null, late ?? null];
      });
      const run = await runtime.start(named, null);
      await expect(run.update(rename, { to: 5 } as never)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringMatching(/^invalid value of update rename: to /u),
      });
      await expect(run.update("rename", { to: "" })).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(run.update(rename, { to: "taken" })).rejects.toMatchObject({
        code: "update_refused",
        message: "the name is taken",
      });
      await expect(run.update(rename, { to: "broken" })).rejects.toMatchObject({
        code: "fatal",
        message: "no such name",
      });
      expect(await run.update(rename, { to: "anna" })).toBe("ANNA");
      expect((await run.result()).output).toEqual(["failed", "completed", null]);
    }));

  test("J5: resume() waits again for a signal and for a durable promise whose values their schemas have refused", () =>
    withRuntime(async (runtime) => {
      const paid = signal(
        "paid",
        z.number().transform((cents) => cents / 100),
      );
      const order = workflow("order", async (ctx) => {
        const euros = await ctx.waitForSignal(paid);
        const { id, promise } = ctx.promise(z.object({ ok: z.boolean() }));
        ctx.publish("promise", id);
        const { ok } = await promise.result();
        return { euros: euros ?? null, ok };
      });
      const run = await runtime.start(order, null);
      await expect(run.signal("", 5)).rejects.toThrow('invalid signal "" of signal(): expected a name');
      await run.signal("paid", "much");
      expect((await run.result()).error?.message).toMatch(/^invalid value of signal paid: /u);
      await run.resume();
      await run.signal(paid, 500);
      await expect.poll(() => run.read("promise")).toBeDefined();
      const promise = runtime.promise((await run.read("promise")) as string);
      await promise.resolve("yes");
      expect((await run.result()).error?.message).toMatch(/^invalid value of promise: /u);
      await run.resume();
      expect(await promise.resolve({ ok: true })).toBe(true);
      expect((await run.result()).output).toEqual({ euros: 5, ok: true });
    }));

  test("awaiting a durable promise waits for its value, like result(), and throws if the promise is rejected", () =>
    withRuntime(async (runtime) => {
      const waiting = workflow("waiting", async (ctx) => {
        const [first, second] = [ctx.promise(z.number()), ctx.promise()];
        ctx.publish("ids", [first.id, second.id]);
        await ctx.step("tell", () => null);
        const sum = (await first.promise) + 1;
        try {
          await second.promise;
        } catch (error) {
          return [sum, (error as Error).message];
        }
        return [sum];
      });
      const run = await runtime.start(waiting, null);
      await expect.poll(() => run.read("ids")).toBeDefined();
      const [first = "", second = ""] = (await run.read("ids")) as string[];
      await runtime.promise(first).resolve(1);
      await runtime.promise(second).reject(new Error("declined"));
      expect((await run.result()).output).toEqual([2, "declined"]);
    }));

  test("read() applies the schema of the query, and a signal reaches another workflow", () =>
    withRuntime(async (runtime) => {
      const paid = signal("paid", z.object({ cents: z.number() }));
      const receiver = workflow("receiver", async (ctx) => {
        ctx.publish(progress, { done: 1 });
        const payment = await ctx.waitForSignal(paid);
        ctx.publish("progress", "done");
        return payment?.cents ?? null;
      });
      const target = await runtime.start(receiver, null);
      const sender = workflow("sender", async (ctx) => {
        await ctx.sendSignal(target.runId, paid, { cents: 5 }, { id: "a" });
        return ctx.sendSignal(target, paid, { cents: "6" } as never).then(
          () => "sent",
          (error: Error) => error.message,
        );
      });
      expect(await sender.run(null, { runtime })).toMatch(/^invalid value of signal paid: cents /u);
      expect((await target.result()).output).toBe(5);
      await expect(target.read(progress)).rejects.toMatchObject({ code: "invalid_argument" });
      expect(await target.read("progress")).toBe("done");
    }));

  test("promise.result() applies the schema in the scope that it is given, and a workflow can settle promises", () =>
    withRuntime(async (runtime) => {
      const waiting = workflow("waiting", async (ctx) => {
        const first = ctx.promise(z.object({ cents: z.number() }));
        const second = ctx.promise(z.string());
        ctx.publish("ids", [first.id, second.id]);
        const { left, right } = await ctx.parallel({
          left: async (branch) => (await first.promise.result(branch)).cents,
          right: (branch) => second.promise.result(branch).catch((error: Error) => error.message),
        });
        const wrong = await second.promise.result().catch((error: Error) => error.message);
        return [
          left,
          right,
          wrong,
          await first.promise.result({} as never).catch((error: Error) => error.message),
        ];
      });
      const run = await runtime.start(waiting, null);
      let ids: readonly string[] = [];
      for await (const event of run.events({ types: ["value_published"] })) {
        if (event.type === "value_published") ids = event.data.value as string[];
        break;
      }
      const settler = workflow("settler", async (ctx) => {
        await ctx.resolvePromise(ids[0] ?? "", { cents: 5 });
        await ctx.resolvePromise(ids[1] ?? "", 6);
        return null;
      });
      await settler.run(null, { runtime });
      const refused = expect.stringMatching(/^invalid value of promise: /u);
      expect((await run.result()).output).toEqual([
        5,
        refused,
        refused,
        expect.stringContaining("result() of a promise"),
      ]);
      expect(() => runtime.promise("order-7")).toThrow("use the id that ctx.promise() returned");
    }));

  test("wrong arguments of signals, queries, updates and promises are refused with a text that says what to use", () =>
    withRuntime(async (runtime) => {
      expect(() => update("")).toThrow('use update("changeAddress", { input, output })');
      expect(() => update("a", { in: z.string() } as never)).toThrow("in");
      const wrong = workflow("wrong", async (ctx) => {
        const texts: string[] = [];
        const note = (error: unknown): void => void texts.push((error as Error).message);
        try {
          ctx.publish("", 1);
        } catch (error) {
          note(error);
        }
        await ctx.handleUpdate("rename" as never, async () => null).catch(note);
        await ctx.handleUpdate(rename, null as never).catch(note);
        await ctx.sendSignal("nowhere", "paid").catch(note);
        return texts;
      });
      const texts = await wrong.run(null, { runtime });
      expect(texts).toEqual([
        expect.stringContaining("ctx.publish()"),
        expect.stringContaining('use update("name", { input, output })'),
        expect.stringContaining("expected a function"),
        expect.stringContaining("nowhere"),
      ]);
    }));
});

test("ctx.waitForSignal() refuses an empty name, which no sender can use", async () => {
  await withRuntime(async (runtime) => {
    const waiting = workflow("waiting", async (ctx) => (await ctx.waitForSignal("")) ?? null);
    const { error } = await (await runtime.start(waiting, null)).result();
    expect(error?.message).toContain("ctx.waitForSignal()");
  });
});

test("a workflow and an object describe the signals and updates that they declare", () => {
  const paid = signal("paid", z.object({ cents: z.number() }));
  const move = update("move", { input: z.string().min(2) });
  const described = { signals: [paid], updates: [move, update("stop")] };
  const cart = object("cart", described, { add: async () => null });
  for (const { signals, updates } of [workflow("order", described, async () => null), cart]) {
    expect(signals.map(({ name, schema }) => [name, schema])).toEqual([
      ["paid", expect.objectContaining({ properties: { cents: { type: "number" } }, required: ["cents"] })],
    ]);
    expect(updates.map(({ name, schema }) => [name, schema])).toEqual([
      ["move", expect.objectContaining({ type: "string", minLength: 2 })],
      ["stop", undefined],
    ]);
  }
});

test("a workflow refuses a message of the wrong kind, two messages of one name, and a value that is no list", () => {
  const paid = signal("paid", z.number());
  const declare = (options: object) => () => workflow("order", options, async () => null);
  const use = 'use signals: [signal("paid", schema)]';
  expect(declare({ signals: paid })).toThrow(use);
  for (const wrong of ["paid", null, update("paid", { input: z.number() }), query("paid", z.number())])
    expect(declare({ signals: [wrong] })).toThrow(
      /^invalid entry .+ of signals of workflow order: expected what signal\(\) returns; use /u,
    );
  expect(declare({ updates: [paid] })).toThrow(
    /of updates of workflow order: expected what update\(\) returns/u,
  );
  expect(declare({ signals: [paid, paid] })).toThrow(
    'invalid signals of workflow order: two of them have the name "paid"; remove one of them',
  );
});
