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

/** Says what it was given to its session when it ends, as an agent that keeps a conversation does. */
function note(ctx: RunContext, text: string): void {
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
      note(ctx, `${name} was here`);
      return run(ctx);
    },
    { messageOf: (input) => userMessage(JSON.stringify(input)), ...more },
  );
}

async function tasksIn(store: Store, sessionId: SessionId): Promise<unknown[]> {
  const entries: readonly StoredEntry[] = await store.sessions.read(sessionId, { includeHidden: true });
  return entries.map(({ entry: { taskId }, visibility }) => `${taskId} ${visibility}`);
}

describe("what is left of the root's history", () => {
  test("PERMANENT, which is meant unless told: all of it, visible when the run has ended", async () => {
    const { runtime, store } = await setUp();
    const run = await runtime.submit(
      talker("clerk", async () => "done"),
      "hi",
    );
    await run.result();
    expect(await tasksIn(store, run.sessionId)).toEqual(["t0 visible", "t0 visible"]);
  });

  test("RUN: there while the run lives, gone with its end", async () => {
    const { runtime, store } = await setUp();
    const held = gate();
    const clerk = talker("clerk", async (ctx) =>
      ctx.step("work", async () => held.promise.then(() => "done")),
    );
    const run = await runtime.submit(clerk, "hi", { retention: HistoryRetention.RUN });
    await settle();
    expect(await tasksIn(store, run.sessionId)).toEqual(["t0 pending"]);
    held.resolve();
    await run.result();
    expect(await tasksIn(store, run.sessionId)).toEqual([]);
  });

  test("RUN: gone also when the run failed or was cancelled (R14), which may be resumed all the same", async () => {
    const { runtime, store } = await setUp({ runRetry: { maxRetries: 0 } });
    let broken = true;
    const clerk = talker("clerk", async (ctx) => {
      if (ctx.input === "wait") await ctx.waitForSignal("never");
      if (broken) throw new Error("broken");
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
    broken = false;
    await failed.resume();
    expect((await failed.result()).status).toBe("completed");
    expect(await tasksIn(store, failed.sessionId)).toEqual([]);
  });

  test("NONE: never in the session", async () => {
    const { runtime, store } = await setUp();
    const held = gate();
    const clerk = talker("clerk", async (ctx) =>
      ctx.step("work", async () => held.promise.then(() => "done")),
    );
    const run = await runtime.submit(clerk, "hi", { retention: HistoryRetention.NONE });
    await settle();
    expect(await tasksIn(store, run.sessionId)).toEqual([]);
    held.resolve();
    expect((await run.result()).output).toBe("done");
    expect(await tasksIn(store, run.sessionId)).toEqual([]);
  });
});

describe("what is left of a child's history", () => {
  async function hire(retention?: HistoryRetention) {
    const bench = await setUp();
    const held = gate();
    const helper = talker("helper", async () => "helped");
    const lead = talker(
      "lead",
      async (ctx) => {
        const hired = await ctx.spawn(helper.id, "help", retention === undefined ? {} : { retention });
        if (hired.kind === "spawned") await ctx.join(hired.handle);
        const other = await ctx.spawn(helper.id, "help", { retention: HistoryRetention.PERMANENT });
        if (other.kind === "spawned") await ctx.join(other.handle);
        return ctx.step("work", async () => held.promise.then(() => "done"));
      },
      { subAgents: [helper] },
    );
    const run = await bench.runtime.submit(lead, "hi");
    await settle();
    const during = await tasksIn(bench.store, run.sessionId);
    held.resolve();
    await run.result();
    return { during, after: await tasksIn(bench.store, run.sessionId) };
  }

  const kept = ["t0 visible", "t2 visible", "t0 visible"];

  test("RUN, which is meant unless told: there until the run ends, while a sibling's stays", async () => {
    const { during, after } = await hire();
    expect(during).toEqual(["t0 pending", "t1 visible", "t2 visible"]);
    expect(after).toEqual(kept);
  });

  test("NONE: never there", async () => {
    const { during, after } = await hire(HistoryRetention.NONE);
    expect(during).toEqual(["t0 pending", "t2 visible"]);
    expect(after).toEqual(kept);
  });

  test("PERMANENT: there to stay", async () => {
    const { after } = await hire(HistoryRetention.PERMANENT);
    expect(after).toEqual(["t0 visible", "t1 visible", "t2 visible", "t0 visible"]);
  });
});

test("a child's words are never the conversation its run goes on with, wherever it writes them (N2)", async () => {
  const { runtime, store } = await setUp();
  const helper = talker("helper", async () => "helped");
  const lead = agent(
    "lead",
    async (ctx) => {
      const turn = await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      const hired = await ctx.spawn(helper.id, "help", { retention: HistoryRetention.PERMANENT });
      if (hired.kind === "spawned") await ctx.join(hired.handle);
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

test("RUN: what a child wrote goes from every session it wrote to", async () => {
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
      const hired = await ctx.spawn(writer.id, null);
      if (hired.kind === "spawned") await ctx.join(hired.handle);
      return (await store.sessions.read(elsewhere)).length;
    },
    { subAgents: [writer] },
  );
  await (await runtime.submit(lead, null)).result();
  expect(await tasksIn(store, elsewhere)).toEqual([]);
});

describe("what is left in journal and log", () => {
  const secret = "what the helper was told";

  async function erase(status: "completed" | "failed") {
    const bench = await setUp({ runRetry: { maxRetries: 0 } });
    const helper = agent("helper", async (ctx) => {
      await ctx.step("look", async () => secret);
      if (status === "failed") throw new Error(secret);
      return "the answer";
    });
    const lead = agent(
      "lead",
      async (ctx) => {
        const hired = await ctx.spawn(helper.id, secret, { retention: HistoryRetention.NONE });
        if (hired.kind === "refused") return null;
        const outcome = await ctx.join(hired.handle);
        await ctx.step("own", async () => "the lead's own");
        if (status === "failed") throw new Error("it did not help");
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

  test("NONE: a child's words go with the run's end; its outcome, what it did and the chain stay", async () => {
    const { store, run, result, events, steps } = await erase("completed");
    expect(result.output).toBe("the answer");
    const helpers = steps.filter(({ taskId }) => taskId === "t1");
    expect(helpers.map(({ name, outcome }) => [name, outcome])).toEqual([
      ["look", { kind: "ok", value: null }],
    ]);
    expect(JSON.stringify(events)).not.toContain(secret);
    expect(JSON.stringify(steps)).toContain("the lead's own");
    expect(await store.events.verify(run.runId)).toMatchObject({ ok: true });
  });

  test("NONE: however the run ended; the rest of it may be resumed (R14)", async () => {
    const { run, result, steps } = await erase("failed");
    expect(result.status).toBe("failed");
    expect(steps.find(({ taskId }) => taskId === "t1")?.outcome).toEqual({ kind: "ok", value: null });
    await run.resume();
    expect((await run.result()).status).toBe("failed");
  });

  test("NONE: a root's answer is its caller's, also for one who asks late; the run is not gone on with", async () => {
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
