import { describe, expect, test } from "vitest";
import { llmJudge, type LlmJudgeOptions } from "../../../../src/assembly/guardrails.ts";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  tool,
  type AgentOptions,
} from "../../../../src/entries/index.ts";
import {
  messageText,
  type Event,
  type JsonValue,
  type RunResult,
  type Store,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";

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

describe("llmJudge()", () => {
  test("the model calls of llmJudge() are charged to the run and recorded in its events", async () => {
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

  test("llmJudge() sends its criteria as the system message and the judged text as JSON data", async () => {
    const { judge } = await run([accept], { stages: { input: "block" } });
    const [request] = judge.calls;
    const [system, question] = request?.messages ?? [];
    expect(system).toMatchObject({ role: "system", content: expect.stringContaining("Nothing gloomy.") });
    expect(question && messageText(question)).toContain(JSON.stringify('Where "to"?'));
    expect(request?.maxOutputTokens).toBe(300);
  });

  test("llmJudge() withholds a rejected answer, and the session stores the reason instead of the answer", async () => {
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
  ] satisfies ScriptStep[])(
    "llmJudge() lets the answer through and records guardrail_error if its verdict is invalid or its call fails: %j",
    async (verdict) => {
      const { result, events } = await run([verdict]);
      expect(result).toMatchObject({ status: "completed", output: "It rains." });
      expect(told(events, "guardrail_error")).toMatchObject([{ guardrail: "llm_judge", stage: "output" }]);
    },
  );

  test("llmJudge() reads a verdict inside a code block or other text, and a verdict without a reason", async () => {
    const fenced = 'Well:\n```json\n{"verdict": "reject"}\n```';
    expect((await run([fenced])).result).toMatchObject({
      status: "guardrail_tripped",
      output: "llm_judge rejects it",
    });
  });

  test("a budget that runs out at llmJudge() stops the run as budget_exhausted", async () => {
    const { result, judge } = await run([accept], {}, { budget: { maxTurns: 1 } });
    expect(result.status).toBe("budget_exhausted");
    // An output that was not judged is not returned.
    expect({ output: result.output, judged: judge.calls.length }).toEqual({ output: null, judged: 0 });
  });

  test("llmJudge() uses the agent's main model by default", async () => {
    const guardrail = llmJudge({ criteria: "Be kind.", stages: { output: "block" } });
    expect(guardrail.models).toEqual({ "guardrail llm_judge": "main" });
    const model = scriptedModel([{ text: "It rains.", usage }, reject]);
    const { result } = await run([], {}, { model, guardrails: [guardrail] });
    expect(result.output).toBe("too gloomy");
  });

  test("llmJudge() judges concurrent tool calls separately", async () => {
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

  test("two llmJudge() guardrails of an agent must have different names", async () => {
    const judges = (second: string) =>
      ["one", second].map((name) =>
        llmJudge({ name, criteria: "Be kind.", stages: { output: "block" }, model: scriptedModel([accept]) }),
      );
    await expect(run([], {}, { guardrails: judges("one") })).rejects.toThrow(
      /give each guardrail its own name/u,
    );
    expect((await run([], {}, { guardrails: judges("two") })).result.status).toBe("completed");
  });

  test("llmJudge() refuses empty criteria", () => {
    expect(() => llmJudge({ criteria: " ", stages: { output: "block" } })).toThrow(
      /invalid criteria " " of llmJudge\(\): expected a text that is not empty/u,
    );
  });
});
