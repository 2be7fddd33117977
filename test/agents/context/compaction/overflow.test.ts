import { describe, expect, it } from "vitest";
import { Agent, openRuntime, slidingWindow, tool } from "../../../../src/entries/index.ts";
import {
  messageText,
  type Event,
  type HostedAgent,
  type JsonValue,
  type Model,
  type ModelRequest,
  type RunHandle,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel } from "../../../../src/testing/index.ts";
import type { ArchitectureCase } from "../../architecture-cases/architecture-case.ts";
import { InProcessServices } from "../../architecture-cases/in-process-services.ts";
import { singleAgentCases } from "../../architecture-cases/single-agent.ts";
import { teamCases } from "../../architecture-cases/teams.ts";

const long = "word ".repeat(800);
const textIn = ({ messages }: Pick<ModelRequest, "messages">): string =>
  messages.map((message) => messageText(message)).join("\n");
const isSummary = (request: ModelRequest): boolean => textIn(request).includes("<conversation>");

function overflow(): Error {
  return Object.assign(new Error("prompt is too long"), { status: 400 });
}

/** The services of a case, whose models refuse a conversation that contains the long text. */
class SmallServices extends InProcessServices {
  overflows = 0;
  summaries = 0;

  override model(role: string): Model {
    const model = super.model(role);
    const generate: Model["generate"] = async (request, options) => {
      if (isSummary(request)) {
        this.summaries++;
        return {
          message: { role: "assistant", content: [{ type: "text", text: "In short." }] },
          stopReason: "stop",
          usage: { inputTokens: 10, outputTokens: 3 },
          modelId: role,
        };
      }
      if (textIn(request).includes(long)) {
        this.overflows++;
        throw overflow();
      }
      return model.generate(request, options);
    };
    return {
      ...model,
      generate,
      async *stream(request, options) {
        yield { type: "finish", ...(await generate(request, options)) };
      },
    };
  }
}

async function eventsOf(run: RunHandle): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  return events;
}

/** Runs the agent of a case on a conversation whose first question does not fit. */
async function runOn({ agent, input, reply }: ArchitectureCase, other?: JsonValue) {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const services = new SmallServices(reply);
  const hosted: HostedAgent = agent(services);
  const conversation = [
    { role: "user", content: `First: ${long}` },
    { role: "assistant", content: "Done." },
    { role: "user", content: input },
  ];
  const run = await runtime.submit(hosted, other ?? (conversation as unknown as JsonValue));
  const result = await run.result();
  const events = await eventsOf(run);
  return { result, services, events };
}

// The information agent reads items, and no conversation.
const cases = Object.entries({ ...singleAgentCases, ...teamCases }).filter(
  ([name]) => name !== "information",
);

/** Teams that end in another way, because the error of a member is a result for the team. */
const endOfTeams: Readonly<Record<string, string | undefined>> = {
  "actor-critic": "child_failed",
  debate: "child_failed",
  swarm: "child_failed",
  "blackboard in turn": undefined,
};

describe("a request that exceeds the context window", () => {
  it.each(cases)(
    "a request that exceeds the context window is compacted once and sent again in the architecture %s",
    async (_name, each) => {
      const { result, services, events } = await runOn(each);
      expect({ status: result.status, output: result.output, error: result.error }).toEqual({
        status: "completed",
        output: each.output,
        error: null,
      });
      // Every refused call is followed by exactly one compaction with one summary.
      const compactions = events.filter(({ type }) => type === "session_compact");
      expect(services.overflows).toBeGreaterThan(0);
      expect([compactions.length, services.summaries]).toEqual([services.overflows, services.overflows]);
    },
  );

  it.each(cases)(
    "a request that exceeds the context window ends the run with model_context_overflow if nothing can be cut: %s",
    async (name, each) => {
      const { result, services, events } = await runOn(each, `${each.input} ${long}`);
      const failures = events.flatMap((event) =>
        event.type === "agent_error" ? [event.data.failure.code] : [],
      );
      expect(failures[0]).toBe("model_context_overflow");
      expect(result.error?.code).toBe(name in endOfTeams ? endOfTeams[name] : "model_context_overflow");
      expect(result.status).not.toBe("completed");
      expect(services.summaries).toBe(0);
    },
  );
});

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object", properties: {} },
  execute: () => "seen",
});

function smallModel(isTooLong: (request: ModelRequest) => boolean): ScriptedModel {
  let turns = 0;
  return scriptedModel(
    Array.from({ length: 20 }, () => (request: ModelRequest) => {
      if (isSummary(request)) return "In short.";
      if (isTooLong(request)) throw overflow();
      return turns++ === 0 ? { toolCalls: [{ name: "look", input: {} }] } : "answer";
    }),
  );
}

