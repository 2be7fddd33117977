import { describe, expect, test } from "vitest";
import { Agent, auditLog, openRuntime, openStore } from "../../../src/entries/index.ts";
import { messageText } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

function clerk(...script: string[]) {
  const model = scriptedModel(script);
  return { model, agent: new Agent({ name: "clerk", model }) };
}

describe("ids that the caller chooses", () => {
  test("invoke() accepts a session id and a run id of the caller's choice", async () => {
    const runtime = await openRuntime();
    const { agent, model } = clerk("first", "second");
    const chat = { sessionId: "chat-42", runtime };
    expect(await agent.invoke("One", { ...chat, runId: "run_one" })).toMatchObject({
      sessionId: "chat-42",
      runId: "run_one",
    });
    await agent.invoke("Two", chat);
    expect(model.calls[1]?.messages.map(messageText)).toEqual(["One", "first", "Two"]);
    expect((await runtime.find("run_one"))?.sessionId).toBe("chat-42");
    expect((await runtime.list({ sessionId: "chat-42", agentId: "clerk" })).runs).toHaveLength(2);
    await runtime.close();
  });

  const notRun = { code: "invalid_argument", message: expect.stringContaining("invalid run id") };
  const notSession = { code: "invalid_argument", message: expect.stringContaining("invalid session id") };
  const notTask = { code: "invalid_argument", message: expect.stringContaining("invalid task id") };
  const notAgent = { code: "invalid_argument", message: expect.stringContaining("invalid agent name") };

  test.each(["refuse", "replace"] as const)(
    "invoke(), stream() and runUntil() refuse invalid ids before any model call (sameName: %s)",
    async (sameName) => {
      const runtime = await openRuntime({ sameName });
      const { agent, model } = clerk("never");
      await expect(agent.invoke("x", { runtime, sessionId: "../x" })).rejects.toMatchObject(notSession);
      await expect(agent.invoke("x", { runtime, sessionId: "" })).rejects.toMatchObject(notSession);
      await expect(agent.invoke("x", { runtime, runId: "chat-42" })).rejects.toMatchObject(notRun);
      await expect(agent.stream("x", { runtime, runId: "run_" }).result()).rejects.toMatchObject(notRun);
      const until = (): boolean => true;
      await expect(agent.runUntil("x", { runtime, until, sessionId: "" })).rejects.toMatchObject(notSession);
      await expect(agent.runUntil("x", { runtime, until, runId: "goal" })).rejects.toMatchObject(notRun);
      expect(model.calls).toHaveLength(0);
      await runtime.close();
    },
  );

  test("methods of existing runs refuse invalid run, session, task and agent ids", async () => {
    const runtime = await openRuntime();
    const { agent } = clerk("done");
    const run = await agent.submit("x", { runtime });
    await run.result();
    await expect(agent.resume("chat-42", { runtime })).rejects.toMatchObject(notRun);
    await expect(agent.resume("run_other", { runtime })).rejects.toMatchObject({ code: "not_found" });
    await expect(runtime.find("chat-42")).rejects.toMatchObject(notRun);
    await expect(runtime.list({ sessionId: "a//b" })).rejects.toMatchObject(notSession);
    await expect(runtime.list({ agentId: "a b" })).rejects.toMatchObject(notAgent);
    await expect(run.topUp({ maxTurns: 1 }, "root")).rejects.toMatchObject(notTask);
    await expect(run.signal("go", null, "1")).rejects.toMatchObject(notTask);
    await expect(run.reprioritize("t-1", 0)).rejects.toMatchObject(notTask);
    await expect(run.fork({ at: 0, runId: "fork" })).rejects.toMatchObject(notRun);
    await expect(auditLog(await openStore("memory:")).verify("chat-42")).rejects.toMatchObject(notRun);
    await runtime.close();
  });
});
