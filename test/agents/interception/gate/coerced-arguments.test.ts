import { expect, test } from "vitest";
import { Agent, openRuntime, permissions, tool } from "../../../../src/entries/index.ts";
import type { Event, JsonValue } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";

test("T3: a permission rule sees the coerced arguments that the tool receives, however the model wrote them", async () => {
  const paid: number[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    inputSchema: { type: "object", properties: { usd: { type: "number" } }, required: ["usd"] } as const,
    execute: ({ usd }) => {
      paid.push(usd);
      return `paid ${usd}`;
    },
  });
  const judged: JsonValue[] = [];
  const inputs: JsonValue[] = [{ usd: 900 }, { usd: "900" }, '{"usd":"900"}', '{"usd":5}'];
  const agent = new Agent({
    name: "clerk",
    model: scriptedModel([{ toolCalls: inputs.map((input) => ({ name: "pay", input })) }, "Done."]),
    tools: [pay],
    permissions: permissions({
      deny: [
        {
          tool: "pay",
          when: (input) => {
            judged.push(input as JsonValue);
            return (input as { usd: number }).usd === 900;
          },
        },
      ],
    }),
  });
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const run = await runtime.submit(agent, "Pay.");
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  await runtime.close();
  expect(judged).toEqual([{ usd: 900 }, { usd: 900 }, { usd: 900 }, { usd: 5 }]);
  expect(paid).toEqual([5]);
  const started = events.flatMap((event) =>
    event.type === "tool_execution_start" ? [event.data.input] : [],
  );
  expect(started).toEqual(inputs);
});
