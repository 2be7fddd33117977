import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openRuntime } from "../../src/entries/index.ts";
import { FatalError, object, update, workflow, type WorkflowContext } from "../../src/entries/workflow.ts";
import { withRuntime } from "./with-runtime.ts";

const fails = (): never => {
  throw new FatalError("broken");
};
const leaf = workflow("leaf", { input: z.number() }, async () => fails());
const counter = object("counter", { add: async () => fails() });
const never = new Promise<never>(() => {});

/** Calls of each kind that fail, by the name that errors give them. */
const failing: Readonly<Record<string, (ctx: WorkflowContext) => unknown>> = {
  'ctx.step("work")': (ctx) => ctx.step("work", fails),
  'ctx.step("")': (ctx) => ctx.step("", () => 1),
  'ctx.sleep("soon")': (ctx) => ctx.sleep("soon" as never),
  'ctx.waitForSignal("")': (ctx) => ctx.waitForSignal(""),
  'ctx.handleUpdate("move")': (ctx) => ctx.handleUpdate(update("move"), undefined as never),
  "ctx.sendSignal()": (ctx) => ctx.sendSignal("run_nowhere", "go"),
  'ctx.resolvePromise("p")': (ctx) => ctx.resolvePromise("p", 1),
  'ctx.rejectPromise("p")': (ctx) => ctx.rejectPromise("p", new Error("no")),
  "ctx.promise()": (ctx) =>
    ctx
      .promise()
      .promise.result({} as WorkflowContext)
      .catch(fails),
  'ctx.start("leaf")': (ctx) => ctx.start(leaf, "x" as never),
  'ctx.call("leaf")': (ctx) => ctx.call(leaf, 1),
  'ctx.send("leaf")': (ctx) => ctx.send(leaf, "x" as never),
  'ctx.object("counter")': (ctx) => ctx.object(counter, "k").add(),
  "ctx.parallel()": (ctx) => ctx.parallel({ a: async () => fails() }),
  "ctx.race()": (ctx) => ctx.race({ a: async () => fails() }),
  "ctx.any()": (ctx) => ctx.any({ a: async () => fails() }),
  "ctx.map()": (ctx) => ctx.map("x" as never, undefined as never),
  "ctx.timeout()": (ctx) => ctx.timeout("soon" as never, undefined as never),
  "ctx.uncancellable()": (ctx) => ctx.uncancellable(async () => fails()),
  'ctx.agent("nobody")': (ctx) => ctx.agent({ id: "nobody" } as never, "hello"),
  'ctx.compensate("")': (ctx) => ctx.compensate("", () => null),
  "ctx.continueAsNew()": (ctx) => ctx.continueAsNew(undefined as never),
  "ctx.resource()": (ctx) =>
    ctx.resource(
      async () => fails(),
      async () => undefined,
    ),
  "ctx.approval()": (ctx) => ctx.approval(5 as never),
};

