import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { memoryStore, openRuntime } from "../../src/entries/index.ts";
import { FatalError, handler, object, shared, workflow } from "../../src/entries/workflow.ts";
import type { JsonValue } from "../../src/kernel/index.ts";
import type { ObjectContext } from "../../src/entries/workflow.ts";
import { withRuntime } from "./with-runtime.ts";

const counter = object(
  "counter",
  { state: z.object({ count: z.number() }).default({ count: 0 }) },
  {
    add: async (ctx, by: number) => {
      ctx.setState({ count: ctx.state.count + by });
      return ctx.state.count;
    },
    whole: handler({ input: z.number().int(), output: z.string() }, async (ctx, by) => {
      ctx.setState({ count: ctx.state.count + by });
      return `${ctx.key}: ${ctx.state.count}`;
    }),
    reset: async (ctx) => ctx.clearState(),
    get: shared(async (ctx) => ctx.state.count),
    wrong: async (ctx) => ctx.setState({ count: "many" as unknown as number }),
    write: shared(async (ctx) =>
      (ctx as unknown as { setState(state: unknown): void }).setState({ count: 1 }),
    ),
    inStep: async (ctx) => ctx.step("body", () => ctx.setState({ count: 7 }), { retry: false }),
    undo: async (ctx) => {
      await ctx.compensate("undo", () => ctx.setState({ count: -1 }), { retry: false });
      throw new FatalError("no");
    },
  },
);

test("L19: handlers of an object change the state of a key, in the order of their calls", async () => {
  await withRuntime(async (runtime) => {
    const visits = runtime.object(counter, "visits");
    expect(await visits.state()).toEqual({ count: 0 });
    expect(await Promise.all(Array.from({ length: 20 }, () => visits.add(1)))).toEqual(
      Array.from({ length: 20 }, (_each, index) => index + 1),
    );
    expect(await visits.whole(2)).toBe("visits: 22");
    expect([await visits.get(), await visits.state()]).toEqual([22, { count: 22 }]);
    await visits.reset();
    expect(await visits.state()).toEqual({ count: 0 });
  });
});

test("L17: a handler that calls its own key with its own input is refused, and the error names the key that it holds", async () => {
  await withRuntime(async (runtime) => {
    const loop: ReturnType<typeof object<{ readonly add: (ctx: ObjectContext) => Promise<JsonValue> }>> =
      object("loop", {
        add: async (ctx) => ctx.object(loop, ctx.key).add(),
      });
    await expect(runtime.object(loop, "a").add()).rejects.toThrow(
      'the call would wait forever: key "a" of object loop is held',
    );
  });
});

test("calling an unknown handler of an object names the known ones; awaiting or printing an object calls no handler", async () => {
  await withRuntime(async (runtime) => {
    const visits = runtime.object(counter, "visits") as unknown as {
      [name: string]: () => Promise<unknown>;
    } & { readonly send: Record<string, () => Promise<unknown>> };
    const names = "expected add, whole, reset, get, wrong, write, inStep, undo";
    expect(() => visits["unknown"]?.()).toThrow(
      `unknown handler "unknown" of object counter: ${names}; use runtime.object(counter, key).add(input)`,
    );
    expect(() => visits.send["state"]?.()).toThrow("use runtime.object(counter, key).send.add(input)");
    expect(await Promise.resolve(visits)).toBe(visits);
    expect([JSON.stringify(visits), `${inspect(visits).length > 0}`]).toEqual(['{"send":{}}', "true"]);
    expect("unknown" in visits).toBe(false);
    const caller = workflow("caller", { agents: [counter] }, async (ctx) => {
      const calls = ctx.object(counter, "visits") as unknown as Record<string, () => Promise<null>>;
      return calls["unknown"]?.() ?? null;
    });
    const { status, error } = await (await runtime.start(caller, null)).result();
    expect([status, error?.code, error?.message]).toEqual([
      "failed",
      "invalid_argument",
      `unknown handler "unknown" of object counter: ${names}; use ctx.object(counter, key).add(input)`,
    ]);
  });
});

