import { describe, expect, test } from "vitest";
import {
  formatSessionId,
  HistoryRetention,
  messageText,
  userMessage,
  type HostedAgent,
  type StoredEntry,
  type RunContext,
  type SessionId,
  type Store,
} from "../../../src/kernel/index.ts";
import { agent, gate, setUp, settle } from "../runtime-setup.ts";

/** Reports a session entry for the end of the task, as an agent that keeps a conversation does. */
function reportEntry(ctx: RunContext, text: string): void {
  const { facts, taskId, agentId } = ctx;
  const { sessionId, runId } = facts;
  const base = { id: `${runId}/${taskId}/1`, parentId: null, at: 1, runId, taskId };
  const entry = { type: "message", ...base, message: userMessage(text) } as const;
  ctx.report({ sessions: [{ type: "append", sessionId, agentId, entry, visibility: "visible" }] });
}

function talker(
  name: string,
  run: (ctx: RunContext) => Promise<string>,
  more: Partial<HostedAgent> = {},
): HostedAgent {
  return agent(
    name,
    async (ctx) => {
      reportEntry(ctx, `${name} was here`);
      return run(ctx);
    },
    { messageOf: (input) => userMessage(JSON.stringify(input)), ...more },
  );
}

async function tasksIn(store: Store, sessionId: SessionId): Promise<unknown[]> {
  const entries: readonly StoredEntry[] = await store.sessions.read(sessionId, { includeHidden: true });
  return entries.map(({ entry: { taskId }, visibility }) => `${taskId} ${visibility}`);
}

describe("the session entries of the root task", () => {
  test("the session entries of the root task stay visible after the end of a run with retention PERMANENT, the default", async () => {
    const { runtime, store } = await setUp();
    const run = await runtime.submit(
      talker("clerk", async () => "done"),
      "hi",
    );
    await run.result();
    expect(await tasksIn(store, run.sessionId)).toEqual(["t0 visible", "t0 visible"]);
  });

  test("the session entries of the root task exist until the run ends with retention RUN", async () => {
    const { runtime, store } = await setUp();
    const mayEnd = gate();
    const clerk = talker("clerk", async (ctx) =>
      ctx.step("work", async () => mayEnd.promise.then(() => "done")),
    );
    const run = await runtime.submit(clerk, "hi", { retention: HistoryRetention.RUN });
    await settle();
    expect(await tasksIn(store, run.sessionId)).toEqual(["t0 pending"]);
    mayEnd.resolve();
    await run.result();
    expect(await tasksIn(store, run.sessionId)).toEqual([]);
  });

  test("R14: retention RUN also removes the session entries of a failed or cancelled root task, which can still be resumed", async () => {
    const { runtime, store } = await setUp({ runRetry: { maxRetries: 0 } });
    let isBroken = true;
    const clerk = talker("clerk", async (ctx) => {
      if (ctx.input === "wait") await ctx.waitForSignal("never");
      if (isBroken) throw new Error("broken");
      return "done";
    });
    const options = { retention: HistoryRetention.RUN };
    const failed = await runtime.submit(clerk, "fail", options);
    expect((await failed.result()).status).toBe("failed");
    expect(await tasksIn(store, failed.sessionId)).toEqual([]);
    const stopped = await runtime.submit(clerk, "wait", options);
    await settle();
    await stopped.cancel();
    expect((await stopped.result()).status).toBe("cancelled");
    expect(await tasksIn(store, stopped.sessionId)).toEqual([]);
    isBroken = false;
    await failed.resume();
    expect((await failed.result()).status).toBe("completed");
    expect(await tasksIn(store, failed.sessionId)).toEqual([]);
  });

  test("the session entries of the root task are never written with retention NONE", async () => {
    const { runtime, store } = await setUp();
    const mayEnd = gate();
    const clerk = talker("clerk", async (ctx) =>
      ctx.step("work", async () => mayEnd.promise.then(() => "done")),
    );
    const run = await runtime.submit(clerk, "hi", { retention: HistoryRetention.NONE });
    await settle();
    expect(await tasksIn(store, run.sessionId)).toEqual([]);
    mayEnd.resolve();
    expect((await run.result()).output).toBe("done");
    expect(await tasksIn(store, run.sessionId)).toEqual([]);
  });
});

