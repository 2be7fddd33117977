import {
  Fault,
  formatAgentId,
  type HostedObject,
  type JsonValue,
  type ObjectCall,
  type RunContext,
} from "../../../kernel/index.ts";
import { casesOf, eventOf, eventsOf, suspended, workflowOf, type EngineHarness } from "./engine-world.ts";

type Handler = (ctx: RunContext, state: number, input: JsonValue) => Promise<JsonValue | void>;

/** The types of the handlers of a counter. */
interface CounterTypes {
  readonly add: { readonly input: (by: number) => void; readonly output: number };
  readonly hold: { readonly input: (by: number) => void; readonly output: number };
  readonly fail: { readonly input: (by: number) => void; readonly output: number };
  readonly recall: { readonly input: (input: undefined) => void; readonly output: JsonValue };
  readonly get: { readonly input: (input: undefined) => void; readonly output: number };
}

/** An object whose state is a number. */
function counterOf(more: Readonly<Record<string, Handler>> = {}): HostedObject<number, CounterTypes> {
  const add: Handler = async (ctx, state, by) => {
    ctx.setObjectState(state + (by as number));
    return state + (by as number);
  };
  const handlers: Readonly<Record<string, Handler>> = {
    add,
    hold: async (ctx, state, by) => {
      ctx.setObjectState(state + (by as number));
      await ctx.waitForSignal("go");
      ctx.setObjectState(state + 2 * (by as number));
      return state + 2 * (by as number);
    },
    fail: async (ctx, state, by) => {
      ctx.setObjectState(state + (by as number));
      await ctx.step("work", async () => null);
      throw new Fault("invalid_argument", "declined");
    },
    recall: async () => null,
    get: async (_ctx, state) => state,
    ...more,
  };
  return {
    id: formatAgentId({ name: "counter" }),
    name: "counter",
    runKind: "workflow",
    handlerNames: Object.keys(handlers),
    readState: async (stored) => (stored ?? 0) as number,
    flowOf: ({ input }) => {
      const { handler, key } = input as unknown as ObjectCall;
      return { object: { name: "counter", key, ...(handler === "get" && { isShared: true }) } };
    },
    run: async (ctx) => {
      const { handler, input } = ctx.input as unknown as ObjectCall;
      const state = ((await ctx.objectState()) ?? 0) as number;
      return handlers[handler]?.(ctx, state, input);
    },
  };
}

