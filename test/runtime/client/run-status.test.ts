import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  Clock,
  HostedAgent,
  RunHandle,
  Runtime,
  Store,
  SubmitOptions,
} from "../../../src/kernel/index.ts";
import { sha256 } from "../../../src/runtime/index.ts";
import { sqliteStore } from "../../../src/runtime/stores/sqlite/store.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import {
  agent,
  gate,
  readAll,
  setUp,
  settle,
  simpleTool,
  spawnTask,
  text,
  until,
  type Bench,
} from "../runtime-setup.ts";

let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-status-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const form = simpleTool({ name: "form", needsApproval: true, execute: async () => text("signed") });
const filling = agent(
  "filling",
  async (ctx) => void (await ctx.tool({ callId: "1", toolName: "form", input: {} })),
  { tools: [form] },
);
const echo = agent("echo", async (_ctx, inbox) => {
  await inbox.drain();
  await new Promise<never>(() => undefined);
});
const holder = agent("holder", (ctx) => ctx.waitForSignal("go"));

const causes: Readonly<Record<string, { readonly agent: HostedAgent; readonly options?: SubmitOptions }>> = {
  person: { agent: filling },
  signal: { agent: holder },
  time: { agent: agent("sleeper", (ctx) => ctx.sleep(60_000)) },
  message: { agent: agent("asker", async (ctx) => void (await ctx.ask(echo.id, "well?"))) },
  "signal,seat": {
    agent: agent(
      "full",
      async (ctx) => {
        await spawnTask(ctx, holder);
        await ctx.join(await spawnTask(ctx, holder, { onFull: "wait" }));
      },
      { subAgents: [holder] },
    ),
    options: { spawnBudget: { maxAgents: 2 } },
  },
  "signal,time": {
    agent: agent("impatient", async (ctx) => void (await ctx.waitForSignal("go", { timeoutMs: 60_000 }))),
  },
};

/** The status of a run and what it waits for, if a filtered list and a handle of the runtime agree on it. */
async function statusIn(runtime: Runtime, { runId }: RunHandle): Promise<string> {
  const snapshot = await (await runtime.find(runId))?.snapshot();
  const { runs } = await runtime.list(snapshot === undefined ? {} : { status: snapshot.status });
  const shown = [snapshot, runs.find((run) => run.runId === runId)].map((run) =>
    [run?.status, ...(run?.waitsFor.length ? [run.waitsFor.join()] : [])].join(" "),
  );
  return shown[0] === shown[1] ? (shown[0] ?? "") : `the handle says ${shown[0]}, the list ${shown[1]}`;
}

