import { describe, expect, it } from "vitest";
import { Agent, openRuntime, tool } from "../../../../src/entries/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import {
  chat,
  chatModel,
  closing,
  eventsOf,
  fill,
  follow,
  hasCompaction,
  hold,
  isSummary,
  long,
  sessionId,
  textIn,
  typesIn,
} from "./compacted-session.ts";

describe("session compaction", () => {
  it("session compaction runs after an invocation exceeds the window minus the reserve, and the next one sees the summary", async () => {
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

  it("session compaction accepts input during the compaction and starts it afterwards, with the summary and without steering", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = chatModel();
    const held = hold(model, isSummary);
    const agent = chat(model);
    const options = { runtime, sessionId, userId: "ann" };
    await fill(agent, options);
    await held.reached;
    expect(await agent.phase(sessionId, { runtime })).toBe("compaction");
    const next = await agent.submit("three", options);
    const more = await agent.submit("four", options);
    expect(more.runId).toBe(next.runId);
    expect((await runtime.list({ status: "pending" })).runs).toMatchObject([
      { runId: next.runId, waitsFor: ["compaction"] },
    ]);
    await expect(agent.submit("other", { ...options, userId: "bob" })).rejects.toMatchObject({
      code: "agent_busy",
    });
    held.release();
    expect((await next.result()).status).toBe("completed");
    const [compaction] = (await runtime.list({ kind: "compaction" })).runs.toReversed();
    const log = await eventsOf(runtime, compaction?.runId ?? "");
    expect(typesIn(log, ["session_compact", "run_steer", ...closing])).toEqual([
      "session_compact",
      "save_point",
    ]);
    const call = model.calls.find((request) => textIn(request).includes("three") && !isSummary(request));
    expect(call && textIn(call)).toContain("In short.");
    const messages = await eventsOf(runtime, next.runId);
    expect(typesIn(messages, ["user_message"])).toHaveLength(1);
  });

  it("session compaction writes no entry for a failed, an empty or a cut summary, and tries again after the next invocation", async () => {
    const failures = [
      () => {
        throw Object.assign(new Error("bad key"), { status: 401 });
      },
      () => "   ",
      () => ({ text: "cut", stopReason: "length" }),
    ];
    for (const failure of failures) {
      await using runtime = await openRuntime({ unknownPrice: "ignore" });
      let fails = true;
      const agent = chat(chatModel(() => (fails ? failure() : "In short.")));
      const options = { runtime, sessionId };
      const { compaction } = await fill(agent, options);
      expect(await compaction.result()).toMatchObject({
        status: "failed",
        output: { skipped: "no_summary", failure: { message: expect.any(String) } },
      });
      expect(typesIn(await eventsOf(runtime, compaction.runId), ["compaction_skipped", ...closing])).toEqual([
        "compaction_skipped",
        "settled",
      ]);
      expect(await hasCompaction(runtime)).toBe(false);
      await compaction.resume();
      expect((await compaction.result()).status).toBe("failed");
      fails = false;
      const { compaction: second } = await follow(runtime, await agent.invoke("three", options));
      expect((await second.result()).status).toBe("completed");
      expect(await hasCompaction(runtime)).toBe(true);
    }
  });

  it("session compaction ends without an entry when the budget of the compaction is exhausted", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = chatModel();
    const compaction = { reserveTokens: 1_000, keepRecentTokens: 600, budget: { maxTurns: 1 } };
    const { compaction: run } = await fill(chat(model, { compaction, budget: { maxTurns: 5 } }), {
      runtime,
      sessionId,
    });
    // The cut divides a turn, so that two summaries are necessary.
    const result = await run.result();
    expect(result.output).toMatchObject({ skipped: "no_summary", failure: { code: "budget_exhausted" } });
    expect(model.calls.filter(isSummary)).toHaveLength(1);
    expect(await hasCompaction(runtime)).toBe(false);
  });

  it("session compaction gives its run three turns by default, independent of the budget of the agent", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const { compaction } = await fill(chat(chatModel(), { budget: { maxTurns: 1 } }), { runtime, sessionId });
    expect((await compaction.result()).status).toBe("completed");
    const [start] = await eventsOf(runtime, compaction.runId);
    expect(start?.type === "run_start" && start.data.supervision.executionBudget).toMatchObject({
      maxTurns: 3,
    });
  });

  it("session compaction follows an invocation whose tool requested it, with the instructions of the tool and of the caller", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = scriptedModel([
      `one ${long}`,
      { toolCalls: [{ name: "tidy", input: {} }] },
      `two ${long}`,
      "In short.",
      "In short.",
    ]);
    const tidy = tool({
      name: "tidy",
      description: "Tidies",
      inputSchema: { type: "object", properties: {} },
      execute: (_input, { ctx }) => {
        ctx.requestCompaction("Keep the names.");
        return "ok";
      },
    });
    const agent = chat(model, { tools: [tidy] });
    const options = { runtime, sessionId };
    const first = await agent.invoke("one", options);
    expect(typesIn(await eventsOf(runtime, first.runId), closing).at(-1)).toBe("settled");
    const second = await agent.invoke("two", { ...options, compactionInstructions: "Keep the numbers." });
    const { compaction } = await follow(runtime, second);
    expect((await compaction.result()).status).toBe("completed");
    const summary = model.calls.find(isSummary);
    expect(summary && textIn(summary)).toContain("Keep the numbers.\n\nKeep the names.");
  });

  it("session compaction is never automatic with an unknown window, and one event of the session says so", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = scriptedModel(Array.from({ length: 9 }, () => `answer ${long}`));
    const agent = chat(model);
    const logs: string[][] = [];
    for (const input of ["one", "two", "three", "four"]) {
      const { runId } = await agent.invoke(input, { runtime, sessionId });
      logs.push(typesIn(await eventsOf(runtime, runId), ["compaction_skipped", "compaction_scheduled"]));
    }
    expect(logs).toEqual([[], ["compaction_skipped"], [], []]);
    expect((await runtime.list({ kind: "compaction" })).runs).toEqual([]);
  });

  it("session compaction is off with compaction: false, also if code requests it", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const agent = chat(chatModel(), { compaction: false });
    const options = { runtime, sessionId };
    await agent.invoke("one", options);
    const { runId } = await agent.invoke(`two ${long}`, options);
    expect(typesIn(await eventsOf(runtime, runId), closing).at(-1)).toBe("settled");
    await expect(runtime.sessions.compact(sessionId)).rejects.toMatchObject({ code: "unsupported" });
  });

  it("session compaction refuses invalid values for the reserve, the part to keep, the budget and the form", () => {
    const bad: unknown[] = [
      { reserveTokens: Number.NaN },
      { reserveTokens: -1 },
      { keepRecentTokens: 0 },
      { keepRecentTokens: 1.5 },
      { budget: { maxTurns: Number.NaN } },
      { strategy: "sliding" },
      { fileUse: ["read"] },
      { reserveToken: 1 },
      () => undefined,
      true,
      null,
    ];
    for (const compaction of bad) expect(() => chat(chatModel(), { compaction })).toThrow(/invalid|unknown/);
  });

  it("session compaction keeps less than a small window, so that the session fits afterwards", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const agent = chat(chatModel(), { compaction: {} });
    const { compaction } = await fill(agent, { runtime, sessionId });
    expect((await compaction.result()).status).toBe("completed");
    const { tokens } = await runtime.sessions.contextUsage(sessionId);
    expect(tokens).toBeLessThan(1_000);
  });

  it("session compaction follows an invocation that a limit or a cancel has stopped", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const options = { runtime, sessionId };
    const agent = chat(chatModel());
    await agent.invoke("one", options);
    const stopped = await agent.invoke(`two ${long}`, { ...options, budget: { maxTurns: 0 } });
    expect(stopped.status).toBe("budget_exhausted");
    const { compaction } = await follow(runtime, stopped);
    expect((await compaction.result()).status).toBe("completed");
    const path = await runtime.sessions.path(sessionId);
    expect(path.at(-1)?.type).toBe("compaction");
  });

  it("session compaction does not follow an invocation whose history is not kept", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const agent = chat(chatModel());
    for (const retention of ["none", "run"] as const) {
      const { runId } = await agent.invoke(`one ${long}${long}`, { runtime, retention });
      expect(typesIn(await eventsOf(runtime, runId), closing)).toEqual([
        "agent_end",
        "save_point",
        "settled",
      ]);
    }
  });

  it("session compaction is left to a later invocation while another agent works in the session", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const options = { runtime, sessionId };
    const agent = chat(chatModel());
    await agent.invoke("one", options);
    const slow = scriptedModel(["done"]);
    const held = hold(slow, () => true);
    const other = new Agent({ name: "other", model: slow });
    const beside = await other.submit("beside", options);
    const second = await agent.invoke(`two ${long}`, options);
    expect(typesIn(await eventsOf(runtime, second.runId), closing)).toEqual([
      "agent_end",
      "save_point",
      "settled",
    ]);
    held.release();
    await beside.result();
    const { compaction } = await follow(runtime, await agent.invoke("three", options));
    expect((await compaction.result()).status).toBe("completed");
  });

  it("session compaction frees the runs that wait for it when it is cancelled, and cannot be resumed", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = chatModel();
    const held = hold(model, isSummary);
    const agent = chat(model);
    const options = { runtime, sessionId };
    const { compaction } = await fill(agent, options);
    await held.reached;
    const next = await agent.submit("three", options);
    await compaction.cancel("not now");
    expect((await compaction.result()).status).toBe("cancelled");
    expect((await next.result()).status).toBe("completed");
    expect(await hasCompaction(runtime)).toBe(false);
    held.release();
    const { compaction: second } = await follow(runtime, next);
    expect((await second.result()).status).toBe("completed");
    await compaction.resume();
    expect((await compaction.result()).status).toBe("cancelled");
  });
});

