import { describe, expect, test } from "vitest";
import { openRuntime, tool } from "../../../src/entries/index.ts";
import {
  deepestJson,
  formatAgentId,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type RunResult,
} from "../../../src/kernel/index.ts";

/** Returns a value that is nested this deep, in arrays or in objects. */
function nested(levels: number, inObjects: boolean): JsonValue {
  let value: JsonValue = "core";
  for (let level = 0; level < levels; level++) value = inObjects ? { a: value } : [value];
  return value;
}

const id = formatAgentId({ name: "nester" });
const elsewhere = formatAgentId({ name: "elsewhere" });

type Use = (ctx: RunContext, value: JsonValue) => Promise<unknown>;

/** The calls through which code of a task passes a value to the runtime. */
const entrances: Readonly<Record<string, Use>> = {
  "ctx.tool": (ctx, value) => ctx.tool({ callId: "1", toolName: "take", input: { value } }),
  "ctx.tools": (ctx, value) =>
    ctx.tools([1, 2].map((n) => ({ callId: `${n}`, toolName: "take", input: { value } }))),
  "ctx.step": (ctx, value) => ctx.step("make", async () => value),
  "ctx.spawn": (ctx, value) => ctx.spawn(elsewhere, value),
  "ctx.send": (ctx, value) => ctx.send(elsewhere, value),
  "ctx.ask": (ctx, value) => ctx.ask(elsewhere, value),
  "ctx.continueAsNew": (ctx, value) => ctx.continueAsNew(value),
  "ctx.report": async (ctx, value) => ctx.report({ output: value }),
  "the return value": async (_ctx, value) => value,
};

/** Submits a run that passes the value to the runtime in this way. */
async function resultWith(use: Use, value: JsonValue): Promise<RunResult<JsonValue>> {
  await using runtime = await openRuntime({ store: "memory:" });
  const take = tool({ name: "take", description: "x", inputSchema: { type: "object" }, execute: () => "ok" });
  const run: HostedAgent["run"] = async (ctx) => (await use(ctx, value)) as JsonValue;
  return await (await runtime.submit({ id, tools: [take], run }, null)).result();
}

describe.for([false, true])("J10: values that are nested too deep, in objects: %s", (inObjects) => {
  test.for(Object.entries(entrances))(
    "J10: a run ends with not_json if %s gets a value of 10,000 nested levels",
    async ([, use]) => {
      const { status, error } = await resultWith(use, nested(10_000, inObjects));
      expect([status, error?.code]).toEqual(["failed", "not_json"]);
      expect(error?.message).toMatch(/ is nested deeper than 1000 levels; pass a flatter value/u);
      expect(error?.message.length).toBeLessThan(200);
    },
  );

  test.for(["ctx.tool", "ctx.step", "the return value"])(
    "%s accepts a value of 900 nested levels",
    async (name) => {
      const use = entrances[name] as Use;
      expect((await resultWith(use, nested(deepestJson - 100, inObjects))).status).toBe("completed");
    },
  );

  test("a tool's result of 10,000 nested levels is an error that the model reads", async () => {
    await using runtime = await openRuntime({ store: "memory:" });
    const make = tool({
      name: "make",
      description: "x",
      inputSchema: { type: "object" },
      execute: () => nested(10_000, inObjects),
    });
    const run: HostedAgent["run"] = async (ctx) =>
      (await ctx.tool({ callId: "1", toolName: "make", input: {} })) as unknown as JsonValue;
    const { output } = await (await runtime.submit({ id, tools: [make], run }, null)).result();
    expect(output).toMatchObject({ isError: true });
    expect(JSON.stringify(output)).toContain("the result of the tool is nested deeper than 1000 levels");
  });

  test("submit() and signal() refuse a value of 10,000 nested levels", async () => {
    await using runtime = await openRuntime({ store: "memory:" });
    const value = nested(10_000, inObjects);
    const waiter: HostedAgent = { id, run: (ctx) => ctx.waitForSignal("go") };
    await expect(runtime.submit(waiter, value)).rejects.toMatchObject({ code: "not_json" });
    const run = await runtime.submit(waiter, null);
    for (const sending of [run.signal("go", value), run.steer(value)])
      await expect(sending).rejects.toThrow("is nested deeper than 1000 levels");
    await run.cancel();
  });
});
