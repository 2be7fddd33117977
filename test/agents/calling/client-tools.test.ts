import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import type { ClientTool, RunChanges } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const weather: ClientTool = {
  name: "weather",
  description: "Returns the weather of a city.",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const asks: ScriptStep = { toolCalls: [{ name: "weather", input: { city: "Blois" } }] };

function clerk(script: readonly ScriptStep[]) {
  const model = scriptedModel(script);
  return { model, agent: new Agent({ name: "clerk", model, instructions: "Be brief." }) };
}

function toolNames(model: { readonly calls: readonly { readonly tools?: readonly { name: string }[] }[] }) {
  return model.calls.map(({ tools = [] }) => tools.map(({ name }) => name));
}

describe("clientTools", () => {
  test.each(twoStores)(
    "a call of a tool that the submission brings along waits for the caller's result, also in the process that resumes the run, on the %s store, and no later run has the tool",
    async (_name, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open() });
      const { agent } = clerk([asks]);
      const started = await agent.submit("Weather?", {
        runtime: first,
        changes: { clientTools: [weather] },
      });
      const [asked] = (await started.untilPersonIsNeeded()) ?? [];
      expect(asked).toMatchObject({ kind: "client_tool", toolName: "weather", input: { city: "Blois" } });
      await first.close();

      await using second = await openRuntime({ store: await open() });
      const { agent: again, model } = clerk(["It rains.", "Yes."]);
      second.register(again);
      const run = await second.find(started.runId);
      await run?.toolResult(asked?.approvalId ?? "", "rain");
      expect((await run?.result())?.output).toBe("It rains.");
      await again.invoke("Really?", { runtime: second, sessionId: started.sessionId });
      expect(toolNames(model)).toEqual([["weather"], []]);
      expect(model.calls[0]?.messages.at(-1)).toMatchObject({
        content: [{ type: "tool_result", output: { type: "text", text: "rain" } }],
      });
    },
  );

  test("arguments that do not match the schema of a caller's tool never reach the caller", async () => {
    const { agent, model } = clerk([{ toolCalls: [{ name: "weather", input: {} }] }, "I could not ask."]);
    const { output } = await agent.invoke("Weather?", { changes: { clientTools: [weather] } });
    expect(output).toBe("I could not ask.");
    expect(model.calls[1]?.messages.at(-1)).toMatchObject({
      content: [{ type: "tool_result", isError: true }],
    });
  });

  test("a tool of the caller hides the agent's tool of the same name for one run", async () => {
    const calls: string[] = [];
    const own = tool({
      name: "weather",
      description: "Looks out of the window.",
      inputSchema: { type: "object", properties: {} },
      execute: () => calls.push("agent"),
    });
    const model = scriptedModel([asks, "Done."]);
    const agent = new Agent({ name: "clerk", model, tools: [own] });
    await using runtime = await openRuntime({ store: "memory:" });
    const run = await agent.submit("Weather?", { runtime, changes: { clientTools: [weather] } });
    const [asked] = await run.untilPersonIsNeeded();
    await run.toolResult(asked?.approvalId ?? "", "rain");
    await run.result();
    expect([calls, model.calls[0]?.tools?.map(({ description }) => description)]).toEqual([
      [],
      [weather.description],
    ]);
  });

  test.each<[string, unknown, string]>([
    ["a text", "weather", "clientTools"],
    ["a tool without a schema", [{ name: "a", description: "b" }], "inputSchema"],
    ["two tools with one name", [weather, weather], 'two tools have the name "weather"'],
  ])("clientTools that are %s are refused before a run exists", async (_case, clientTools, words) => {
    await using runtime = await openRuntime({ store: "memory:" });
    const changes = { clientTools } as RunChanges;
    await expect(clerk([]).agent.submit("Go", { runtime, changes })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(words),
    });
    expect((await runtime.list()).runs).toEqual([]);
  });

  test("tools of the caller are erased with the contents of a run with retention none", async () => {
    await using runtime = await openRuntime({ store: "memory:" });
    const { agent } = clerk(["Done."]);
    const run = await agent.submit("Go", {
      runtime,
      retention: "none",
      changes: { clientTools: [weather], tools: [] },
    });
    await run.result();
    const events = [];
    for await (const event of run.events({ follow: false })) events.push(event);
    expect(JSON.stringify(events)).not.toContain("weather");
  });
});
