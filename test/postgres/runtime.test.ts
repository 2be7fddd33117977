import { inject, test, expect } from "vitest";
import { Agent, openRuntime, tool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { newSchema } from "./schemas.ts";

test("openRuntime() drives a run with a tool in a PostgreSQL store, and another runtime reads its result", async () => {
  const store = `${inject("postgresUrl")}?schema=${newSchema()}` as `postgres://${string}`;
  const add = tool({
    name: "add",
    description: "Adds two numbers",
    inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
    execute: async (input) => {
      const { a, b } = input as { readonly a: number; readonly b: number };
      return a + b;
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "add", input: { a: 2, b: 3 } }] }, "The sum is 5."]);
  const clerk = new Agent({ name: "clerk", model, tools: [add] });
  await using first = await openRuntime({ store });
  const result = await clerk.invoke("What is 2 + 3?", { runtime: first });
  expect(result).toMatchObject({ status: "completed", output: "The sum is 5." });
  await using second = await openRuntime({ store });
  const run = await second.find(result.runId);
  expect(await run?.result()).toMatchObject({ status: "completed", output: "The sum is 5." });
});
