import { describe, expect, test } from "vitest";
import {
  Agent,
  openRuntime,
  OrchestratorAgent,
  Sequential,
  tool,
  withSettings,
  type CallSettings,
} from "../../../src/entries/index.ts";
import { planAndExecute, react } from "../../../src/agents/architectures/index.ts";
import { llmJudge } from "../../../src/assembly/guardrails.ts";
import type { ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";
import { looks, scout } from "../scout.ts";

removeStoresAfterEach();

const every = {
  temperature: 0,
  topP: 0.5,
  topK: 40,
  seed: 7,
  presencePenalty: 0.1,
  frequencyPenalty: -0.2,
  maxOutputTokens: 300,
} satisfies CallSettings;

/** The settings of a request. */
function settingsIn(request: ModelRequest | undefined): Partial<ModelRequest> {
  const { messages: _messages, tools: _tools, ...settings } = request ?? { messages: [] };
  return settings;
}

/** An agent whose tool waits for a person's approval. */
function careful(script: readonly ScriptStep[]) {
  const model = scriptedModel(script);
  const pay = tool({
    name: "pay",
    description: "Pays.",
    inputSchema: { type: "object", properties: {} } as const,
    needsApproval: true,
    execute: () => "paid",
  });
  return { model, agent: new Agent({ name: "payer", model, tools: [pay] }) };
}

const pays: ScriptStep = { toolCalls: [{ name: "pay", input: {} }] };

describe("the settings of a call", () => {
  test("invoke() sends its settings with every model call of the agent, and not with those of the next call", async () => {
    const { agent, model } = scout([looks, "Rain.", "Sun."]);
    await agent.invoke("Weather?", { settings: every });
    await agent.invoke("And now?");
    expect(model.calls.map(settingsIn)).toEqual([every, every, {}]);
  });

  test("invoke() sends settings that are getters of a class", async () => {
    class Precise {
      get temperature(): number {
        return 0;
      }
      get toolChoice() {
        return "auto" as const;
      }
    }
    const { agent, model } = scout(["Rain."]);
    await agent.invoke("Weather?", { settings: new Precise() });
    expect(model.calls.map(settingsIn)).toEqual([{ temperature: 0, toolChoice: "auto" }]);
  });

  test("the settings of a call take precedence over those of the model", async () => {
    const inner = scriptedModel(["Rain."]);
    const model = withSettings(inner, { temperature: 1, topP: 0.9 });
    await new Agent({ name: "scout", model }).invoke("Weather?", { settings: { temperature: 0 } });
    expect(settingsIn(inner.calls[0])).toEqual({ temperature: 0, topP: 0.9 });
  });

  test("the settings of a call apply to the roles of an architecture and to the repair of an answer", async () => {
    const plan = JSON.stringify({ steps: ["look"] });
    const model = scriptedModel([plan, "Rain.", "no JSON", "7"]);
    const agent = new Agent({ name: "planner", model, architecture: planAndExecute() });
    const output = { type: "number" } as const;
    const { status } = await agent.invoke("Weather?", { settings: { seed: 7 }, output });
    expect(status).toBe("completed");
    expect(model.calls.map(({ seed }) => seed)).toEqual([7, 7, 7, 7]);
  });

  test("the settings of a call do not apply to sub-agents and guardrails", async () => {
    const helper = scriptedModel(["Helped."]);
    const judge = scriptedModel(['{"verdict": "accept"}']);
    const lead = scriptedModel([
      { toolCalls: [{ name: "handoff_helper", input: { task: "Help." } }] },
      "Done.",
    ]);
    const agent = new OrchestratorAgent({
      name: "lead",
      model: lead,
      subAgents: [new Agent({ name: "helper", model: helper })],
      guardrails: [llmJudge({ model: judge, criteria: "None.", stages: { input: "block" } })],
    });
    await agent.invoke("Go.", { settings: { temperature: 0 } });
    expect(lead.calls.map(({ temperature }) => temperature)).toEqual([0, 0]);
    expect(helper.calls.map(({ temperature }) => temperature)).toEqual([undefined]);
    expect(judge.calls.map(({ temperature }) => temperature)).toEqual([undefined]);
  });

  test("a tool choice that requires a call applies to the first model call only, and the tool choice none to every call", async () => {
    const required = scout([looks, "Rain."]);
    await required.agent.invoke("Weather?", { settings: { toolChoice: "required" } });
    expect(required.model.calls.map(({ toolChoice }) => toolChoice)).toEqual(["required", undefined]);
    const named = scout([looks, "Rain."], { architecture: react({ initialToolChoice: "none" }) });
    await named.agent.invoke("Weather?", { settings: { toolChoice: { toolName: "look" } } });
    expect(named.model.calls.map(({ toolChoice }) => toolChoice)).toEqual([{ toolName: "look" }, undefined]);
    const none = scout([looks, "Rain."]);
    await none.agent.invoke("Weather?", { settings: { toolChoice: "none" } });
    expect(none.model.calls.map(({ toolChoice }) => toolChoice)).toEqual(["none", "none"]);
  });

  test("a tool choice that names an unknown tool fails the run before a model call", async () => {
    const { agent, model } = scout([]);
    const { status, error } = await agent.invoke("Weather?", {
      settings: { toolChoice: { toolName: "lok" } },
    });
    expect(status).toBe("failed");
    expect(error?.message).toBe(
      'invalid settings.toolChoice of a run of agent scout: unknown tool "lok"; expected one of look',
    );
    expect(model.calls).toEqual([]);
  });

  test.each<[string, object, string]>([
    [
      "an unknown name",
      { temprature: 0 },
      'unknown option "temprature" of settings of a run of agent scout: use "temperature"',
    ],
    [
      "maxTokens",
      { maxTokens: 5 },
      'unknown option "maxTokens" of settings of a run of agent scout: use "maxOutputTokens"',
    ],
    [
      "a text",
      { temperature: "0" },
      'invalid temperature "0" of settings of a run of agent scout: expected a finite number from 0',
    ],
    [
      "NaN",
      { temperature: Number.NaN },
      "invalid temperature NaN of settings of a run of agent scout: expected a finite number from 0",
    ],
    [
      "topP: 2",
      { topP: 2 },
      "invalid topP 2 of settings of a run of agent scout: expected a number from 0 to 1",
    ],
    [
      "topK: 0",
      { topK: 0 },
      "invalid topK 0 of settings of a run of agent scout: expected an integer from 1",
    ],
    ["seed: 0.5", { seed: 0.5 }, "invalid seed 0.5 of settings of a run of agent scout: expected an integer"],
    [
      "toolChoice: any",
      { toolChoice: "any" },
      'invalid toolChoice "any" of settings of a run of agent scout: expected "auto", "none", "required" or { toolName }',
    ],
  ])("invoke() refuses settings with %s before a run exists", async (_name, settings, message) => {
    const { agent, model } = scout([]);
    await expect(agent.invoke("Weather?", { settings })).rejects.toMatchObject({
      code: "invalid_argument",
      message,
    });
    expect(model.calls).toEqual([]);
  });

  test("runtime.submit() refuses invalid settings", async () => {
    const runtime = await openRuntime({ store: "memory:" });
    const { agent } = scout([]);
    await expect(runtime.submit(agent, "x", { settings: { topK: -1 } })).rejects.toThrow(
      "invalid topK -1 of settings",
    );
    await runtime.close();
  });

  test("a setting of a call that is undefined counts as absent", async () => {
    const { agent, model } = scout(["Rain."]);
    await agent.invoke("Weather?", { settings: { temperature: undefined, seed: 1 } as never });
    expect(settingsIn(model.calls[0])).toEqual({ seed: 1 });
  });

  test("a flow refuses settings, because it calls no model itself", async () => {
    const { agent } = scout([]);
    const flow = new Sequential({ name: "flow", steps: [agent] });
    await expect(flow.invoke("x", { settings: { temperature: 0 } })).rejects.toThrow(
      "invalid settings of a run of agent flow: the agent calls no model itself; use withSettings()",
    );
  });

  test.each(twoStores)(
    "a run that another worker resumes sends the settings of its submission (store: %s)",
    async (_store, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open(), unknownPrice: "ignore" });
      const before = careful([pays]);
      const run = await before.agent.submit("Pay.", { runtime: first, settings: every });
      let approvalId = "";
      for await (const event of run.events())
        if (event.type === "approval_request") {
          ({ approvalId } = event.data);
          break;
        }
      await first.close();
      const second = await openRuntime({ store: await open(), unknownPrice: "ignore" });
      const after = careful(["Paid."]);
      second.register(after.agent);
      const again = await second.find(run.runId);
      await again?.approve(approvalId, { decision: "approved" });
      expect(await again?.result()).toMatchObject({ status: "completed", output: "Paid." });
      expect(after.model.calls.map(settingsIn)).toEqual([every]);
      await second.close();
    },
  );
});
