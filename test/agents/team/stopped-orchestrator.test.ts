import { describe, expect, it } from "vitest";
import { supervisor } from "../../../src/agents/architectures/index.ts";
import { Agent, OrchestratorAgent, type AgentOptions } from "../../../src/entries/index.ts";
import type { Event, Runtime, Store } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { readAll } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const handOffs = (...names: readonly string[]) =>
  names.map((name) => ({ name: `handoff_${name}`, input: { task: "Say it." } }));

function worker(name: string, script: readonly ScriptStep[]): Agent {
  return new Agent({ name, model: scriptedModel(script) });
}

function lead(
  script: readonly ScriptStep[],
  subAgents: readonly Agent[],
  more: Partial<AgentOptions> = {},
): OrchestratorAgent {
  return new OrchestratorAgent({ name: "lead", model: scriptedModel(script), subAgents, ...more });
}

function open(store: Store): Promise<Runtime> {
  return createRuntime({ store, pollMs: 10 });
}

function startsOf(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) => (event.type === "tool_execution_start" ? [event.data.callId] : []));
}

describe.each(twoStores)("a stopped orchestrator in a %s store", (_name, prepare) => {
  it("B5: a stopped orchestrator has the answers of its children as output, and completes after a top-up in another process", async () => {
    const openStore = await prepare();
    const first = await open(await openStore());
    const agent = lead(
      [{ toolCalls: handOffs("ann", "bob") }],
      [worker("ann", ["Yes."]), worker("bob", ["No."])],
    );
    const { runId } = await first.submit(agent, "Ask them.", { budget: { maxTurns: 3 } });
    const stopped = await (await first.find(runId))?.result();
    expect(stopped).toMatchObject({ status: "budget_exhausted", output: "ann: Yes.\n\nbob: No.", turns: 3 });
    await first.close();
    const second = await open(await openStore());
    second.register(lead(["They disagree."], [worker("ann", []), worker("bob", [])]));
    const run = await second.find(runId);
    await run?.topUp({ maxTurns: 1 });
    expect(await run?.result()).toMatchObject({ status: "completed", output: "They disagree.", turns: 4 });
    await second.close();
  });

  it("B5, E4: a stopped orchestrator keeps one child's answer if another exhausts the budget, and emits each tool start once", async () => {
    const openStore = await prepare();
    const firstStore = await openStore();
    const first = await open(firstStore);
    const subAgents = [worker("ann", ["Yes."]), worker("bob", ["No."])];
    const { runId } = await first.submit(
      lead([{ toolCalls: handOffs("ann", "bob") }], subAgents),
      "Ask them.",
      {
        budget: { maxTurns: 2 },
      },
    );
    const stopped = await (await first.find(runId))?.result();
    expect(stopped).toMatchObject({ status: "budget_exhausted", output: "Yes." });
    expect(startsOf(await readAll(firstStore, runId))).toHaveLength(2);
    await first.close();
    const secondStore = await openStore();
    const second = await open(secondStore);
    second.register(lead(["They disagree."], [worker("ann", []), worker("bob", ["No."])]));
    const run = await second.find(runId);
    await run?.topUp({ maxTurns: 9 });
    expect(await run?.result()).toMatchObject({ status: "completed", output: "They disagree.", turns: 4 });
    const events = await readAll(secondStore, runId);
    expect(startsOf(events)).toHaveLength(2);
    expect(new Set(startsOf(events)).size).toBe(2);
    expect(events.filter(({ type }) => type === "tool_execution_end")).toHaveLength(2);
    await second.close();
  });
});

describe.each<[string, readonly ScriptStep[], string]>([
  ["after its own text", [{ text: "I ask Ann.", toolCalls: handOffs("ann") }], "I ask Ann.\n\nYes."],
  [
    "without those that a later text has followed",
    [{ toolCalls: handOffs("ann") }, { text: "Ann agrees. Now Bob.", toolCalls: handOffs("bob") }],
    "Ann agrees. Now Bob.\n\nNo.",
  ],
  ["without failed ones", [{ text: "I ask.", toolCalls: handOffs("cid") }], "I ask."],
])("the output of a stopped orchestrator", (how, script, output) => {
  it(`B5: the output of a stopped orchestrator holds the answers of its children ${how}`, async () => {
    const runtime = await createRuntime();
    const subAgents = [
      worker("ann", ["Yes."]),
      worker("bob", ["No."]),
      worker("cid", [{ error: Object.assign(new Error("no such model"), { status: 404 }) }]),
    ];
    const agent = lead(script, subAgents, { maxTurns: script.length });
    const run = await runtime.submit(agent, "Ask them.");
    expect(await run.result()).toMatchObject({ status: "max_turns", output });
    await runtime.close();
  });
});

it("B5: a supervisor that is stopped has the answers of its workers as output", async () => {
  const runtime = await createRuntime();
  const calls = ["ann", "bob"].map((name) => ({
    name: "delegate",
    input: { worker: name, task: "Say it." },
  }));
  const workers = { ann: worker("ann", ["Yes."]), bob: worker("bob", ["No."]) };
  const model = scriptedModel([{ toolCalls: calls }]);
  const agent = new Agent({ name: "lead", model, architecture: supervisor({ workers }) });
  const run = await runtime.submit(agent, "Ask them.", { budget: { maxTurns: 3 } });
  expect(await run.result()).toMatchObject({ status: "budget_exhausted", output: "ann: Yes.\n\nbob: No." });
  await runtime.close();
});