test("L19: a workflow calls an object, takes a handle to a call, and sends a call that it does not await", async () => {
  await withRuntime(async (runtime) => {
    const caller = workflow("caller", { agents: [counter] }, async (ctx) => {
      const visits = ctx.object(counter, "visits");
      const first = await visits.add(1);
      const second = await visits.start.add(1, { id: "second" });
      const sent = await visits.send.add(5, { delayMs: 1 });
      return { first, second: await second.result(), sent };
    });
    const { first, second, sent } = await caller.run(null, { runtime });
    expect([first, second]).toEqual([1, 2]);
    expect((await (await runtime.find(sent))?.result())?.output).toBe(7);
    expect(await runtime.object(counter, "visits").add(1, { id: "second" })).toBe(2);
  });
});

describe("wrong input to an object", () => {
  test("a wrong input, key, handler, option or object is refused by name, and no run exists", async () => {
    await withRuntime(async (runtime) => {
      const visits = runtime.object(counter, "visits");
      await expect(visits.whole(1.5)).rejects.toThrow("the input of whole() of object counter");
      expect(() => runtime.object(counter, "")).toThrow('invalid key "" of object counter');
      expect(() => runtime.object(counter, "ä".repeat(200))).toThrow("of object counter: expected a text");
      expect(() => runtime.object({} as never, "a")).toThrow("of object(): expected an object");
      await expect(visits.add(1, { ids: "a" } as never)).rejects.toThrow("ids");
      const call = { handler: "gone", key: "visits", input: null };
      await expect(runtime.start(counter, call)).rejects.toThrow("expected one of add, whole");
      expect((await runtime.list()).runs).toEqual([]);
    });
  });

  test("a handler that breaks a rule of objects fails with an error that names the rule, and frees its key", async () => {
    await withRuntime(async (runtime) => {
      const visits = runtime.object(counter, "visits");
      await expect(visits.wrong()).rejects.toThrow("does not match the schema of object counter");
      await expect(visits.write()).rejects.toThrow("shared handler of object counter");
      await expect(visits.inStep()).rejects.toThrow(
        "ctx.setState() was called while step body was in flight",
      );
      await expect(visits.undo()).rejects.toThrow("no");
      expect(await visits.add(1)).toBe(1);
    });
  });

  test("a state of an object above the limit is refused, and the key keeps its earlier state", async () => {
    await withRuntime(async (runtime) => {
      const notes = object(
        "notes",
        { state: z.string().default("") },
        { write: async (ctx, text: string) => ctx.setState(text) },
      );
      await runtime.object(notes, "a").write("short");
      await expect(runtime.object(notes, "a").write("x".repeat(65_536))).rejects.toThrow("too large");
      expect(await runtime.object(notes, "a").state()).toBe("short");
    });
  });

  test("an object is refused if it has no default state, no handlers or a reserved name", () => {
    const state = z.object({ count: z.number() });
    expect(() => object("a", { state }, { add: async () => 1 })).toThrow("has no default");
    expect(() => object("a", { state: { type: "number" } as const }, { add: async () => 1 })).toThrow(
      "has no default",
    );
    expect(() => object("a", {}, {})).toThrow("invalid handlers of object a");
    expect(() => object("a", {}, { send: async () => 1 })).toThrow('invalid handler "send" of object a');
    expect(() => object("a", {}, { add: 1 as never })).toThrow("invalid handler add of object a");
    expect(() => object("a", { states: 1 } as never, { add: async () => 1 })).toThrow("object a");
    expect(() => counter.asTool()).toThrow("object counter cannot be a tool");
  });
});

test("L19: an object state that the schema of a later version refuses fails its readers, and a handler may replace it", async () => {
  const store = memoryStore();
  const before = await openRuntime({ store });
  await before.object(counter, "visits").add(3);
  await before.close();
  const later = object(
    "counter",
    {
      state: {
        type: "object",
        properties: { total: { type: "number" } },
        required: ["total"],
        default: { total: 0 },
      } as const,
    },
    {
      get: shared(async (ctx) => ctx.state.total),
      repair: async (ctx, total: number) => ctx.setState({ total }),
    },
  );
  const after = await openRuntime({ store });
  const visits = after.object(later, "visits");
  await expect(visits.state()).rejects.toThrow("does not match the schema of object counter");
  await expect(visits.get()).rejects.toThrow("does not match the schema of object counter");
  await visits.repair(4);
  expect(await visits.get()).toBe(4);
  await after.close();
});
