import { describe, expect, test } from "vitest";
import { llmJudge, type LlmJudgeOptions } from "../../../src/agents/guardrails/index.ts";
import { Agent, memoryStore, openRuntime, sha256, tool, type AgentOptions } from "../../../src/index.ts";
import {
  messageText,
  type Event,
  type JsonValue,
  type RunResult,
  type Store,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";

const usage = { inputTokens: 100, outputTokens: 10 };
const prices = { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-6 }) };
const accept = { text: '{"verdict": "accept"}', usage };
const reject = { text: '{"verdict": "reject", "reason": "too gloomy"}', usage };

async function run(
  verdicts: readonly ScriptStep[],
  options: Partial<LlmJudgeOptions> = {},
  more: Partial<AgentOptions> = {},
  store: Store = memoryStore({ hash: sha256 }),
): Promise<{ result: RunResult<JsonValue>; events: Event[]; judge: ReturnType<typeof scriptedModel> }> {
  const judge = scriptedModel(verdicts, { modelId: "judge" });
  const guardrail = llmJudge({
    criteria: "Nothing gloomy.",
    stages: { output: "block" },
    model: judge,
    ...options,
  });
  const runtime = await openRuntime({ store, prices, retry: { enabled: false } });
  const agent = new Agent({
    name: "scout",
    model: scriptedModel([{ text: "It rains.", usage }]),
    guardrails: [guardrail],
    ...more,
  });
  const handle = await runtime.submit(agent, 'Where "to"?');
  const events: Event[] = [];
  for await (const event of handle.events()) if ("seq" in event) events.push(event);
  const result = await handle.result();
  await runtime.close();
  return { result, events, judge };
}

const told = (events: readonly Event[], type: string): readonly unknown[] =>
  events.filter((event) => event.type === type).map(({ data }) => data);

describe("an LLM judge", () => {
  test("is paid for by the run, and its call is in the log", async () => {
    const { result, events } = await run([accept, accept], { stages: { input: "block", output: "block" } });
    expect(result).toMatchObject({ status: "completed", output: "It rains." });
    expect({ tokens: result.usage.inputTokens + result.usage.outputTokens, costUsd: result.costUsd }).toEqual(
      {
        tokens: 330,
        costUsd: 330e-6,
      },
    );
    const models = events.flatMap((event) =>
      event.type === "message_end" ? [event.data.model?.modelId] : [],
    );
    expect(models).toEqual(["judge", "script", "judge"]);
  });

  test("is shown the text as data and told what it is", async () => {
    const { judge } = await run([accept], { stages: { input: "block" } });
    const [request] = judge.calls;
    const [system, question] = request?.messages ?? [];
    expect(system).toMatchObject({ role: "system", content: expect.stringContaining("Nothing gloomy.") });
    expect(question && messageText(question)).toContain(JSON.stringify('Where "to"?'));
    expect(request?.maxOutputTokens).toBe(300);
  });

  test("withholds what it rejects; the session has the reason in place of the answer", async () => {
    const store = memoryStore({ hash: sha256 });
    const { result } = await run([reject], {}, {}, store);
    expect(result).toMatchObject({
      status: "guardrail_tripped",
      output: "too gloomy",
      interruptionReason: "too gloomy",
    });
    const entries = await store.sessions.read(result.sessionId);
    const said = entries.map(({ entry }) =>
      entry.type === "message" ? JSON.stringify(entry.message.content) : "",
    );
    expect(said.at(-1)).toContain("too gloomy");
    expect(said.join()).not.toContain("It rains.");
  });

  test.for([
    "I would say yes",
    '{"verdict": "perhaps"}',
    '{"verdict":',
    { error: Object.assign(new Error("bad key"), { status: 401 }) },
  ] satisfies ScriptStep[])("fails open on its own error, and says so: %j", async (verdict) => {
    const { result, events } = await run([verdict]);
    expect(result).toMatchObject({ status: "completed", output: "It rains." });
    expect(told(events, "guardrail_error")).toMatchObject([{ guardrail: "llm_judge", stage: "output" }]);
  });

  test("reads a verdict in a fence or among words, and one without a reason", async () => {
    const fenced = 'Well:\n```json\n{"verdict": "reject"}\n```';
    expect((await run([fenced])).result).toMatchObject({
      status: "guardrail_tripped",
      output: "llm_judge rejects it",
    });
  });

  test("an exhausted budget is no error of its own: the run stops", async () => {
    const { result, judge } = await run([accept], {}, { budget: { maxTurns: 1 } });
    expect(result.status).toBe("budget_exhausted");
    // What was not judged is not given out.
    expect({ output: result.output, judged: judge.calls.length }).toEqual({ output: null, judged: 0 });
  });

  test("uses the agent's main model when it has none of its own", async () => {
    const guardrail = llmJudge({ criteria: "Be kind.", stages: { output: "block" } });
    expect(guardrail.models).toEqual({ "guardrail llm_judge": "main" });
    const model = scriptedModel([{ text: "It rains.", usage }, reject]);
    const { result } = await run([], {}, { model, guardrails: [guardrail] });
    expect(result.output).toBe("too gloomy");
  });

  test("judges calls that run side by side, each in its own place", async () => {
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object", properties: { at: { type: "number" } } } as const,
      execute: ({ at }) => `saw ${at}`,
    });
    const verdict: ScriptStep = ({ messages }) =>
      JSON.stringify(messages).includes("saw 2") ? reject : accept;
    const toolCalls = [1, 2, 3].map((at) => ({ name: "look", input: { at } }));
    const model = scriptedModel([{ toolCalls }, "done"]);
    const { events } = await run(
      Array(3).fill(verdict),
      { stages: { tool_result: "block" } },
      { model, tools: [look] },
    );
    const results = events.flatMap((event) => (event.type === "tool_execution_end" ? [event.data] : []));
    expect(results.filter(({ result }) => result.isError)).toMatchObject([{ callId: "call_1_1" }]);
  });

  test("of two, each has a name of its own", async () => {
    const judges = (second: string) =>
      ["one", second].map((name) =>
        llmJudge({ name, criteria: "Be kind.", stages: { output: "block" }, model: scriptedModel([accept]) }),
      );
    await expect(run([], {}, { guardrails: judges("one") })).rejects.toThrow(
      /give each guardrail its own name/u,
    );
    expect((await run([], {}, { guardrails: judges("two") })).result.status).toBe("completed");
  });

  test("needs criteria", () => {
    expect(() => llmJudge({ criteria: " ", stages: { output: "block" } })).toThrow(/has no criteria/u);
  });
});
