import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Transcript, userMessage, type CallPath, type RunHandle } from "../../../src/kernel/index.ts";
import { getRunContext } from "../../../src/runtime/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, setUp, simpleTool, text } from "../runtime-setup.ts";

it("getRunContext() returns the facts of the run in tools, middleware, hooks and observers, also while runs wake each other", async () => {
  const { runtime } = await setUp();
  const runs: RunHandle[] = [];
  const [both, woken] = [gate(), gate()];
  let waiting = 0;
  const seen: [where: string, expected: unknown, found: unknown][] = [];
  const note = (where: string, expected: unknown): void =>
    void seen.push([where, expected, getRunContext()?.userId]);
  const callPath: CallPath = {
    model: {
      around: {
        process: async ({ facts }, next) => {
          note("chat", facts.userId);
          await next();
          note("chat after", facts.userId);
        },
      },
    },
    tool: {
      before: [{ name: "gate", decide: ({ facts }) => (note("gate", facts.userId), undefined) }],
      around: { process: async ({ facts }, next) => (note("function", facts.userId), next()) },
      after: [{ name: "gate", decide: ({ facts }) => (note("gate after", facts.userId), undefined) }],
    },
    observer: {
      observe: ({ runId }) =>
        note("observer", runs.find((run) => run.runId === runId) === runs[0] ? "ada" : "bob"),
      settled: async () => undefined,
    },
  };
  const wake = simpleTool({
    name: "wake",
    execute: async (_input, { facts }) => {
      note("tool", facts.userId);
      if (++waiting === 2) both.resolve();
      await both.promise;
      // One run sends a message to the other; what that causes belongs to the other run.
      if (facts.userId === "ada") await runs[1]?.signal("go").then(woken.resolve);
      await woken.promise;
      note("tool after", facts.userId);
      return text("done");
    },
  });
  const worker = agent(
    "worker",
    async (ctx) => {
      await ctx.llm({ transcript: Transcript.of([userMessage("hi")]) });
      await ctx.tool({ callId: "1", toolName: "wake", input: {} });
      if (ctx.facts.userId === "bob") await ctx.waitForSignal("go");
      await ctx.step("end", async () => (note("step", ctx.facts.userId), null));
    },
    { tools: [wake], models: { main: scriptedModel(["a", "b"]) }, callPath },
  );
  for (const userId of ["ada", "bob"]) runs.push(await runtime.submit(worker, null, { userId }));
  for (const run of runs) expect((await run.result()).status).toBe("completed");
  expect(seen.filter(([, expected, found]) => expected !== found)).toEqual([]);
  expect(new Set(seen.map(([where]) => where))).toEqual(
    new Set([
      "chat",
      "chat after",
      "function",
      "gate",
      "gate after",
      "observer",
      "tool",
      "tool after",
      "step",
    ]),
  );
});

/** Tries to change what decides whose memory and whose permissions a run has. Returns the attempts that succeeded. */
function changes(where: string, holder: object, path: readonly string[] = []): readonly string[] {
  const done: string[] = [];
  for (const name of ["userId", "tenantId", "sessionId", "runId", "taskId", "agentId", "facts", "metadata"]) {
    if (!(name in holder)) continue;
    const record = holder as Record<string, unknown>;
    const value = record[name];
    // `metadata` of middleware is what its layers share.
    if (typeof value === "object" && value !== null && name !== "metadata")
      done.push(...changes(where, value, [...path, name]));
    for (const change of [
      (to: unknown) => void (record[name] = to),
      (to: unknown) => void Object.defineProperty(record, name, { value: to }),
    ])
      try {
        change("bob");
        if (record[name] === "bob" && name !== "metadata") done.push([where, ...path, name].join("."));
        change(value);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
  }
  return done;
}

it.for(["memory", "SQLite"] as const)(
  "no tool, middleware, hook, observer, factory or code of a task can change the facts of its run, with the %s store",
  async (store) => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-facts-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const runtime = await createRuntime({
      store: store === "memory" ? "memory:" : `sqlite:${join(folder, "store.db")}`,
    });
    onTestFinished(() => runtime.close());
    const changed: string[] = [];
    const seen = new Set<string>();
    const attack = (where: string, ...holders: readonly object[]): void => {
      seen.add(where);
      for (const holder of [...holders, getRunContext() ?? {}]) changed.push(...changes(where, holder));
      const { metadata } = getRunContext() ?? {};
      const trip = metadata?.["trip"] as { to: string } | undefined;
      for (const change of [
        () => Object.assign(metadata ?? {}, { role: "admin" }),
        () => trip && (trip.to = "Rome"),
      ])
        try {
          change();
        } catch (error) {
          if (!(error instanceof TypeError)) throw error;
        }
    };
    const callPath: CallPath = {
      model: { around: { process: async (context, next) => (attack("chat", context), next()) } },
      tool: {
        before: [{ name: "one", decide: (call) => (attack("before", call), undefined) }],
        around: { process: async (context, next) => (attack("function", context), next()) },
        after: [{ name: "two", decide: (call) => (attack("after", call), undefined) }],
      },
      observer: { observe: (_event, task) => attack("observer", task.facts), settled: async () => undefined },
    };
    const tool = simpleTool({
      name: "attack",
      execute: async (_input, call) => {
        const { ctx, facts, meta } = call;
        const shared = Object.getPrototypeOf(call) as object;
        attack("tool", facts, meta, ctx.facts, ctx.meta);
        expect(() => Object.defineProperty(shared, "facts", { get: () => facts })).toThrow(TypeError);
        expect(ctx.snapshot).not.toHaveProperty("tasks");
        return text("done");
      },
    });
    const worker = agent(
      "worker",
      async (ctx) => {
        await ctx.llm({ transcript: Transcript.of([userMessage("hi")]) });
        await ctx.tool({ callId: "1", toolName: "attack", input: {} });
        attack("code", ctx.facts, ctx.meta);
        const { userId, tenantId, metadata } = ctx.facts;
        return { userId, tenantId, metadata };
      },
      { tools: [tool], models: { main: scriptedModel(["a"]) }, callPath },
    );
    runtime.register(worker, { context: (facts) => attack("factory", facts) });
    const metadata = { trip: { to: "Oslo" } };
    const run = await runtime.submit(worker, null, { userId: "ann", tenantId: "acme", metadata });
    expect((await run.result()).output).toEqual({
      userId: "ann",
      tenantId: "acme",
      metadata: { trip: { to: "Oslo" } },
    });
    expect(changed).toEqual([]);
    expect([...seen].toSorted()).toEqual([
      "after",
      "before",
      "chat",
      "code",
      "factory",
      "function",
      "observer",
      "tool",
    ]);
    // The object of the caller stays its own.
    metadata.trip.to = "Rome";
  },
);
