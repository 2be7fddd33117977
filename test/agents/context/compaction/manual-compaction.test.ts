import { describe, expect, it } from "vitest";
import { Agent, openRuntime } from "../../../../src/entries/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import {
  chat,
  chatModel,
  eventsOf,
  hasCompaction,
  hold,
  isSummary,
  sessionId,
  textIn,
  typesIn,
} from "./compacted-session.ts";

describe("sessions.compact(id, { instructions })", () => {
  it("sessions.compact() starts a run for the owner of the session, once at a time, and reports when there is nothing to compact", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = Object.assign(chatModel(), { contextWindow: 100_000 });
    const held = hold(model, isSummary);
    const agent = chat(model);
    const options = { runtime, sessionId, userId: "ann", tenantId: "acme" };
    await agent.invoke("one", options);
    await agent.invoke("two", options);
    const mine = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const run = await mine.sessions.compact(sessionId, { instructions: "Keep the names." });
    await expect(runtime.sessions.compact(sessionId)).rejects.toMatchObject({
      code: "agent_busy",
      message: expect.stringContaining(run.runId),
    });
    await held.reached;
    held.release();
    expect(await run.result()).toMatchObject({
      status: "completed",
      output: { entryId: expect.any(String) },
    });
    const summary = model.calls.find(isSummary);
    expect(summary && textIn(summary)).toContain("Keep the names.");
    expect((await runtime.list({ kind: "compaction" })).runs[0]).toMatchObject({
      userId: "ann",
      tenantId: "acme",
    });
    const again = await mine.sessions.compact(sessionId);
    expect(await again.result()).toMatchObject({
      status: "completed",
      output: { skipped: "nothing_to_compact" },
    });
    const log = await eventsOf(runtime, again.runId);
    expect(typesIn(log, ["session_before_compact", "compaction_skipped", "settled"])).toHaveLength(3);
  });

  it("sessions.compact() refuses unknown sessions, sessions of others, busy sessions and invalid options", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = scriptedModel(["one", "two"]);
    const held = hold(model, (request) => textIn(request).includes("two"));
    const agent = new Agent({ name: "slow", model });
    const options = { runtime, sessionId, userId: "ann", tenantId: "acme" };
    await agent.invoke("one", options);
    const { sessions } = runtime;
    await expect(sessions.compact("nowhere")).rejects.toMatchObject({ code: "not_found" });
    const other = runtime.forTenant({ tenantId: "umbrella" }).sessions;
    await expect(other.compact(sessionId)).rejects.toMatchObject({ code: "not_found" });
    const invalid = [{ instructions: "" }, { instructions: 7 }, { instruction: "x" }, { summary: "x" }];
    for (const bad of [...invalid, null, "Keep the names."])
      await expect(sessions.compact(sessionId, bad as never)).rejects.toMatchObject({
        code: "invalid_argument",
      });
    const busy = await agent.submit("two", options);
    await expect(sessions.compact(sessionId)).rejects.toMatchObject({ code: "agent_busy" });
    held.release();
    await busy.result();
  });

  it("sessions.compact(id, { instructions }) compacts a fork without a change of its origin", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = Object.assign(chatModel(), { contextWindow: 100_000 });
    const agent = chat(model);
    await agent.invoke("one", { runtime, sessionId });
    await agent.invoke("two", { runtime, sessionId });
    const fork = await runtime.sessions.fork(sessionId);
    const run = await runtime.sessions.compact(fork);
    expect((await run.result()).output).toMatchObject({ entryId: expect.any(String) });
    expect(await hasCompaction(runtime, fork)).toBe(true);
    expect(await hasCompaction(runtime)).toBe(false);
  });
});