/** Cases about objects (L19). */
export function objectCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);
  const refusal = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => "no error",
      ({ code }: Fault) => code,
    );

  declare(
    "L19: the calls of one key of an object run one after another over all workers, and each is applied once",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const counter = counterOf();
      one.register(counter);
      two.register(counter);
      const calls = Array.from({ length: 12 }, (_each, index) =>
        (index % 2 === 0 ? one : two).object(counter, "a").add(1, { id: `call-${index}` }),
      );
      const counts = await Promise.all(calls);
      expect(counts.toSorted((left, right) => left - right)).toEqual(calls.map((_each, index) => index + 1));
      expect(await two.object(counter, "a").add(1, { id: "call-3" })).toBe(counts[3]);
      await expect(one.object(counter, "a").add(2, { id: "call-3" })).rejects.toMatchObject({
        code: "already_exists",
      });
      expect(await one.object(counter, "a").state()).toBe(12);
      expect(await one.object(counter, "b").state()).toBe(0);
    },
  );

  declare(
    "L19: a handler of an object that waits keeps its key; its state is visible, and reads do not wait",
    async (world) => {
      const one = await world.open("one");
      const counter = counterOf();
      const held = await one.object(counter, "a").send.hold(5);
      await suspended(held, "t0");
      const next = await one.object(counter, "a").send.add(1);
      expect(await one.object(counter, "a").state()).toBe(5);
      expect(await one.object(counter, "a").get()).toBe(5);
      expect(await one.object(counter, "b").add(1)).toBe(1);
      const resumed = await world.takeOver(one, held, counterOf());
      await resumed.signal("go", null);
      expect((await resumed.result()).output).toBe(10);
      const two = await world.open("three");
      expect((await (await two.find(next.runId))?.result())?.output).toBe(11);
      const changes = (await eventsOf(resumed)).flatMap((event) =>
        event.type === "state_changed" ? [event.data.state] : [],
      );
      expect(changes).toEqual([5, 10]);
    },
  );

  declare(
    "L19: objectStates() lists the committed states by key, in pages, without a key whose state was cleared",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const clear: Handler = async (ctx) => ctx.setObjectState(undefined);
      const counter = counterOf({ recall: clear });
      one.register(counter);
      two.register(counter);
      for (const key of ["a", "b", "c"]) await one.object(counter, key).add(1);
      await two.object(counter, "b").recall();
      const first = await two.objectStates("counter", { limit: 1 });
      const rest = await two.objectStates("counter", { after: first.next ?? "" });
      const states = [...first.states, ...rest.states].toSorted((x, y) => (x.key < y.key ? -1 : 1));
      expect(states).toEqual([
        { key: "a", state: 1 },
        { key: "c", state: 1 },
      ]);
      expect([first.states.length, rest.next]).toEqual([1, null]);
      expect((await two.objectStates("counter", { key: "b" })).states).toEqual([]);
      expect(await one.object(counter, "b").state()).toBe(0);
      expect(await one.object(counter, "b").add(3)).toBe(3);
    },
  );

  declare(
    "L19: when a handler of an object fails, its last state stays, its key is free, and it cannot be resumed or forked",
    async (world) => {
      const runtime = await world.open();
      const counter = counterOf();
      const failed = await runtime.object(counter, "a").send.fail(3);
      const { status, error } = await failed.result();
      expect([status, error?.code]).toEqual(["failed", "invalid_argument"]);
      expect(await runtime.object(counter, "a").add(1)).toBe(4);
      await expect(failed.resume()).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(failed.topUp({ maxTurns: 1 })).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(failed.fork({ at: 0 })).rejects.toMatchObject({ code: "invalid_argument" });
      const first = await eventOf(failed, "run_end");
      expect(first.data.status).toBe("failed");
    },
  );

  declare(
    "L19: a cancelled call in the queue of an object changes nothing, and a paused call keeps its key until it is resumed",
    async (world) => {
      const runtime = await world.open();
      const counter = counterOf();
      const held = await runtime.object(counter, "a").send.hold(1);
      await suspended(held, "t0");
      const dropped = await runtime.object(counter, "a").send.add(100);
      const last = await runtime.object(counter, "a").send.add(10);
      await dropped.cancel("not needed");
      expect((await dropped.result()).status).toBe("cancelled");
      await held.pause();
      await held.signal("go", null);
      await held.resume();
      expect((await last.result()).output).toBe(12);
    },
  );

  declare(
    "L19: an object refuses a call that waits for a key of its own callers, and accepts a call that is not awaited",
    async (world) => {
      const runtime = await world.open();
      const call = (handler: string, key: string, input: JsonValue): JsonValue => ({ handler, key, input });
      const id = formatAgentId({ name: "counter" });
      const other = workflowOf("other", async (ctx) => {
        const { runId } = await ctx.start(id, call("add", "a", 1));
        return (await ctx.join({ runId })).output;
      });
      const counter = counterOf({
        recall: async (ctx, state) => {
          const own = await refusal(ctx.start(id, call("add", "a", 1)));
          const { runId } = await ctx.start(other.id, null);
          const { failure } = await ctx.join({ runId });
          const free = await ctx.start(id, call("add", "b", 1));
          const { output } = await ctx.join(free);
          await ctx.start(id, call("add", "a", 10), { onParentEnd: "abandon", id: "later" });
          ctx.setObjectState(state + 1);
          return [own as JsonValue, failure?.code ?? null, output];
        },
      });
      runtime.register(other);
      expect(await runtime.object(counter, "a").recall()).toEqual([
        "invalid_argument",
        "invalid_argument",
        1,
      ]);
      expect((await (await runtime.find("run_later"))?.result())?.output).toBe(11);
    },
  );

  declare("L19: resuming a run whose call of an object failed makes the call again", async (world) => {
    const runtime = await world.open();
    let isBroken = true;
    const counter = counterOf({
      fail: async (ctx, state, by) => {
        if (isBroken) throw new Fault("invalid_argument", "declined");
        ctx.setObjectState(state + (by as number));
        return state + (by as number);
      },
    });
    const caller = workflowOf("caller", async (ctx) => {
      const started = await ctx.start(counter.id, { handler: "fail", key: "a", input: 2 });
      await ctx.step("between", async () => null);
      const { output, failure } = await ctx.join(started);
      if (failure !== null) throw new Fault("child_failed", failure.message);
      return output;
    });
    runtime.register(counter);
    const run = await runtime.start(caller, null);
    expect((await run.result()).status).toBe("failed");
    isBroken = false;
    await run.resume();
    const { status, output } = await run.result();
    expect([status, output, await runtime.object(counter, "a").state()]).toEqual(["completed", 2, 2]);
  });

  declare("S6: tenants have separate objects, also under the same key", async (world) => {
    const runtime = await world.open();
    const counter = counterOf();
    const [acme, other] = ["acme", "other"].map((tenantId) => runtime.forTenant({ tenantId }));
    expect(await acme?.object(counter, "a").add(1, { id: "one" })).toBe(1);
    expect(await other?.object(counter, "a").add(2, { id: "one" })).toBe(2);
    expect(await runtime.object(counter, "a").state()).toBe(0);
    expect(await runtime.object(counter, "a", { tenantId: "acme" }).state()).toBe(1);
    expect(await refusal((async () => acme?.object(counter, "a", { tenantId: "other" }).state())())).toBe(
      "invalid_argument",
    );
  });
}
