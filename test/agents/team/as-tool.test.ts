import { describe, expect, test } from "vitest";
import { Agent } from "../../../src/entries/index.ts";
import type { Event } from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { askHumanTool, toolSearch } from "../../../src/capabilities/tools/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";
import { asked, resultsIn, runAlone, worker } from "../company.ts";
import { reopen } from "../reopened.ts";

removeStoresAfterEach();

const call = (name: string, task: string) => ({ toolCalls: [{ name, input: { task } }] });

describe("asTool()", () => {
  test("asTool() returns a tool that runs the agent as a child task with the task of the model", async () => {
    const reader = worker("reader.eu", ["Three pages."], { description: "Reads long texts." });
    const { agent, model } = worker("lead", [call("reader_eu", "How long is it?"), "Three."], {
      tools: [reader.agent.asTool()],
    });
    const { result, events } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "Three.", turns: 3 });
    expect(model.calls[0]?.tools).toMatchObject([
      { name: "reader_eu", description: expect.stringContaining("Reads long texts.") },
    ]);
    expect(asked(reader.model)).toEqual(["How long is it?"]);
    expect(resultsIn(model)).toEqual(["Three pages."]);
    expect(events.filter(({ type }) => type === "task_start").map(({ agentId }) => agentId)).toEqual([
      "lead",
      "reader.eu",
    ]);
  });

  test("two tools of asTool() with different names run the same agent in one turn", async () => {
    const reader = worker("reader", ["One.", "Two."]);
    const both = { toolCalls: [...call("first", "a").toolCalls, ...call("second", "b").toolCalls] };
    const { agent, model } = worker("lead", [both, "Done."], {
      tools: [reader.agent.asTool({ name: "first" }), reader.agent.asTool({ name: "second" })],
    });
    expect((await runAlone(agent)).result.output).toBe("Done.");
    expect([...resultsIn(model)].toSorted()).toEqual(["One.", "Two."]);
  });

  test("a tool of asTool() that toolSearch() hides still registers and runs its agent", async () => {
    const reader = worker("reader", ["Read."]);
    const { agent, model } = worker("lead", [call("reader", "Read it."), "Done."], {
      tools: toolSearch({ tools: [reader.agent.asTool()], from: 1 }),
    });
    expect((await runAlone(agent)).result.output).toBe("Done.");
    expect(resultsIn(model)).toEqual(["Read."]);
  });

  test("a child of asTool() is stopped by the budget of its tool, and the model of the caller sees that", async () => {
    const reader = worker("reader", [call("nothing", "x"), "Read."]);
    const { agent, model } = worker("lead", [call("reader", "Read it."), "Without."], {
      tools: [reader.agent.asTool({ budget: { maxTurns: 1 } })],
    });
    expect((await runAlone(agent)).result.output).toBe("Without.");
    expect(resultsIn(model)[0]).toMatch(/^error: reader ended with status budget_exhausted/u);
  });

  test.each(twoStores)(
    "a child of asTool() continues in a second runtime without repeating a model call (%s)",
    async (_name, prepare) => {
      const question = { toolCalls: [{ name: "ask_human", input: { question: "Which page?" } }] };
      const reader = worker("reader", [question, "Page 7 it is."], { tools: [askHumanTool()] });
      const { agent, model } = worker("lead", [call("reader", "Choose a page."), "Page 7."], {
        tools: [reader.agent.asTool()],
      });
      const isRequest = ({ type }: Event): boolean => type === "approval_request";
      await using second = await reopen(await prepare(), agent, isRequest);
      const request = (await second.events()).find((event) => event.type === "approval_request");
      const approvalId = request?.data.approvalId ?? "";
      await second.run.approve(approvalId, { decision: "approved", input: "7" });
      expect(await second.run.result()).toMatchObject({ status: "completed", output: "Page 7." });
      expect([model.calls.length, reader.model.calls.length]).toEqual([2, 2]);
    },
  );

  test("asTool() with needsApproval asks a person before the agent is spawned", async () => {
    const reader = worker("reader", ["Read."]);
    const { agent } = worker("lead", [call("reader", "Read it."), "Done."], {
      tools: [reader.agent.asTool({ needsApproval: true })],
    });
    const memory = memoryStore({ hash: sha256 });
    const store = { ...memory, close: async () => undefined };
    await using second = await reopen(
      async () => store,
      agent,
      ({ type }) => type === "approval_request",
    );
    expect(reader.model.calls).toHaveLength(0);
    const request = (await second.events()).find((event) => event.type === "approval_request");
    await second.run.approve(request?.data.approvalId ?? "", { decision: "denied", reason: "not now" });
    expect((await second.run.result()).output).toBe("Done.");
    expect(reader.model.calls).toHaveLength(0);
  });

  test("asTool() refuses an unknown option, an invalid name, budget and timeout when it is called", () => {
    const agent = new Agent({ name: "reader", model: scriptedModel([]) });
    expect(() => agent.asTool({ toolName: "read" } as never)).toThrow(/toolName/u);
    expect(() => agent.asTool({ name: "read it" })).toThrow(/invalid name "read it" of asTool\(\)/u);
    expect(() => agent.asTool({ budget: { maxTurns: -1 } })).toThrow(/maxTurns/u);
    expect(() => agent.asTool({ askTimeoutMs: 0 })).toThrow(/invalid askTimeoutMs 0/u);
  });
});
