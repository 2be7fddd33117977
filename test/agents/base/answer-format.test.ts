import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { openRuntime } from "../../../src/entries/index.ts";
import { messageText, userMessage } from "../../../src/kernel/index.ts";
import { looks, scout } from "../scout.ts";

describe("structured output of an agent", () => {
  const schema = z.object({ town: z.string(), days: z.number() });

  test("invoke() with an output schema returns a typed value", async () => {
    const { agent, model } = scout([looks, '{"town":"Sens","days":3}']);
    const result = await agent.invoke("Where, how long?", { output: schema });
    if (result.status !== "completed") throw new Error(result.status);
    expectTypeOf(result.output).toEqualTypeOf<{ town: string; days: number }>();
    expect(result.output).toEqual({ town: "Sens", days: 3 });
    expect(model.calls[0]?.responseFormat).toMatchObject({ type: "json" });
  });

  test("an answer that does not fit the schema is requested again with the errors, at most twice", async () => {
    const { agent, model } = scout([
      "three days",
      '{"town":"Sens"}',
      '```json\n{"town":"Sens","days":3}\n```',
    ]);
    const result = await agent.invoke("Where?", { output: schema });
    expect(result).toMatchObject({ status: "completed", output: { town: "Sens", days: 3 }, turns: 3 });
    expect(messageText(model.calls[2]?.messages.at(-1) ?? userMessage(""))).toContain("days");
    const stubborn = scout(["no", "no", "no", "never asked"]);
    expect(await stubborn.agent.invoke("Where?", { output: schema })).toMatchObject({
      status: "failed",
      error: { code: "model_format_error" },
    });
    expect(stubborn.model.calls).toHaveLength(3);
  });

  test.each([
    ["that is invalid", { type: "wat" }, /is not a JSON Schema: .*type/u],
    ["with an invalid part", { properties: { a: { minLength: -1 } } }, /is not a JSON Schema/u],
    [
      "that cannot be expressed as JSON Schema",
      z.object({ day: z.date() }),
      /\(zod\) cannot be written as JSON Schema: Date/u,
    ],
  ] as const)(
    "invoke() and stream() refuse a schema %s before any model call",
    async (_what, output, message) => {
      const { agent, model } = scout(["{}"]);
      const refused = { code: "invalid_argument", message: expect.stringMatching(message) };
      await expect(agent.invoke("Where?", { output })).rejects.toMatchObject(refused);
      await expect(async () => agent.stream("Where?", { output }).result()).rejects.toMatchObject(refused);
      expect(model.calls).toHaveLength(0);
    },
  );

  test("a run that is submitted with an invalid schema fails before any model call", async () => {
    const runtime = await openRuntime();
    const { agent, model } = scout(["{}"]);
    const run = await runtime.submit(agent, { prompt: "Where?", output: { type: "wat" } });
    expect(await run.result()).toMatchObject({
      status: "failed",
      turns: 0,
      error: { code: "invalid_argument" },
    });
    expect(model.calls).toHaveLength(0);
    await runtime.close();
  });

  test("the output of a run with an output schema is text if the run does not complete", async () => {
    const { agent } = scout([looks, looks], { maxTurns: 1 });
    const result = await agent.invoke("Where?", { output: schema });
    expect(result).toMatchObject({
      status: "max_turns",
      output: "",
      interruptionReason: "max_turns_exceeded",
    });
  });
});
