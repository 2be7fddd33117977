import { describe, expect, test } from "vitest";
import { formatAgentId, RunMeta, Transcript, userMessage, type RunFacts } from "../../src/kernel/index.ts";
import { RunJournal, TaskContext, memoryStore, sha256 } from "../../src/runtime/index.ts";
import { FakeClock, scriptedModel, sequentialIds } from "../../src/testing/index.ts";
import { ownRun, rootTask, sessionId } from "../../src/testing/store-fixtures.ts";

async function setup() {
  const store = memoryStore({ hash: sha256 });
  const lease = await ownRun(store);
  const clock = new FakeClock();
  const source = { taskId: rootTask, agentId: formatAgentId({ name: "tester" }), parentId: null };
  const facts: RunFacts = { userId: null, sessionId, runId: lease.runId, metadata: {} };
  const open = async () => {
    const journal = await RunJournal.load({ store, lease, clock, hash: sha256 });
    const meta = RunMeta.standalone({ clock, ids: sequentialIds("x"), runId: lease.runId });
    const model = scriptedModel(["one", "two"]);
    return new TaskContext({ journal, source, meta, facts, clock, hash: sha256, model, tools: [] });
  };
  return { open, clock };
}

describe("a task's context", () => {
  test("J1: a step runs once; after that its value is read", async () => {
    const { open } = await setup();
    const first = await open();
    expect(await first.step("roll", async () => 4)).toBe(4);
    const second = await open();
    const again = second.step("roll", async () => {
      throw new Error("ran again");
    });
    expect(await again).toBe(4);
  });

  test("J2: two calls open at once in one scope are refused at the first run", async () => {
    const ctx = await (await setup()).open();
    const first = ctx.step("one", async () => 1);
    await expect(ctx.step("two", async () => 2)).rejects.toMatchObject({ code: "journal_ambiguous" });
    expect(await first).toBe(1);
  });

  test("J5: a fault that was delivered is delivered again, and its step does not run again", async () => {
    const { open } = await setup();
    const fail = async () => {
      throw new Error("out of ink");
    };
    await expect((await open()).step("print", fail)).rejects.toThrow("out of ink");
    await expect((await open()).step("print", async () => "fine")).rejects.toThrow("out of ink");
  });

  test("J10: a value that is not JSON is refused at the first run", async () => {
    const ctx = await (await setup()).open();
    const date = async () => new Date(0) as unknown as string;
    await expect(ctx.step("when", date)).rejects.toMatchObject({ code: "not_json" });
  });

  test("time is read once and kept", async () => {
    const { open, clock } = await setup();
    const before = await (await open()).now();
    await clock.advance(5_000);
    expect(await (await open()).now()).toBe(before);
  });

  test("J4: a longer transcript than the recorded one is a mismatch", async () => {
    const { open } = await setup();
    const transcript = Transcript.of([userMessage("hello")]);
    await (await open()).llm({ transcript });
    const other = (await open()).llm({ transcript: transcript.append(userMessage("again")) });
    await expect(other).rejects.toMatchObject({ code: "journal_mismatch" });
  });

  test("J4: instructions, tools and ephemeral messages may change between attempts", async () => {
    const { open } = await setup();
    const transcript = Transcript.of([userMessage("hello")]);
    const first = await (await open()).llm({ transcript, instructions: "be brief" });
    const ephemeral = [userMessage("the window is open")];
    const second = await (await open()).llm({ transcript, instructions: "be long", ephemeral });
    expect(second).toEqual(first);
  });

  test("C2: a check passes while recorded steps remain, and throws at the first that is not there", async () => {
    const { open } = await setup();
    await (await open()).step("done", async () => 1);
    const ctx = await open();
    ctx.meta.cancellation.cancel("stop");
    ctx.check();
    expect(await ctx.step("done", async () => 2)).toBe(1);
    expect(() => ctx.check()).toThrow("stop");
    await expect(ctx.step("new", async () => 3)).rejects.toMatchObject({ code: "cancelled" });
  });

  test("a dropped context's calls never settle and write nothing", async () => {
    const { open } = await setup();
    const ctx = await open();
    const gate = Promise.withResolvers<number>();
    let settled = false;
    void ctx.step("slow", () => gate.promise).finally(() => (settled = true));
    await new Promise(setImmediate);
    ctx.drop();
    gate.resolve(1);
    await new Promise(setImmediate);
    expect(settled).toBe(false);
    expect(await (await open()).step("slow", async () => 2)).toBe(2);
  });
});