describe.each(["memory", "sqlite"])("the status of a run on a %s store", (kind) => {
  const fileStore = (clock: Clock): Promise<Store> =>
    sqliteStore({ path: join(folder, `${files}.db`), hash: sha256, clock });
  const open = async (): Promise<Bench> => {
    if (kind === "memory") return setUp({ suspendAfterMs: 1_000 });
    files++;
    const store = await fileStore(new FakeClock());
    const bench = await setUp({ store, suspendAfterMs: 1_000 });
    return { ...bench, store, events: (runId) => readAll(store, runId) };
  };

  it.each(Object.entries(causes))(
    "a run is waiting for %s both while its worker owns the run and after the run was suspended",
    async (waitsFor, { agent: waiting, options = {} }) => {
      const { runtime, clock, open: another } = await open();
      const other = await another();
      const run = await runtime.submit(waiting, null, options);
      await until(async () => (await statusIn(other, run)) === `waiting ${waitsFor}`);
      await clock.advance(2_000);
      expect(await statusIn(other, run)).toBe(`waiting ${waitsFor}`);
      await runtime.close();
    },
  );

  it("the status of a run goes from running to waiting, running and completed", async () => {
    const { runtime, clock, open: another } = await open();
    const [before, after] = [gate(), gate()];
    const worker = agent("worker", async (ctx) => {
      await ctx.step("before", async () => before.promise.then(() => null));
      await ctx.waitForSignal("go");
      await ctx.step("after", async () => after.promise.then(() => null));
    });
    const run = await runtime.submit(worker, null);
    const other = await another();
    const next = (status: string): Promise<void> =>
      until(async () => (await statusIn(other, run)) === status);
    await next("running");
    before.resolve();
    await next("waiting signal");
    await clock.advance(2_000);
    await run.signal("go");
    await next("running");
    after.resolve();
    await next("completed");
    expect((await run.result()).status).toBe("completed");
    await runtime.close();
  });

  it("a run is pending and waits for a worker after its process closed, until another hosts its agent", async () => {
    const { runtime, clock, open: another } = await open();
    const hanging = agent("hanging", () => new Promise<never>(() => undefined));
    const run = await runtime.submit(hanging, null);
    await until(async () => (await statusIn(runtime, run)) === "running");
    await runtime.close();
    const store = kind === "memory" ? {} : { store: await fileStore(clock) };
    const other = await another(store);
    expect(await statusIn(other, run)).toBe("pending worker");
    other.register(agent("hanging", (ctx) => ctx.waitForSignal("go")));
    await until(async () => (await statusIn(other, run)) === "waiting signal");
    await other.close();
  });

  it("a run is paused from pause() to resume(), and list() finds it by this status", async () => {
    const { runtime, clock, open: another } = await open();
    const other = await another();
    const run = await runtime.submit(holder, null);
    await until(async () => (await statusIn(other, run)) === "waiting signal");
    await run.pause();
    await until(async () => (await statusIn(other, run)) === "paused");
    await clock.advance(2_000);
    expect(await statusIn(other, run)).toBe("paused");
    expect((await other.list({ status: "paused" })).runs.map(({ runId }) => runId)).toEqual([run.runId]);
    await run.resume();
    await until(async () => (await statusIn(other, run)) === "waiting signal");
    expect((await other.list({ status: "paused" })).runs).toEqual([]);
    await run.signal("go", "done");
    await clock.advance(100);
    expect((await run.result()).output).toBe("done");
    await runtime.close();
  });

  it("a fork has the status that its origin had at the fork point", async () => {
    const { runtime, events, clock } = await open();
    const run = await runtime.submit(holder, null);
    await until(async () => (await statusIn(runtime, run)) === "waiting signal");
    const fork = await run.fork({ at: (await events(run.runId)).length - 1 });
    await settle();
    await clock.advance(500);
    expect(await statusIn(runtime, fork)).toBe("waiting signal");
    await runtime.close();
  });

  it("cancel() and pause() do nothing to an ended run, and leave no mail", async () => {
    const { runtime, store, events } = await open();
    const failing = agent("failing", async (ctx) => ctx.step("fail", () => Promise.reject(new Error("no"))));
    const run = await runtime.submit(failing, null);
    expect((await run.result()).status).toBe("failed");
    await settle();
    const before = await events(run.runId);
    await run.cancel();
    await run.pause();
    expect(await store.mailbox.read(run.runId)).toEqual([]);
    await settle();
    expect(await events(run.runId)).toEqual(before);
    expect(await statusIn(runtime, run)).toBe("failed");
    await runtime.close();
  });

  it("approve() and signal() reject with not_found after the end of a run and for unknown ids", async () => {
    const { runtime, events, store } = await open();
    const run = await runtime.submit(filling, null);
    await until(async () => (await statusIn(runtime, run)) === "waiting person");
    const yes = { decision: "approved" } as const;
    await expect(run.approve("t0/9/0/unknown", yes)).rejects.toMatchObject({
      code: "not_found",
      message: `run ${run.runId} has no approval request "t0/9/0/unknown"; use the approvalId of an approval_request event`,
    });
    await expect(run.signal("go", null, "t7")).rejects.toMatchObject({
      code: "not_found",
      message: `task t7 of run ${run.runId} does not exist; use the taskId of a task_start event of a live task`,
    });
    const request = (await events(run.runId)).find((event) => event.type === "approval_request");
    const approvalId = request?.type === "approval_request" ? request.data.approvalId : "";
    await run.approve(approvalId, yes);
    expect((await run.result()).status).toBe("completed");
    await settle();
    await expect(run.approve(approvalId, yes)).rejects.toMatchObject({ code: "not_found" });
    await expect(run.signal("go")).rejects.toMatchObject({
      code: "not_found",
      message: `the signal "go" does not reach run ${run.runId}, because the run has ended (completed); start another one`,
    });
    expect(await store.mailbox.read(run.runId)).toEqual([]);
    await runtime.close();
  });

  it("signal() rejects with not_found for a task that has ended, and reaches a run that will be resumed", async () => {
    const { runtime, events } = await open();
    const child = agent("child", async () => "done");
    const parent = agent(
      "parent",
      async (ctx) => {
        await ctx.join(await spawnTask(ctx, child));
        return ctx.waitForSignal("go");
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null);
    await until(async () =>
      (await events(run.runId)).some(({ taskId, type }) => taskId === "t1" && type === "task_end"),
    );
    await expect(run.signal("go", null, "t1")).rejects.toMatchObject({
      code: "not_found",
      message: `task t1 of run ${run.runId} has ended (completed); use the taskId of a task_start event of a live task`,
    });
    await run.cancel();
    expect((await run.result()).status).toBe("cancelled");
    await run.resume();
    await run.signal("go", "again");
    expect((await run.result()).output).toBe("again");
    await runtime.close();
  });
});