describe("a session compaction that has ended", () => {
  it("an ended compaction leaves the input that it received to a run of its own if it is cancelled", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = chatModel();
    const held = hold(model, isSummary);
    const { compaction } = await fill(chat(model), { runtime, sessionId });
    await held.reached;
    await compaction.steer("three");
    await compaction.cancel("not now");
    expect((await compaction.result()).status).toBe("cancelled");
    const events = await eventsOf(runtime, compaction.runId);
    const carried = events.find((event) => event.type === "run_carry_over");
    const next = await runtime.find(carried?.data.runId ?? "");
    held.release();
    expect((await next?.result())?.status).toBe("completed");
    expect(textIn(model.calls.find((request) => textIn(request).includes("three")) as never)).toContain(
      "two",
    );
  });

  it("an ended compaction has no input that can be sent again if it failed", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const { compaction } = await fill(chat(chatModel(() => "")), { runtime, sessionId });
    expect((await compaction.result()).status).toBe("failed");
    await expect(runtime.sessions.resend(compaction.runId)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("is a compaction"),
    });
  });
});

describe("the event settled", () => {
  it("the event settled is absent while input waits, and is in the log of the run that reads the last input", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = scriptedModel(["one", "two"]);
    const held = hold(model, () => true);
    const agent = new Agent({ name: "late", model, maxTurns: 1 });
    const run = await agent.submit("one", { runtime, sessionId });
    await held.reached;
    await run.followUp("more");
    held.release();
    await run.result();
    const log = await eventsOf(runtime, run.runId);
    expect(typesIn(log, closing)).toEqual(["agent_end", "save_point", "run_carry_over"]);
    const carried = log.find((event) => event.type === "run_carry_over");
    const next = await runtime.find(carried?.data.runId ?? "");
    await next?.result();
    expect(typesIn(await eventsOf(runtime, next?.runId ?? ""), closing)).toEqual([
      "agent_end",
      "save_point",
      "settled",
    ]);
  });
});