const conversation = [
  { role: "user", content: `First: ${long}` },
  { role: "assistant", content: "Done." },
  { role: "user", content: "Now look." },
] as const;

describe("the ReAct loop after an overflow", () => {
  it("the ReAct loop after an overflow records the failed call, the compaction and the new call, and keeps the shorter window", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = smallModel((request) => textIn(request).includes(long));
    const agent = new Agent({ name: "small", model, tools: [look] });
    const run = await agent.submit(conversation, { runtime });
    expect(await run.result()).toMatchObject({ status: "completed", output: "answer" });
    // One overflow: the second turn continues from the shorter window.
    expect(model.calls.filter((request) => !isSummary(request))).toHaveLength(3);
    const types = (await eventsOf(run)).map(({ type }) => type);
    const order = [
      "session_before_compact",
      "session_compact",
      "compaction_requested",
      "compaction_scheduled",
    ];
    expect(types.filter((type) => order.includes(type))).toEqual(order);
    expect(types).not.toContain("settled");
  });

  it("the ReAct loop after an overflow ends with model_context_overflow if the shorter request exceeds the window, too", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = smallModel(() => true);
    const agent = new Agent({ name: "tiny", model });
    const result = await agent.invoke(conversation, { runtime });
    expect(result).toMatchObject({ status: "failed", error: { code: "model_context_overflow" } });
    expect(model.calls.map(isSummary)).toEqual([false, true, false]);
  });

  it("the ReAct loop after an overflow uses the strategy of the agent, and pays for no summary", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = smallModel((request) => textIn(request).includes(long));
    const strategy = () => ({ ...slidingWindow({ maxMessages: 2 }), isDue: () => false });
    const agent = new Agent({ name: "sliding", model, tools: [look], compaction: { strategy } });
    expect((await agent.invoke(conversation, { runtime })).output).toBe("answer");
    expect(model.calls.slice(0, 3).some(isSummary)).toBe(false);
  });

  it("the ReAct loop after an overflow fails with model_context_overflow if compaction is off", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = smallModel((request) => textIn(request).includes(long));
    const agent = new Agent({ name: "off", model, tools: [look], compaction: false });
    const result = await agent.invoke(conversation, { runtime });
    expect(result).toMatchObject({ status: "failed", error: { code: "model_context_overflow" } });
    expect(model.calls).toHaveLength(1);
  });
});

describe("a session that has outgrown the context window", () => {
  /** A model with a window that tests can change. It counts four characters of a request as a token. */
  function resizable(size: { tokens: number }): ScriptedModel {
    const answer = (request: ModelRequest) => {
      if (textIn(request).length / 4 > size.tokens) return { error: overflow() };
      return isSummary(request) ? "In short." : `answer ${"word ".repeat(160)}`;
    };
    return scriptedModel(Array.from({ length: 80 }, () => answer));
  }

  it("a session that has outgrown the context window is summarised without its middle, so that later invocations fit", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const size = { tokens: 100_000 };
    const model = resizable(size);
    const agent = new Agent({ name: "grown", model, compaction: { keepRecentTokens: 300 } });
    const sessionId = "grown";
    for (let index = 0; index < 14; index++) await agent.invoke(`question ${index}`, { runtime, sessionId });
    size.tokens = 1_500;
    const { runId, status } = await agent.invoke("What now?", { runtime, sessionId });
    expect(status).toBe("completed");
    const events = await eventsOf((await runtime.find(runId)) as RunHandle);
    const scheduled = events.find((event) => event.type === "compaction_scheduled");
    const compaction = await runtime.find(scheduled?.data.runId ?? "");
    expect((await compaction?.result())?.status).toBe("completed");
    const summaries = model.calls.filter(isSummary).map(textIn);
    expect(summaries.at(-1)).toMatch(/question 0[^]*characters omitted[^]*answer/);
    const calls = model.calls.length;
    expect((await agent.invoke("And now?", { runtime, sessionId })).status).toBe("completed");
    expect(model.calls.slice(calls).filter((request) => !isSummary(request))).toHaveLength(1);
  });

  it("a session that has outgrown the context window is not summarised if no part of the conversation fits", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const size = { tokens: 100_000 };
    const model = resizable(size);
    const agent = new Agent({ name: "tiny", model, compaction: { keepRecentTokens: 300 } });
    const sessionId = "tiny";
    for (let index = 0; index < 6; index++) await agent.invoke(`question ${index}`, { runtime, sessionId });
    size.tokens = 1;
    const result = await agent.invoke("What now?", { runtime, sessionId });
    expect(result).toMatchObject({ status: "failed", error: { code: "model_context_overflow" } });
  });
});
