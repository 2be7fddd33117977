import { describe, expect, test } from "vitest";
import {
  formatRunId,
  formatSessionId,
  formatTaskId,
  messageText,
  parseSessionId,
  sessionWithin,
  unnamedBy,
  unnamedSessionId,
  userMessage,
  type HostedAgent,
  type StoredEntry,
  type SessionId,
  type Store,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import type { RuntimeOptions } from "../../../src/runtime/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, settle } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

/** Writes its input to its session. */
const listener: HostedAgent = agent("listener", async () => "heard", {
  messageOf: (input) => userMessage(JSON.stringify(input)),
});

async function sessionsIn({ sessions }: Store): Promise<SessionId[]> {
  return (await sessions.list({ limit: 1_000 })).sessions.map(({ sessionId }) => sessionId);
}

async function textsIn({ sessions }: Store, sessionId: SessionId): Promise<(string | undefined)[]> {
  const entries = await sessions.read(sessionId, { includeHidden: true });
  return entries.map(({ entry }) => (entry.type === "message" ? messageText(entry.message) : undefined));
}

describe.each(twoStores)("an unnamed session in a %s store", (_name, prepare) => {
  const options = { keepEndedRunsMs: 1_000, keepUnnamedSessionsMs: 10_000 };

  async function setUp(runtimeOptions: RuntimeOptions = {}) {
    const store = await (await prepare())();
    const clock = new FakeClock();
    const runtime = await createRuntime({ store, clock, ...runtimeOptions });
    const passTime = async (ms: number): Promise<void> => {
      for (let elapsed = 0; elapsed < ms; elapsed += 1_000) {
        await clock.advance(1_000);
        await settle();
      }
    };
    return { store, runtime, passTime };
  }

  test("an unnamed session has an id derived from its run", async () => {
    const { runtime } = await setUp();
    const run = await runtime.submit(listener, "hello");
    expect(run.sessionId).toBe(unnamedSessionId(run.runId));
    await runtime.close();
  });

  test("an unnamed session is not shared with a later run that has the run id of a deleted run, if a caller chose that id", async () => {
    const { runtime, store } = await setUp();
    const runId = formatRunId("job-1");
    const alice = { runId, userId: "alice" };
    const first = await runtime.submit(listener, "my PIN is 1234", alice);
    await first.result();
    // While the run is kept, a repeated submission returns the same run.
    const again = await runtime.submit(listener, "my PIN is 1234", alice);
    expect([again.runId, again.sessionId]).toEqual([runId, first.sessionId]);
    expect(await sessionsIn(store)).toEqual([first.sessionId]);
    expect(unnamedBy(first.sessionId)).toBe(runId);
    await store.journal.delete(runId);
    const second = await runtime.submit(listener, "what is in this session?", {
      runId,
      userId: "bob",
    });
    await second.result();
    expect(await textsIn(store, second.sessionId)).toEqual(['"what is in this session?"']);
    expect(await textsIn(store, first.sessionId)).toEqual(['"my PIN is 1234"']);
    await runtime.close();
  });

  test("an unnamed session is not shared with a later run that has the run id of a deleted run that a message started", async () => {
    const { runtime, store, passTime } = await setUp();
    const mailed = agent("mailed", async () => "read", {
      messageOf: (input) => userMessage(JSON.stringify(input)),
    });
    runtime.register(mailed);
    const message = { id: "order-1", from: null, to: mailed.id, body: "my PIN is 1234", sentAt: 0 };
    await store.inbox.deliver(message);
    await passTime(1_000);
    const [run] = (await store.journal.list({ agentId: mailed.id })).runs;
    expect(run?.status).toBe("completed");
    const { runId } = run!;
    const sessionId = parseSessionId(run?.sessionId ?? "");
    await store.journal.delete(runId);
    const other = await runtime.submit(mailed, "what is in this session?", { runId });
    await other.result();
    expect(other.sessionId).not.toBe(sessionId);
    expect([sessionId, other.sessionId].map(unnamedBy)).toEqual([runId, runId]);
    expect(await textsIn(store, other.sessionId)).toEqual(['"what is in this session?"']);
    await runtime.close();
  });

  test("an unnamed session is deleted after keepUnnamedSessionsMs also if an earlier run had the same run id", async () => {
    const { runtime, passTime, store } = await setUp(options);
    for (const input of ["one", "two"]) {
      await (await runtime.submit(listener, input, { runId: "run_job-1" })).result();
      await passTime(3_000);
    }
    expect(await sessionsIn(store)).toHaveLength(2);
    await passTime(30_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("an unnamed session is deleted when no run has used it for keepUnnamedSessionsMs", async () => {
    const { runtime, passTime, store } = await setUp(options);
    for (let count = 0; count < 10; count++) await (await runtime.submit(listener, "hello")).result();
    await passTime(9_000);
    expect(await sessionsIn(store)).toHaveLength(10);
    await passTime(20_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("an unnamed session is kept forever once a caller has named it in a later submission", async () => {
    const { runtime, passTime, store } = await setUp(options);
    const named = formatSessionId("mine");
    await (await runtime.submit(listener, "hello", { sessionId: named })).result();
    const { sessionId } = await (await runtime.submit(listener, "hello")).result();
    await passTime(5_000);
    await (await runtime.submit(listener, "again", { sessionId })).result();
    await passTime(60_000);
    expect((await sessionsIn(store)).toSorted()).toEqual([named, sessionId].toSorted());
    await runtime.close();
  });

  test("an unnamed session is kept while its run has not ended", async () => {
    const { runtime, passTime, store } = await setUp(options);
    const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null, {
      messageOf: (input) => userMessage(JSON.stringify(input)),
    });
    const run = await runtime.submit(patient, "hello");
    await settle();
    await passTime(60_000);
    expect(await store.sessions.read(run.sessionId, { includeHidden: true })).toHaveLength(1);
    await run.signal("go", "signalled");
    expect((await run.result()).output).toBe("signalled");
    await runtime.close();
  });

  test("an unnamed session is deleted if it belongs to a fork of a run with an unnamed session", async () => {
    const { runtime, passTime, store } = await setUp(options);
    const origin = await runtime.submit(listener, "hello");
    await origin.result();
    const forks = [await origin.fork({ at: 0 }), await origin.fork({ at: 0, runId: "run_again" })];
    for (const fork of forks) await fork.result();
    const { sessionId } = await forks[1]!.fork({ at: await store.events.lastSeq(forks[1]!.runId) });
    expect(await sessionsIn(store)).toEqual(expect.arrayContaining([sessionId, forks[0]?.sessionId]));
    await store.journal.delete(forks[1]!.runId);
    const second = await origin.fork({ at: 0, runId: "run_again" });
    await second.result();
    expect(second.sessionId).not.toBe(forks[1]!.sessionId);
    await passTime(30_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("an unnamed session is kept for keepUnnamedSessionsMs after the fork that created it", async () => {
    const { runtime, passTime, store } = await setUp({ ...options, keepEndedRunsMs: 20_000 });
    const origin = await runtime.submit(listener, "hello");
    await origin.result();
    await passTime(19_000);
    const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId) });
    await fork.result();
    await store.journal.delete(fork.runId);
    await passTime(9_000);
    expect(await sessionsIn(store)).toContain(fork.sessionId);
    await passTime(30_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("an unnamed session is kept if it belongs to a fork that a caller continued, or to a fork of a named session", async () => {
    const { runtime, passTime, store } = await setUp(options);
    const origin = await runtime.submit(listener, "hello");
    const named = await runtime.submit(listener, "hello", { sessionId: "mine" });
    for (const run of [origin, named]) await run.result();
    const forks = [await origin.fork({ at: 0 }), await named.fork({ at: 0 })];
    for (const fork of forks) await fork.result();
    const [first, second] = forks.map(({ sessionId }) => sessionId);
    const again = await runtime.submit(listener, "again", { sessionId: first! });
    await again.result();
    const third = await again.fork({ at: 0 });
    await third.result();
    await passTime(60_000);
    expect(new Set(await sessionsIn(store))).toEqual(new Set(["mine", first, second, third.sessionId]));
    await runtime.close();
  });

  test.for([-1, Number.NaN, Infinity])(
    "createRuntime refuses the keepUnnamedSessionsMs %d",
    async (keepUnnamedSessionsMs) => {
      await expect(createRuntime({ keepUnnamedSessionsMs })).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("keepUnnamedSessionsMs"),
      });
    },
  );
});

describe.each(twoStores)("sessions.delete() in a %s store", (_name, prepare) => {
  test("sessions.delete() deletes the session and the sessions of its workers, and no other session", async () => {
    const store = await (await prepare())();
    const runtime = await createRuntime({ store });
    const mine = parseSessionId("mine");
    const others = ["mine-too", "mine/too"].map(parseSessionId);
    for (const sessionId of [mine, ...others])
      await (await runtime.submit(listener, "hello", { sessionId })).result();
    const [stored] = await store.sessions.read(mine);
    const entry = { ...(stored as StoredEntry).entry, taskId: formatTaskId(1) };
    const to = {
      sessionId: sessionWithin(mine, "worker"),
      agentId: listener.id,
      visibility: "visible",
    } as const;
    await store.sessions.apply([{ type: "append", entry, ...to }]);
    expect(await sessionsIn(store)).toHaveLength(4);
    await runtime.sessions.delete(mine);
    await runtime.sessions.delete(formatSessionId("unknown"));
    expect((await sessionsIn(store)).toSorted()).toEqual(others.toSorted());
    await runtime.close();
  });

  test("sessions.delete() throws agent_busy while a run of the session has not ended", async () => {
    const store = await (await prepare())();
    const runtime = await createRuntime({ store, closeGraceMs: 0 });
    const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    const run = await runtime.submit(patient, null);
    await expect(runtime.sessions.delete(run.sessionId)).rejects.toMatchObject({
      code: "agent_busy",
      details: { runId: run.runId },
    });
    await run.cancel();
    await run.result();
    await runtime.sessions.delete(run.sessionId);
    await runtime.close();
  });
});
