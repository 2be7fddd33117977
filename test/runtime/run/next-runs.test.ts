import { describe, expect, it } from "vitest";
import {
  formatSessionId,
  HistoryRetention,
  Priority,
  type Event,
  type NextRun,
  type RunContext,
  type RunId,
} from "../../../src/kernel/index.ts";
import { agent, setUp, settle, typesOf, until, type Bench } from "../runtime-setup.ts";
import { findRun } from "../find-run.ts";

const sessionId = formatSessionId("talk");
const review: NextRun = { key: "review", input: "review" };

function reporter(next: readonly NextRun[] = [review], then?: (ctx: RunContext) => Promise<unknown>) {
  return agent("reporter", async (ctx) => {
    if (ctx.input !== "start") return { input: ctx.input, user: ctx.facts.userId };
    ctx.report({ next });
    await then?.(ctx);
    return "done";
  });
}

async function nextIn(bench: Bench, runId: RunId): Promise<readonly Event<"run_scheduled">[]> {
  const events = await bench.events(runId);
  return events.filter((event): event is Event<"run_scheduled"> => event.type === "run_scheduled");
}

describe("ctx.report({ next })", () => {
  it("ctx.report({ next }) submits a run with the commit that ends the first, with the same agent, user, session and channel", async () => {
    const bench = await setUp();
    const options = { sessionId, userId: "ann", tenantId: "acme", channel: "mail", priority: Priority.HIGH };
    const run = await bench.runtime.submit(reporter(), "start", { ...options, metadata: { from: "test" } });
    await run.result();
    const [event] = await nextIn(bench, run.runId);
    if (event === undefined) throw new Error("no run_scheduled");
    expect(event.data.key).toBe("review");
    const next = await findRun(bench.runtime, event.data);
    expect((await next.result()).output).toEqual({ input: "review", user: "ann" });
    const record = await bench.store.journal.find(next.runId);
    expect(record).toMatchObject({
      agentId: "reporter",
      kind: "invocation",
      sessionId,
      tenantId: "acme",
      userId: "ann",
      priority: Priority.HIGH,
      metadata: { from: "test" },
    });
    expect(typesOf(await bench.events(run.runId)).slice(-3)).toEqual([
      "run_scheduled",
      "task_end",
      "run_end",
    ]);
    let last;
    for await (const commit of bench.store.journal.read(run.runId)) last = commit;
    expect(last?.tasks?.[0]).toMatchObject({ type: "end", next: [review] });
    expect(last?.events?.at(-1)?.type).toBe("run_end");
  });

  it("ctx.report({ next }) gives the new run its own kind, session, budget, retention and priority, and merges the metadata", async () => {
    const bench = await setUp();
    const other = formatSessionId("other");
    const next: NextRun[] = [
      {
        ...review,
        kind: "compaction",
        budget: { maxTurns: 3 },
        priority: Priority.LOW,
        metadata: { origin: "test" },
      },
      { key: "aside", input: "aside", sessionId: other, retention: HistoryRetention.NONE },
      { key: "new", input: "new", sessionId: null },
    ];
    const metadata = { origin: "start", agent: "clerk" };
    const run = await bench.runtime.submit(reporter(next), "start", { sessionId, metadata });
    await run.result();
    const events = await bench.events(run.runId);
    const ids = events.flatMap((event) =>
      event.type === "run_scheduled" || event.type === "compaction_scheduled" ? [event.data.runId] : [],
    );
    const records = await Promise.all(ids.map((runId) => bench.store.journal.find(runId)));
    expect(records.map((record) => [record?.kind, record?.sessionId === sessionId])).toEqual([
      ["compaction", true],
      ["invocation", false],
      ["invocation", false],
    ]);
    expect(records[0]?.priority).toBe(Priority.LOW);
    expect(records.map((record) => record?.metadata)).toEqual([
      { origin: "test", agent: "clerk" },
      metadata,
      metadata,
    ]);
    const [first] = ids;
    const [start] = first === undefined ? [] : await bench.events(first);
    expect(start?.type === "run_start" && start.data.supervision.executionBudget).toMatchObject({
      maxTurns: 3,
    });
    expect(records[1]?.sessionId).toBe(other);
  });

  it("ctx.report({ next }) submits no run if the run fails, and one run if the resumed run completes", async () => {
    const bench = await setUp();
    let fails = true;
    const failing = reporter([review], async (ctx) => {
      await ctx.step("work", async () => {
        if (fails) throw new TypeError("broken");
        return null;
      });
    });
    const run = await bench.runtime.submit(failing, "start", { sessionId });
    expect((await run.result()).status).toBe("failed");
    expect(await nextIn(bench, run.runId)).toEqual([]);
    fails = false;
    await run.resume();
    expect((await run.result()).status).toBe("completed");
    const [event, ...more] = await nextIn(bench, run.runId);
    expect(more).toEqual([]);
    expect(await bench.store.journal.find(event?.data.runId ?? run.runId)).toBeDefined();
    await until(async () => (await bench.runtime.list({ sessionId })).runs.every((each) => each.endedAt));
    expect((await bench.runtime.list({ sessionId })).runs).toHaveLength(2);
  });

  it("ctx.report({ next }) also submits the run if its run is cancelled, and again if the cancelled run is resumed", async () => {
    const bench = await setUp();
    const waiting = reporter([review], (ctx) => ctx.waitForSignal("go"));
    const run = await bench.runtime.submit(waiting, "start", { sessionId });
    await settle();
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    await run.resume();
    await run.signal("go");
    expect((await run.result()).status).toBe("completed");
    const ids = (await nextIn(bench, run.runId)).map(({ data }) => data.runId);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(await bench.store.journal.find(id)).toBeDefined();
  });

  it("ctx.report({ next }) submits the next run when the last detached child ends, also if another owner ends the run", async () => {
    const bench = await setUp();
    const parent = agent("parent", async (ctx) => {
      if (ctx.input === "child") await ctx.sleep(60_000);
      if (ctx.input === "child") return "woken";
      if (ctx.input === "review") return "reviewed";
      await ctx.spawn(ctx.agentId, "child", { onParentEnd: "detach" });
      ctx.report({ next: [review] });
      return "done";
    });
    const run = await bench.runtime.submit(parent, "start", { sessionId });
    await settle();
    const [event] = await nextIn(bench, run.runId);
    if (event === undefined) throw new Error("no run_scheduled");
    expect(await bench.store.journal.find(event.data.runId)).toBeUndefined();
    await bench.runtime.close();
    const other = await bench.open();
    other.register(parent);
    await bench.clock.advance(60_000);
    await settle();
    await (await findRun(other, run)).result();
    const next = await findRun(other, event.data);
    expect((await next.result()).output).toBe("reviewed");
  });

  it("ctx.report({ next }) refuses next runs of a child, unknown options, bad keys and values that are not JSON", async () => {
    const bench = await setUp();
    const problems: string[] = [];
    const bad: unknown[] = [
      "review",
      [{ key: "a b", input: null }],
      [review, review],
      [{ key: "a" }],
      [{ ...review, kind: "compacting" }],
      [{ ...review, budget: { maxTurns: Number.NaN } }],
      [{ ...review, retention: "never" }],
      [{ ...review, sessionId: "/" }],
      [{ ...review, priorty: 1 }],
      [{ ...review, metadata: "text" }],
      [{ ...review, input: () => 1 }],
    ];
    const careless = agent("careless", async (ctx) => {
      if (ctx.input === "child") ctx.report({ next: [review] });
      for (const next of bad)
        try {
          ctx.report({ next } as never);
        } catch (error) {
          problems.push((error as Error).message);
        }
      const spawned = await ctx.spawn(ctx.agentId, "child");
      if (spawned.kind !== "spawned") throw new Error("no seat");
      return (await ctx.join(spawned.handle)).failure?.message ?? null;
    });
    const run = await bench.runtime.submit(careless, "start", { sessionId });
    expect((await run.result()).output).toContain("only the root task");
    expect(problems).toHaveLength(bad.length);
    expect((await bench.runtime.list({ sessionId })).runs).toHaveLength(1);
  });
});