describe("the session entries of a child task", () => {
  async function runChild(retention?: HistoryRetention) {
    const bench = await setUp();
    const mayEnd = gate();
    const helper = talker("helper", async () => "helped");
    const lead = talker(
      "lead",
      async (ctx) => {
        const spawned = await ctx.spawn(helper.id, "help", retention === undefined ? {} : { retention });
        if (spawned.kind === "spawned") await ctx.join(spawned.handle);
        const sibling = await ctx.spawn(helper.id, "help", { retention: HistoryRetention.PERMANENT });
        if (sibling.kind === "spawned") await ctx.join(sibling.handle);
        return ctx.step("work", async () => mayEnd.promise.then(() => "done"));
      },
      { subAgents: [helper] },
    );
    const run = await bench.runtime.submit(lead, "hi");
    await settle();
    const during = await tasksIn(bench.store, run.sessionId);
    mayEnd.resolve();
    await run.result();
    return { during, after: await tasksIn(bench.store, run.sessionId) };
  }

  const kept = ["t0 visible", "t2 visible", "t0 visible"];

  test("the session entries of a child task with retention RUN exist until the run ends; those of a PERMANENT sibling stay", async () => {
    const { during, after } = await runChild();
    expect(during).toEqual(["t0 pending", "t1 visible", "t2 visible"]);
    expect(after).toEqual(kept);
  });

  test("the session entries of a child task are never written with retention NONE", async () => {
    const { during, after } = await runChild(HistoryRetention.NONE);
    expect(during).toEqual(["t0 pending", "t2 visible"]);
    expect(after).toEqual(kept);
  });

  test("the session entries of a child task stay after the run with retention PERMANENT", async () => {
    const { after } = await runChild(HistoryRetention.PERMANENT);
    expect(after).toEqual(["t0 visible", "t1 visible", "t2 visible", "t0 visible"]);
  });
});

test("N2: entries that a child writes to the session of the run are not part of the root task's history", async () => {
  const { runtime, store } = await setUp();
  const helper = talker("helper", async () => "helped");
  const lead = agent(
    "lead",
    async (ctx) => {
      const turn = await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      const spawned = await ctx.spawn(helper.id, "help", { retention: HistoryRetention.PERMANENT });
      if (spawned.kind === "spawned") await ctx.join(spawned.handle);
      return [...turn.history].map(messageText);
    },
    { subAgents: [helper], messageOf: (input) => userMessage(input as string) },
  );
  const { sessionId, ...first } = await (await runtime.submit(lead, "one")).result();
  const second = await (await runtime.submit(lead, "two", { sessionId })).result();
  const third = await (await runtime.submit(lead, "three", { sessionId })).result();
  expect([first.output, second.output, third.output]).toEqual([[], ["one"], ["one", "two"]]);
  expect(await tasksIn(store, sessionId)).toContain("t1 visible");
});

test("retention RUN removes the entries of a child from every session that the child wrote to", async () => {
  const { runtime, store } = await setUp();
  const elsewhere = formatSessionId("elsewhere");
  const writer = agent("writer", async (ctx) => {
    const { runId } = ctx.facts;
    const base = { id: "e1", parentId: null, at: 1, runId, taskId: ctx.taskId };
    const entry = { type: "message", ...base, message: userMessage("hi") } as const;
    const change = { type: "append", sessionId: elsewhere, agentId: ctx.agentId, entry } as const;
    ctx.report({ sessions: [{ ...change, visibility: "visible" }] });
  });
  const lead = agent(
    "lead",
    async (ctx) => {
      const spawned = await ctx.spawn(writer.id, null);
      if (spawned.kind === "spawned") await ctx.join(spawned.handle);
      return (await store.sessions.read(elsewhere)).length;
    },
    { subAgents: [writer] },
  );
  await (await runtime.submit(lead, null)).result();
  expect(await tasksIn(store, elsewhere)).toEqual([]);
});

