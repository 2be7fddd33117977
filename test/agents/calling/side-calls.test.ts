import { expect, test } from "vitest";
import { z } from "zod";
import { llmJudge } from "../../../src/assembly/guardrails.ts";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  structuredOutput,
  summarization,
  tool,
} from "../../../src/entries/index.ts";
import { messageText, type ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedReply } from "../../../src/testing/index.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object", properties: {} },
  execute: () => "y".repeat(4_000),
});

const kindOf = ({ messages }: ModelRequest): string => {
  const text = messages.map((message) => messageText(message)).join(" ");
  if (text.includes("Your verdict?")) return "judge";
  return text.includes("<conversation>") ? "summary" : "answer";
};

test("structuredOutput() does not affect calls of judges and summaries, and events name the role of those calls", async () => {
  const asks = { toolCalls: [{ name: "look", input: {} }] };
  const answers: Record<string, (string | ScriptedReply)[]> = {
    answer: [asks, asks, '{"town":"Sens"}'],
    summary: ["Looked once."],
    judge: ['{"verdict":"accept"}'],
  };
  const next = (request: ModelRequest): string | ScriptedReply => answers[kindOf(request)]?.shift() ?? "?";
  const model = scriptedModel(Array.from({ length: 12 }, () => next));
  const store = memoryStore({ hash: sha256 });
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const scout = new Agent({
    name: "scout",
    model,
    tools: [look],
    middleware: [structuredOutput({ schema: z.object({ town: z.string() }) })],
    guardrails: [llmJudge({ criteria: "Towns.", stages: { output: "block" } })],
    compaction: {
      strategy: (summarize) => summarization({ summarize, maxTokens: 2_000, keepRecentTokens: 1_100 }),
    },
  });
  const run = await runtime.submit(scout, "Where?");
  expect(await run.result()).toMatchObject({ status: "completed", output: '{"town":"Sens"}' });
  expect(model.calls.map(kindOf)).toEqual(["answer", "answer", "summary", "answer", "judge"]);
  expect(model.calls.map(({ responseFormat }) => responseFormat?.type)).toEqual([
    "json",
    "json",
    undefined,
    "json",
    undefined,
  ]);
  const roles: (string | undefined)[] = [];
  for await (const event of store.events.read(run.runId)) {
    expect(event.type).not.toBe("guardrail_error");
    if (event.type === "message_start") roles.push(event.data.modelRole);
  }
  expect(roles).toEqual([undefined, undefined, "summary", undefined, "guardrail llm_judge"]);
  await runtime.close();
});
