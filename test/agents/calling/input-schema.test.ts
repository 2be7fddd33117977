import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent } from "../../../src/entries/index.ts";
import { messageText } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const place = z.object({ city: z.string().min(1), nights: z.number().int().max(9).default(1) });
const schema = {
  type: "object",
  properties: { city: { type: "string", minLength: 1 }, nights: { type: "integer", maximum: 9 } },
  required: ["city"],
  additionalProperties: false,
} as const;

describe.each([
  ["a Standard Schema", place],
  ["a JSON Schema", schema],
])("an agent whose input is %s", (_name, input) => {
  test("a run sees a value that matches the input schema as JSON, and so does a run that is sent again", async () => {
    await using runtime = await createRuntime({ unknownPrice: "ignore" });
    const model = scriptedModel(["Booked.", '{"ok":true}', "Again."]);
    const agent = new Agent({ name: "booker", model, input });
    const run = await agent.submit({ value: { city: "Rome" } }, { runtime });
    expect((await run.result()).output).toBe("Booked.");
    expect(model.calls[0]?.messages.map(messageText)).toEqual(['{\n  "city": "Rome"\n}']);
    const output = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } as const;
    expect((await agent.invoke({ value: { city: "Oslo" } }, { runtime, output })).output).toEqual({
      ok: true,
    });
    // A server passes the object itself.
    const direct = await runtime.submit(agent, { city: "Bern", nights: 2 });
    expect((await direct.result()).output).toBe("Again.");
    expect(await runtime.find(direct.runId)).toBeDefined();
  });

  test("an input schema refuses a value that does not match before a run exists, and names the wrong field", async () => {
    await using runtime = await createRuntime({ unknownPrice: "ignore" });
    const agent = new Agent({ name: "booker", model: scriptedModel([]), input });
    const refused = [
      ["Rome", 'expected an object, not "Rome"'],
      [{ nights: 2 }, "city"],
      [{ city: "Rome", nights: 10 }, "nights"],
      [{ prompt: "Rome", value: { city: "Rome" } }, "city"],
    ] as const;
    for (const [value, message] of refused)
      await expect(runtime.submit(agent, value)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining(message),
      });
    expect((await runtime.list()).runs).toHaveLength(0);
  });
});

test("an input schema must describe an object", () => {
  const model = scriptedModel([]);
  expect(() => new Agent({ name: "booker", model, input: { type: "string" } })).toThrow(
    'invalid input of agent booker: expected a schema of an object, not of "string"',
  );
  expect(() => new Agent({ name: "booker", model, input: 5 as never })).toThrow(
    "invalid input 5 of agent booker",
  );
});