describe("the journal and the event log of a run after retention NONE", () => {
  const secret = "the secret of the helper";

  async function runWithErasedChild(status: "completed" | "failed") {
    const bench = await setUp({ runRetry: { maxRetries: 0 } });
    const helper = agent("helper", async (ctx) => {
      await ctx.step("look", async () => secret);
      if (status === "failed") throw new Error(secret);
      return "the answer";
    });
    const lead = agent(
      "lead",
      async (ctx) => {
        const spawned = await ctx.spawn(helper.id, secret, { retention: HistoryRetention.NONE });
        if (spawned.kind === "refused") return null;
        const outcome = await ctx.join(spawned.handle);
        await ctx.step("own", async () => "the lead's own");
        if (status === "failed") throw new Error("the helper did not help");
        return outcome.output;
      },
      { subAgents: [helper] },
    );
    const run = await bench.runtime.submit(lead, "hi");
    const result = await run.result();
    const events = await bench.events(run.runId);
    const steps = [];
    for await (const commit of bench.store.journal.read(run.runId)) steps.push(...(commit.steps ?? []));
    return { ...bench, run, result, events, steps };
  }

  test("retention NONE of a child removes its content after the run, and keeps outcome, step names and a valid hash chain", async () => {
    const { store, run, result, events, steps } = await runWithErasedChild("completed");
    expect(result.output).toBe("the answer");
    const helpers = steps.filter(({ taskId }) => taskId === "t1");
    expect(helpers.map(({ name, outcome }) => [name, outcome])).toEqual([
      ["look", { kind: "ok", value: null }],
    ]);
    expect(JSON.stringify(events)).not.toContain(secret);
    expect(JSON.stringify(steps)).toContain("the lead's own");
    expect(await store.events.verify(run.runId)).toMatchObject({ ok: true });
  });

  test("R14: retention NONE of a child removes its content also when the run failed, and the run can be resumed", async () => {
    const { run, result, steps } = await runWithErasedChild("failed");
    expect(result.status).toBe("failed");
    expect(steps.find(({ taskId }) => taskId === "t1")?.outcome).toEqual({ kind: "ok", value: null });
    await run.resume();
    expect((await run.result()).status).toBe("failed");
  });

  test("a run with a child of retention NONE still returns its output to a late caller, but cannot be forked", async () => {
    const { runtime, events } = await setUp();
    const clerk = agent("clerk", async (ctx) => {
      if (ctx.input === "stop") ctx.report({ interruption: { status: "max_turns", reason: "enough" } });
      return "the answer";
    });
    const run = await runtime.submit(clerk, "a question", { retention: HistoryRetention.NONE });
    await settle();
    expect((await run.result()).output).toBe("the answer");
    expect(JSON.stringify(await events(run.runId))).not.toContain("a question");
    await expect(run.fork({ at: 0 })).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

test("a child of a root with retention NONE leaves no content in the log, although it was spawned as PERMANENT", async () => {
  const { runtime } = await setUp();
  const child = agent("child", async (ctx) =>
    ctx.step("note", async () => "private note").then(() => "done"),
  );
  const parent = agent(
    "parent",
    async (ctx) => {
      const spawned = await ctx.spawn(child.id, "private task", { retention: HistoryRetention.PERMANENT });
      return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).status : "refused";
    },
    { subAgents: [child] },
  );
  const run = await runtime.submit(parent, "private question", { retention: HistoryRetention.NONE });
  expect(await run.result()).toMatchObject({ output: "completed" });
  const events: unknown[] = [];
  for await (const event of run.events()) events.push(event);
  expect(JSON.stringify(events)).toContain('"taskId":"t1"');
  expect(JSON.stringify(events)).not.toContain("private");
});
