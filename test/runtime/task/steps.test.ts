import { expect, it } from "vitest";
import { Fault, Transcript, userMessage, type Event } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, setUp, settle, simpleTool, text, typesOf } from "../runtime-setup.ts";

it("J1: each kind of step is executed once and returns its value", async () => {
  const { runtime, clock } = await setUp({ random: { next: () => 0.25 } });
  const seen: unknown[] = [];
  const worker = agent("worker", async (ctx) => {
    seen.push(await ctx.now(), await ctx.random(), typeof (await ctx.uuid()));
    return ctx.step("add", async () => 2 + 3);
  });
  const run = await runtime.submit(worker, null);
  const { status, output } = await run.result();
  expect({ status, output }).toEqual({ status: "completed", output: 5 });
  expect(seen).toEqual([clock.now(), 0.25, "string"]);
});

it("ctx.tools executes tools of one reply in parallel and a sequential tool alone, with results in call order", async () => {
  const { runtime } = await setUp();
  const log: string[] = [];
  const traced = (name: string, sequential = false) =>
    simpleTool({
      name,
      sequential,
      execute: async () => {
        log.push(`${name} begins`);
        await settle();
        log.push(`${name} ends`);
        return text(name);
      },
    });
  const tools = [traced("a"), traced("b"), traced("alone", true), traced("c")];
  const worker = agent(
    "worker",
    async (ctx) => {
      const calls = ["a", "b", "alone", "c"].map((toolName) => ({ callId: toolName, toolName, input: {} }));
      const results = await ctx.tools(calls);
      return results.map(({ output }) => (output.type === "text" ? output.text : ""));
    },
    { tools },
  );
  const { output } = await (await runtime.submit(worker, null)).result();
  expect(output).toEqual(["a", "b", "alone", "c"]);
  expect(log.slice(0, 2).toSorted()).toEqual(["a begins", "b begins"]);
  expect(log.indexOf("alone begins")).toBeGreaterThan(log.indexOf("b ends"));
  expect(log.indexOf("c begins")).toBeGreaterThan(log.indexOf("alone ends"));
});

it("J2: ctx.parallel waits for all branches and throws the first fault in declaration order", async () => {
  const { runtime } = await setUp();
  const ended: string[] = [];
  const slow = gate();
  const worker = agent("worker", async (ctx) => {
    try {
      await ctx.parallel({
        one: async (branch) => {
          await slow.promise;
          await branch.step("one", () => Promise.reject(new Error("first declared")));
        },
        two: (branch) => branch.step("two", () => Promise.reject(new Error("first thrown"))),
        three: async (branch) => ended.push(await branch.step("three", async () => "three")),
      });
      return "no fault";
    } catch (error) {
      return (error as Error).message;
    }
  });
  const run = await runtime.submit(worker, null);
  await settle();
  slow.resolve();
  expect((await run.result()).output).toBe("first declared");
  expect(ended).toEqual(["three"]);
});

it("J2, J5: with stopOnFault a fault abandons the other branches at once, and their calls in flight are not recorded", async () => {
  const { runtime } = await setUp();
  const afterwards: string[] = [];
  const bodies: string[] = [];
  let broken = true;
  const worker = agent("worker", async (ctx) => {
    const results = await ctx.parallel(
      {
        slow: async (branch) => {
          try {
            return await branch.step("slow", async ({ signal }) => {
              bodies.push("slow");
              if (!broken) return "slow";
              const stopped = Promise.withResolvers<string>();
              signal.addEventListener("abort", () => stopped.reject(new Error("cut")));
              return stopped.promise;
            });
          } finally {
            if (broken) afterwards.push("given up went on");
          }
        },
        done: (branch) => branch.step("done", async () => (bodies.push("done"), "done")),
        failing: async (branch) => {
          await branch.step("first", async () => "first");
          return branch.step("failing", async () => {
            bodies.push("failing");
            if (broken) throw new Fault("tool_failed", "no luck");
            return "failing";
          });
        },
      },
      { stopOnFault: true },
    );
    return [results.slow, results.done, results.failing];
  });
  const run = await runtime.submit(worker, null);
  const result = await run.result();
  expect(result).toMatchObject({ status: "failed", error: { code: "tool_failed", message: "no luck" } });
  expect(afterwards).toEqual([]);
  broken = false;
  await run.resume();
  expect((await run.result()).output).toEqual(["slow", "done", "failing"]);
  expect(bodies.toSorted()).toEqual(["done", "failing", "failing", "slow", "slow"]);
});

it("ctx.race journals the winning branch, cancels the losing branches and never settles their calls", async () => {
  const { runtime } = await setUp();
  let aborted = false;
  const afterwards: string[] = [];
  const worker = agent("worker", async (ctx) => {
    const { winner, value } = await ctx.race<string>({
      quick: (branch) => branch.step("quick", async () => "here"),
      slow: async (branch) => {
        try {
          await branch.step("slow", ({ signal }) => {
            const stopped = Promise.withResolvers<string>();
            signal.addEventListener("abort", () => {
              aborted = true;
              stopped.reject(signal.reason as Error);
            });
            return stopped.promise;
          });
        } finally {
          afterwards.push("loser went on");
        }
        return "there";
      },
    });
    return `${winner} ${value} ${await ctx.step("after", async () => "after")}`;
  });
  expect((await (await runtime.submit(worker, null)).result()).output).toBe("quick here after");
  expect({ aborted, afterwards }).toEqual({ aborted: true, afterwards: [] });
});