describe("J2: a call of a workflow that is not awaited", () => {
  test.each(Object.keys(failing).filter((name) => name !== "ctx.promise()"))(
    "J2: a call that is not awaited fails the run with journal_ambiguous if the call fails, and not the process: %s",
    (name) =>
      withRuntime(async (runtime) => {
        const unhandled: unknown[] = [];
        const note = (error: unknown): void => void unhandled.push(error);
        process.on("unhandledRejection", note);
        onTestFinished(() => void process.off("unhandledRejection", note));
        const hasty = workflow("hasty", { agents: [leaf, counter] }, async (ctx) => {
          void failing[name]?.(ctx);
          // No call, so that the failure comes before the end of the function.
          for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
          return "end";
        });
        const { status, error } = await (await runtime.start(hasty, null)).result();
        expect([status, error?.code]).toEqual(["failed", "journal_ambiguous"]);
        expect(error?.message).toContain(
          `${name} had failed at the end of the function, and nothing awaited it`,
        );
        expect(unhandled).toEqual([]);
      }),
  );

  test.each<[string, (ctx: WorkflowContext) => unknown]>([
    ['ctx.step("work")', (ctx) => ctx.step("work", () => never)],
    ['ctx.waitForSignal("go")', (ctx) => ctx.waitForSignal("go")],
    ['ctx.sleep("1 hour")', (ctx) => ctx.sleep("1 hour")],
    ["ctx.continueAsNew()", (ctx) => ctx.continueAsNew(1)],
    ["ctx.race()", (ctx) => ctx.race({ a: (branch) => branch.waitForSignal("go") })],
    ["ctx.promise()", (ctx) => ctx.promise().promise.result()],
    ['ctx.call("leaf")', (ctx) => ctx.call(leaf, 1)],
  ])(
    "J2: a call of a workflow that is not awaited fails the run with journal_ambiguous if it is in flight at the end: %s",
    (name, call) =>
      withRuntime(async (runtime) => {
        const hasty = workflow("hasty", { agents: [leaf] }, async (ctx) => {
          void call(ctx);
          return "end";
        });
        const { status, error } = await (await runtime.start(hasty, null)).result();
        expect([status, error?.code]).toEqual(["failed", "journal_ambiguous"]);
        expect(error?.message).toMatch(/ was in flight at the end of the function; await it/u);
        expect(error?.message.startsWith(name)).toBe(true);
      }),
  );

  test("the error of a call names the branch, the item, the handler and the compensation that ended before it", () =>
    withRuntime(async (runtime) => {
      const messageOf = async (work: () => Promise<unknown>): Promise<string> =>
        work().then(
          () => "none",
          (error: Error) => error.message,
        );
      const open = async (ctx: WorkflowContext): Promise<string> => {
        void ctx.waitForSignal("go");
        return "end";
      };
      const branching = workflow("branching", async (ctx) => [
        await messageOf(() => ctx.parallel({ a: open })),
        await messageOf(() => ctx.race({ b: open })),
        await messageOf(() => ctx.timeout("1 hour", open)),
        (await ctx.map([1], (_item, branch) => open(branch))).map((item) =>
          item.status === "rejected" ? item.reason.message : "none",
        )[0] ?? "",
      ]);
      const { output } = await (await runtime.start(branching, null)).result();
      const ends = [
        "branch a of ctx.parallel()",
        "branch b of ctx.race()",
        "the branch of ctx.timeout()",
        "item 0 of ctx.map()",
      ];
      expect(output).toEqual(
        ends.map((end) =>
          expect.stringContaining(`ctx.waitForSignal("go") was in flight at the end of ${end};`),
        ),
      );
      const handling = object("handling", { open: async (ctx) => void ctx.waitForSignal("go") });
      await expect(runtime.object(handling, "k").open()).rejects.toThrow("at the end of the handler;");
    }));

  test("a call that is not awaited may end before the function of a workflow, and its error fails the run if the function throws it", () =>
    withRuntime(async (runtime) => {
      const patient = workflow("patient", async (ctx) => {
        void ctx.now();
        const early = ctx.step("early", () => 1);
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        return [await early, await ctx.step("late", fails).catch(() => "caught")];
      });
      expect((await (await runtime.start(patient, null)).result()).output).toEqual([1, "caught"]);
      const throwing = workflow("throwing", async (ctx) => {
        void ctx.waitForSignal("go");
        return fails();
      });
      const { error } = await (await runtime.start(throwing, null)).result();
      expect([error?.code, error?.message]).toEqual(["fatal", "broken"]);
    }));

  test("continueAsNew() ends the function of a workflow at once: neither catch, finally nor later code runs", () =>
    withRuntime(async (runtime) => {
      const after: string[] = [];
      const again = workflow("again", { input: z.number() }, async (ctx, count) => {
        if (count === 2) return ctx.step("last", () => after.length);
        try {
          await ctx.continueAsNew(count + 1);
        } catch {
          after.push("catch");
        } finally {
          after.push("finally");
        }
        return ctx.step("after", () => -1);
      });
      expect((await (await runtime.start(again, 0)).result()).output).toBe(0);
    }));

  test("resume() repeats an unawaited call once corrected code awaits it, and an unawaited compensation undoes its work", async () => {
    const runtime = await openRuntime({ store: "memory:" });
    onTestFinished(() => runtime.close());
    let isMended = false;
    const undone: string[] = [];
    const mended = workflow("mended", async (ctx) => {
      const call = ctx.step("work", async ({ attempt }) => {
        if (!isMended) throw new FatalError("broken");
        return attempt;
      });
      if (isMended) return call;
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      return null;
    });
    const run = await runtime.start(mended, null);
    expect((await run.result()).error?.code).toBe("journal_ambiguous");
    isMended = true;
    await run.resume();
    expect((await run.result()).output).toBe(1);
    const saga = workflow("saga", async (ctx) => {
      void ctx.compensate("undo", () => void undone.push("undo"));
      return fails();
    });
    await (await runtime.start(saga, null)).result();
    expect(undone).toEqual(["undo"]);
  });
});
