import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import { formatSessionId, messageText, type ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const pay = tool({
  name: "pay",
  description: "Pays.",
  inputSchema: { type: "object", properties: {} } as const,
  needsApproval: true,
  execute: () => "paid",
});

function payer(script: readonly ScriptStep[], instructions = "Be brief.") {
  const model = scriptedModel(script);
  return { model, agent: new Agent({ name: "payer", model, instructions, tools: [pay] }) };
}

const pays: ScriptStep = { toolCalls: [{ name: "pay", input: {} }] };

function system({ messages }: ModelRequest): string | undefined {
  const [first] = messages;
  return first?.role === "system" ? messageText(first) : undefined;
}

describe("addedInstructions", () => {
  test.each(twoStores)(
    "addedInstructions follow those of the agent in their run, also in the process that resumes it, on the %s store",
    async (_name, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open() });
      const { agent } = payer([pays]);
      const { runId, sessionId } = await agent.submit("Pay", {
        runtime: first,
        addedInstructions: "Answer in French.",
      });
      const [asked] = (await (await first.find(runId))?.untilPersonIsNeeded()) ?? [];
      await first.close();

      await using second = await openRuntime({ store: await open() });
      const { agent: again, model } = payer(["Payé.", "Yes."]);
      second.register(again);
      const run = await second.find(runId);
      await run?.approve(asked?.approvalId ?? "", { decision: "approved" });
      expect((await run?.result())?.output).toBe("Payé.");
      await again.invoke("Really?", { runtime: second, sessionId });
      expect(model.calls.map(system)).toEqual(["Be brief.\n\nAnswer in French.", "Be brief."]);
    },
  );

  test("addedInstructions are the whole system prompt of an agent without instructions, and never reach a sub-agent", async () => {
    const { agent: helper, model: helping } = payer(["Helped."], "Help.");
    const model = scriptedModel([{ toolCalls: [{ name: "payer", input: { task: "Help" } }] }, "Done."]);
    const boss = new Agent({ name: "boss", model, tools: [helper.asTool()] });
    await boss.invoke("Go", { addedInstructions: "Be kind." });
    expect(model.calls.map(system)).toEqual([
      expect.stringMatching(/^Be kind\./u),
      expect.stringMatching(/^Be kind\./u),
    ]);
    expect(helping.calls.map(system)).toEqual(["Help."]);
  });

  test("a repeated submission under the same id must have the same addedInstructions", async () => {
    const { agent } = payer(["Done."]);
    const options = { runId: "run_added", addedInstructions: "One." };
    const { runId } = await agent.invoke("Go", options);
    expect((await agent.invoke("Go", options)).runId).toBe(runId);
    await expect(agent.invoke("Go", { ...options, addedInstructions: "Two." })).rejects.toMatchObject({
      code: "already_exists",
    });
  });

  test("addedInstructions are erased with the contents of a run with retention none", async () => {
    for (const [, prepare] of twoStores) {
      const store = await (await prepare())();
      const runtime = await openRuntime({ store });
      const { agent } = payer(["Done."]);
      const { runId } = await agent.invoke("Go", {
        runtime,
        retention: "none",
        addedInstructions: "Secret.",
      });
      const commits: unknown[] = [];
      for await (const commit of store.journal.read(runId)) commits.push(commit);
      expect(JSON.stringify(commits)).not.toContain("Secret.");
      await runtime.close();
    }
  });

  test("addedInstructions that are empty or not a text are refused before a run exists", async () => {
    await using runtime = await openRuntime();
    const { agent } = payer([]);
    for (const addedInstructions of ["", "  ", 5 as unknown as string])
      await expect(runtime.submit(agent, "Go", { addedInstructions })).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("addedInstructions of a run of payer"),
      });
    expect((await runtime.list()).runs).toEqual([]);
  });
});

test("messages are accepted for a session that is named after its run, because such a session is new", async () => {
  await using runtime = await openRuntime();
  const { agent, model } = payer(["Sun."]);
  const messages = [
    { role: "user", content: "Rain?" },
    { role: "assistant", content: "No." },
    { role: "user", content: "What then?" },
  ];
  const run = await runtime.submit(agent, messages, {
    runId: "run_own",
    sessionId: formatSessionId("run_own"),
    retention: "run",
  });
  await run.result();
  expect(model.calls[0]?.messages.map(messageText)).toEqual(["Be brief.", "Rain?", "No.", "What then?"]);
});