it("J2: a second step in flight in the same scope is refused on the first execution", async () => {
  const { runtime } = await setUp();
  const worker = agent("worker", async (ctx) => {
    const first = ctx.step("first", async () => 1);
    const second = ctx.step("second", async () => 2).catch((error: { code: string }) => error.code);
    return [await first, await second];
  });
  expect((await (await runtime.submit(worker, null)).result()).output).toEqual([1, "journal_ambiguous"]);
});

it("J2: values that are available synchronously may be read together in one scope, also on replay", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  let executions = 0;
  const worker = agent("worker", async (ctx) => {
    executions++;
    const [at, share] = await Promise.all([ctx.now(), ctx.random()]);
    void ctx.now();
    const other = await ctx.random();
    await ctx.waitForSignal("go");
    return [typeof at, typeof share, typeof other];
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(101);
  await run.signal("go", null);
  const { status, output } = await run.result();
  expect({ status, output, executions }).toEqual({
    status: "completed",
    output: ["number", "number", "number"],
    executions: 2,
  });
});

it("J10: a step value that is not JSON is refused on the first execution", async () => {
  const { runtime, errors } = await setUp();
  const worker = agent("worker", async (ctx) => {
    try {
      await ctx.step("odd", async () => new Map() as never);
      return "taken";
    } catch (error) {
      return (error as { code: string }).code;
    }
  });
  expect((await (await runtime.submit(worker, null)).result()).output).toBe("not_json");
  const odd = agent("odd", async () => ({ at: new Date(0) }) as never);
  expect((await (await runtime.submit(odd, null)).result()).error?.code).toBe("not_json");
  expect(errors).toEqual([]);
});

it("J7: a tool's body has its own steps, scoped under the call", async () => {
  const { runtime, store } = await setUp();
  const nested = simpleTool({
    name: "nested",
    execute: async (_input, { ctx }) => text(await ctx.step("inner", async () => "inner")),
  });
  const model = scriptedModel([{ toolCalls: [{ name: "nested", input: {} }] }]);
  const worker = agent(
    "worker",
    async (ctx) => {
      await ctx.llm({ transcript: Transcript.of([userMessage("go")]) });
      await ctx.tool({ callId: "1", toolName: "nested", input: {} });
    },
    { tools: [nested], models: { main: model } },
  );
  const run = await runtime.submit(worker, null);
  await run.result();
  const addresses: string[] = [];
  for await (const { steps = [] } of store.journal.read(run.runId))
    addresses.push(...steps.map(({ address }) => address));
  expect(addresses).toEqual(["0", "0/0/0", "0/0"]);
});

it("E4: an event is committed with the next step of its scope, and remaining events with the end of the task", async () => {
  const { runtime, events } = await setUp();
  const worker = agent("worker", async (ctx) => {
    ctx.emitEvent({ type: "turn_start", data: { turn: 1 } });
    await ctx.step("work", async () => 1);
    ctx.emitEvent({ type: "turn_start", data: { turn: 2 } });
  });
  const run = await runtime.submit(worker, null);
  await run.result();
  const types = typesOf(await events(run.runId)).slice(2);
  const expected = ["turn_start", "step_end", "turn_start", "task_end", "run_end"] satisfies Event["type"][];
  expect(types).toEqual(expected);
});

it("T2: a tool that exceeds its timeout is abandoned, and the model receives an error result", async () => {
  const { runtime, clock } = await setUp();
  let signal: AbortSignal | undefined;
  const stuck = simpleTool({
    name: "stuck",
    timeoutMs: 100,
    execute: (_input, context) => {
      signal = context.signal;
      return new Promise(() => {});
    },
  });
  const worker = agent(
    "worker",
    async (ctx) => {
      const { isError, output } = await ctx.tool({ callId: "1", toolName: "stuck", input: {} });
      return [isError, output.type === "text" ? output.text : ""];
    },
    { tools: [stuck] },
  );
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(101);
  expect((await run.result()).output).toEqual([true, "stuck took longer than 100 ms"]);
  expect(signal?.aborted).toBe(true);
});

it("J2, J7: steps inside a step are not executed again once the outer step is recorded", async () => {
  const { runtime, open } = await setUp({ suspendAfterMs: 0 });
  const ran: string[] = [];
  const worker = agent("worker", async (ctx) => {
    const value = await ctx.step("outer", async (outer) => {
      ran.push("outer");
      const one = await outer.ctx.step("one", async () => (ran.push("one"), 1));
      outer.ctx.emitEvent({ type: "turn_start", data: { turn: 7 } });
      return one + (await outer.ctx.step("two", async () => (ran.push("two"), 2)));
    });
    await ctx.waitForSignal("go");
    return value;
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await runtime.close();
  const second = await open();
  second.register(worker);
  const found = await second.find(run.runId);
  await found?.signal("go");
  expect((await found?.result())?.output).toBe(3);
  expect(ran).toEqual(["outer", "one", "two"]);
});

it("J1, J10, T2: a tool result that is not JSON becomes an error result, and a valid one is frozen", async () => {
  const { runtime } = await setUp();
  const rows = { list: [1] };
  const odd = simpleTool({ name: "odd", execute: async () => new Map() as never });
  const good = simpleTool({
    name: "good",
    execute: async () => ({ output: { type: "json", value: rows }, isError: false }),
  });
  const worker = agent(
    "worker",
    async (ctx) => {
      const { isError, output } = await ctx.tool({ callId: "1", toolName: "odd", input: {} });
      await ctx.tool({ callId: "2", toolName: "good", input: {} });
      return [isError, output.type === "text" ? output.text : "", Object.isFrozen(rows.list)];
    },
    { tools: [odd, good] },
  );
  const { output } = await (await runtime.submit(worker, null)).result();
  expect(output).toEqual([true, expect.stringContaining("the result of tool odd"), true]);
});
