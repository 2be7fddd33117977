import { describe, expect, it } from "vitest";
import { Agent, openRuntime } from "../../../src/index.ts";
import {
  formatSessionId,
  messageText,
  type Event,
  type ModelRequest,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel } from "../../../src/testing/index.ts";

const sessionId = formatSessionId("talk");
const textIn = ({ messages }: ModelRequest): string =>
  messages.map((message) => messageText(message)).join("\n");
const isSummary = (request: ModelRequest): boolean => textIn(request).includes("<conversation>");
const long = "word ".repeat(400);

function chatModel(summary: (request: ModelRequest) => unknown = () => "In short."): ScriptedModel {
  const answer = (request: ModelRequest) => (isSummary(request) ? summary(request) : `answer ${long}`);
  const model = scriptedModel(Array.from({ length: 60 }, () => answer) as never);
  return Object.assign(model, { contextWindow: 2_000 });
}

function chat(model: ScriptedModel, more: object = {}): Agent {
  return new Agent({
    name: "chat",
    model,
    compaction: { reserveTokens: 1_000, keepRecentTokens: 600 },
    ...more,
  });
}

async function eventsOf(runtime: Runtime, runId: string): Promise<Event[]> {
  const run = await runtime.find(runId);
  const events: Event[] = [];
  for await (const event of run?.events() ?? []) if ("seq" in event) events.push(event);
  return events;
}

const closing = ["agent_end", "save_point", "settled", "compaction_scheduled", "run_carry_over"];
const typesIn = (events: readonly Event[], types: readonly string[]): string[] =>
  events.map(({ type }) => type).filter((type) => types.includes(type));

describe("session compaction", () => {
  it("runs after the invocation that exceeds the window minus the reserve, and the next one sees the summary", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = chatModel();
    const agent = chat(model);
    const options = { runtime, sessionId, userId: "ann", tenantId: "acme" };
    const first = await agent.invoke("one", options);
    expect(typesIn(await eventsOf(runtime, first.runId), closing)).toEqual([
      "agent_end",
      "save_point",
      "settled",
    ]);
    const second = await agent.invoke(`two ${long}`, options);
    const events = await eventsOf(runtime, second.runId);
    expect(typesIn(events, closing)).toEqual(["agent_end", "save_point", "compaction_scheduled"]);
    const scheduled = events.find((event) => event.type === "compaction_scheduled");
    const run = await runtime.find(scheduled?.data.runId ?? "");
    const result = await run?.result();
    expect(result).toMatchObject({ status: "completed", turns: 2, output: { entryId: expect.any(String) } });
    const compaction = await eventsOf(runtime, run?.runId ?? "");
    expect(
      typesIn(compaction, ["session_before_compact", "message_end", "session_compact", ...closing]),
    ).toEqual([
      "session_before_compact",
      "message_end",
      "message_end",
      "session_compact",
      "save_point",
      "settled",
    ]);
    expect((await runtime.list({ kind: "compaction" })).runs).toMatchObject([
      { userId: "ann", tenantId: "acme", agentId: "chat", sessionId },
    ]);
    const path = await runtime.sessions.path(sessionId);
    expect(path.at(-1)).toMatchObject({ type: "compaction", summary: expect.stringContaining("In short.") });
    await agent.invoke("three", options);
    const last = model.calls.at(-1);
    expect(last && textIn(last)).toContain("In short.");
    expect(last && textIn(last)).not.toContain("one");
  });
});
