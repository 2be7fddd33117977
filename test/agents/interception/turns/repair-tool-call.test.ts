import { describe, expect, test } from "vitest";
import { tool, type RepairToolCall } from "../../../../src/entries/index.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";
import { notesOf, resultsIn, runAlone, worker } from "../../company.ts";
import { reopen } from "../../reopened.ts";

removeStoresAfterEach();

const add = tool({
  name: "add",
  description: "Adds two numbers.",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  } as const,
  execute: ({ a, b }) => String(a + b),
});
const calling = (name: string, input: unknown) => ({ toolCalls: [{ name, input: input as never }] });
const repairToolCall: RepairToolCall = ({ call, problem }) =>
  problem.startsWith("there is no tool")
    ? { toolName: "add" }
    : { input: { a: 1, b: call.input === "{a:1" ? 2 : 3 } };

describe("repairToolCall", () => {
  test.each([
    ["whose arguments are not JSON", calling("add", "{a:1"), "3"],
    ["whose arguments do not match the schema", calling("add", { a: 1 }), "4"],
    ["whose tool does not exist", calling("Add", { a: 2, b: 3 }), "5"],
  ])("repairToolCall corrects a call %s, and the log says what it corrected", async (_what, step, result) => {
    const { agent, model } = worker("clerk", [step, "Done."], { tools: [add], repairToolCall });
    const { notes, events } = await runAlone(agent);
    expect(resultsIn(model)).toEqual([result]);
    expect(notes).toEqual(["agent.tool_call_repaired"]);
    expect(notesOf(events)[0]?.data).toMatchObject({
      problem: expect.any(String),
      repaired: expect.any(Object),
    });
  });

  test("repairToolCall is not asked about a valid call", async () => {
    const asked: unknown[] = [];
    const { agent, model } = worker("clerk", [calling("add", { a: 1, b: 1 }), "Done."], {
      tools: [add],
      repairToolCall: (malformed) => {
        asked.push(malformed);
        return undefined;
      },
    });
    await runAlone(agent);
    expect(resultsIn(model)).toEqual(["2"]);
    expect(asked).toEqual([]);
  });

  test.each<[string, RepairToolCall, readonly string[]]>([
    ["returns nothing", () => undefined, []],
    ["throws", () => Promise.reject(new Error("no idea")), ["no idea"]],
    ["returns an unknown field", () => ({ args: {} }) as never, ["args"]],
    ["returns arguments that are invalid, too", () => ({ input: { a: "x" } }), []],
  ])("the model receives the problem as an error if repairToolCall %s", async (_what, repair, problem) => {
    const { agent, model } = worker("clerk", [calling("add", { a: 1 }), "Done."], {
      tools: [add],
      repairToolCall: repair,
    });
    const { result, events } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "Done." });
    expect(resultsIn(model)[0]).toMatch(/^error: .*add/u);
    const errors = events.flatMap((event) => (event.type === "hook_error" ? [event.data] : []));
    const expected = problem.map((message) => ({
      hook: "repairToolCall",
      failure: { message: expect.stringContaining(message) },
    }));
    expect(errors).toMatchObject(expected);
  });

  test.each(twoStores)(
    "a person approves the repaired call, and a second runtime does not repair it again (%s)",
    async (_name, prepare) => {
      let repairs = 0;
      const { agent, model } = worker("clerk", [calling("add", { a: 1 }), "Done."], {
        tools: [{ ...add, needsApproval: () => true }],
        repairToolCall: () => ({ input: { a: 1, b: ++repairs } }),
      });
      await using second = await reopen(await prepare(), agent, ({ type }) => type === "approval_request");
      const request = (await second.events()).find((event) => event.type === "approval_request");
      expect(request?.data.input).toEqual({ a: 1, b: 1 });
      await second.run.approve(request?.data.approvalId ?? "", { decision: "approved" });
      expect((await second.run.result()).output).toBe("Done.");
      expect(resultsIn(model)).toEqual(["2"]);
      expect(repairs).toBe(1);
    },
  );
});
