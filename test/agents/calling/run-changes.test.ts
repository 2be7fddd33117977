import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import { messageText, type ModelRequest } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

function named(name: string, needsApproval = false) {
  return tool({
    name,
    description: `Does ${name}.`,
    inputSchema: { type: "object", properties: {} } as const,
    needsApproval,
    execute: () => `${name} done`,
  });
}

function payer(script: readonly ScriptStep[]) {
  const model = scriptedModel(script);
  const other = scriptedModel(script, { modelId: "other" });
  const tools = [named("pay", true), named("refund")];
  const agent = new Agent({
    name: "payer",
    model,
    models: { spare: other },
    instructions: "Be brief.",
    tools,
  });
  return { model, other, agent };
}

const pays: ScriptStep = { toolCalls: [{ name: "pay", input: {} }] };
const refunds: ScriptStep = { toolCalls: [{ name: "refund", input: {} }] };

function seen({ messages, tools = [] }: ModelRequest): readonly unknown[] {
  const [first] = messages;
  return [first && messageText(first), tools.map(({ name }) => name)];
}

describe("changes of a run", () => {
  test.each(twoStores)(
    "changes of a run replace instructions, model and tools only in that run, also after a restart, on the %s store",
    async (_name, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open() });
      const changes = { instructions: "Be kind.", model: "scripted/other", tools: ["pay"] };
      const { runId, sessionId } = await payer([pays]).agent.submit("Pay", { runtime: first, changes });
      const [asked] = (await (await first.find(runId))?.untilPersonIsNeeded()) ?? [];
      await first.close();

      await using second = await openRuntime({ store: await open() });
      const { agent, model, other } = payer([refunds, "Paid.", "Yes."]);
      second.register(agent);
      const run = await second.find(runId);
      await run?.approve(asked?.approvalId ?? "", { decision: "approved" });
      expect((await run?.result())?.output).toBe("Paid.");
      expect(other.calls.map(seen)).toEqual([
        ["Be kind.", ["pay"]],
        ["Be kind.", ["pay"]],
      ]);
      const denied = other.calls[1]?.messages.at(-1)?.content[0];
      expect(denied).toMatchObject({
        isError: true,
        output: { text: expect.stringContaining("in this run") },
      });
      await agent.invoke("Really?", { runtime: second, sessionId });
      expect(model.calls[0] && seen(model.calls[0])).toEqual(["Be brief.", ["pay", "refund"]]);
    },
  );

  test("changes of a run are refused before it exists if a model, tool or option is unknown; a submission with other changes differs", async () => {
    await using runtime = await createRuntime({ unknownPrice: "ignore" });
    const { agent } = payer(["Done."]);
    const refused = [
      [{ model: "absent/x" }, "model_not_found", 'unknown model "absent/x" of a run of payer'],
      [{ tools: ["rm"] }, "invalid_argument", 'there is no tool "rm"; use some of pay, refund'],
      [{ instructions: "" }, "invalid_argument", "expected a text that is not empty"],
      [{ temperature: 1 }, "invalid_argument", 'unknown option "temperature" of changes of'],
    ] as const;
    for (const [changes, code, message] of refused)
      await expect(agent.submit("Go", { runtime, changes: changes as never })).rejects.toMatchObject({
        code,
        message: expect.stringContaining(message),
      });
    expect((await runtime.list()).runs).toHaveLength(0);
    const options = { runtime, runId: "run_changed", changes: { instructions: "One." } };
    await agent.invoke("Go", options);
    await expect(agent.invoke("Go", { ...options, changes: {} })).rejects.toMatchObject({
      code: "already_exists",
    });
  });
});
