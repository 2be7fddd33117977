import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { MiddlewarePipeline } from "../../src/assembly/middleware.ts";
import { Agent, openRuntime, structuredOutput, type StructuredOutput } from "../../src/entries/index.ts";
import { messageText, Transcript, userMessage } from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../src/testing/index.ts";
import { agent, setUp } from "../runtime/runtime-setup.ts";

const schema = z.object({ town: z.string(), days: z.number() });
const fits = '{"town":"Tours","days":3}';
const usage = { inputTokens: 10, outputTokens: 10 };
const prices = { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-6 }) };

async function ask(script: readonly ScriptStep[], layer: StructuredOutput<unknown>, streaming = false) {
  const { runtime, events } = await setUp({ prices });
  const model = scriptedModel(
    script.map((step) => (typeof step === "string" ? { text: step, usage } : step)),
  );
  const asker = agent(
    "asker",
    async (ctx) => messageText((await ctx.llm({ transcript: Transcript.of([userMessage("plan")]) })).message),
    { models: { main: model }, callPath: new MiddlewarePipeline([layer]).callPath() ?? {} },
  );
  const run = await runtime.submit(asker, null, { streaming, budget: { maxCostUsd: 1 } });
  return { ...(await run.result()), calls: model.calls, events: await events(run.runId) };
}

describe("structured output", () => {
  test("structured output asks for the schema by the means of the provider and leaves an answer that fits unchanged", async () => {
    const chat = structuredOutput({ schema, name: "plan" });
    const { output, calls } = await ask([fits], chat);
    expect(output).toBe(fits);
    expect(calls[0]?.responseFormat).toMatchObject({
      type: "json",
      name: "plan",
      schema: { required: ["town", "days"] },
    });
    const value = await chat.parse(output);
    expectTypeOf(value).toEqualTypeOf<{ town: string; days: number }>();
    expect(value).toEqual({ town: "Tours", days: 3 });
  });

  test("structuredOutput() refuses an invalid JSON Schema before any model call", async () => {
    const { calls, ...result } = await ask(
      [fits],
      structuredOutput({ schema: { type: "wat" }, name: "plan" }),
    );
    expect(result).toMatchObject({
      status: "failed",
      error: {
        code: "invalid_argument",
        message: expect.stringContaining("of the output plan is not a JSON Schema"),
      },
    });
    expect(calls).toHaveLength(0);
  });

  test("B1, J7: structured output asks again with the problems; every call is paid, and the answer that fits is recorded", async () => {
    const chat = structuredOutput({ schema });
    const { output, calls, costUsd, events, turns } = await ask(
      ["Three days in Tours.", '{"town":"Tours"}', fits],
      chat,
    );
    expect(output).toBe(fits);
    expect(calls).toHaveLength(3);
    expect(costUsd).toBeCloseTo(3 * 20e-6, 12);
    expect(turns).toBe(1);
    const [, second, third] = calls.map(({ messages }) => messages.slice(1).map(messageText));
    expect(second?.[0]).toBe("Three days in Tours.");
    expect(second?.[1]).toContain("it is not JSON");
    expect(third?.[0]).toBe('{"town":"Tours"}');
    expect(third?.[1]).toContain("days");
    expect(events.filter(({ type }) => type === "message_end")).toHaveLength(1);
  });

  test("structured output stops after as many repairs as allowed, with all calls paid", async () => {
    const chat = structuredOutput({ schema, maxRepairs: 1 });
    const { status, error: failure, costUsd, calls } = await ask(["no", "no", "never"], chat);
    expect({ status, code: failure?.code, calls: calls.length }).toEqual({
      status: "failed",
      code: "model_format_error",
      calls: 2,
    });
    expect(costUsd).toBeCloseTo(2 * 20e-6, 12);
  });

  test("structured output does not ask again for an answer that was cut at its output limit", async () => {
    const cut = { text: '{"town":"To', stopReason: "length", usage } as const;
    const { error: failure, calls } = await ask([cut, "never"], structuredOutput({ schema }));
    expect(failure?.message).toContain("it is not JSON");
    expect(calls).toHaveLength(1);
  });

  test("structuredOutput() passes tool calls on and reads the value from a Markdown code block", async () => {
    const chat = structuredOutput({ schema });
    const call = { toolCalls: [{ name: "look", input: {} }], usage };
    expect((await ask([call], chat)).calls).toHaveLength(1);
    const fenced = await ask([`\`\`\`json\n${fits}\n\`\`\``], chat, true);
    expect({ output: fenced.output, calls: fenced.calls.length }).toEqual({ output: fits, calls: 1 });
  });

  test("structured output takes a plain JSON Schema, and refuses a value that is not an answer", async () => {
    const chat = structuredOutput({
      schema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const,
    });
    expectTypeOf(await chat.parse('{"n":1}')).toEqualTypeOf<{ readonly n: number }>();
    await expect(chat.parse("hm")).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(chat.parse({ n: "x" })).rejects.toMatchObject({ code: "invalid_argument" });
    expect(() => structuredOutput({ schema, maxRepairs: -1 })).toThrow("maxRepairs");
  });
});

test.for([false, true])(
  "B1: structured output that is cut when the budget ends is reported as cut, not as a value that does not fit (streaming: %s)",
  async (streaming) => {
    const model = scriptedModel([
      { text: '{"town":"Se', stopReason: "length", usage: { inputTokens: 10, outputTokens: 5 } },
      { text: '{"town":"Sens"}', usage: { inputTokens: 10, outputTokens: 9 } },
    ]);
    const town = structuredOutput({ schema: z.object({ town: z.string() }) });
    const scout = new Agent({ name: "scout", model, budget: { maxTokens: 1_200 }, middleware: [town] });
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    const run = await runtime.submit(scout, "Where?", { streaming });
    expect(await run.result()).toMatchObject({ status: "budget_exhausted", output: null });
    await run.topUp({ maxTokens: 100_000 });
    expect(await run.result()).toMatchObject({ status: "completed", output: '{"town":"Sens"}' });
    await runtime.close();
  },
);
