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
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import type { RuntimeOptions } from "../../../src/runtime/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, settle } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

/** What it is told is in its session. */
const listener: HostedAgent = agent("listener", async () => "heard", {
  messageOf: (input) => userMessage(JSON.stringify(input)),
});

async function sessionsIn({ sessions }: Store): Promise<SessionId[]> {
  return (await sessions.list({ limit: 1_000 })).map(({ sessionId }) => sessionId);
}

async function saidIn({ sessions }: Store, sessionId: SessionId): Promise<(string | undefined)[]> {
  const placed = await sessions.read(sessionId, { includeHidden: true });
  return placed.map(({ entry }) => (entry.type === "message" ? messageText(entry.message) : undefined));
}

describe.each(twoStores)("a session that nobody named (%s)", (_name, prepare) => {
  const options = { keepEndedRunsMs: 1_000, keepUnnamedSessionsMs: 10_000 };

  async function setUp(given: RuntimeOptions = {}) {
    const store = await (await prepare())();
    const clock = new FakeClock();
    const runtime = await createRuntime({ store, clock, ...given });
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await clock.advance(1_000);
        await settle();
      }
    };
    return { store, runtime, pass };
  }

  test("is named after its run", async () => {
    const { runtime } = await setUp();
    const run = await runtime.submit(listener, "hello");
    expect(run.sessionId).toBe(unnamedSessionId(run.runId));
    await runtime.close();
  });

  test("is that of no other run, though its id was chosen and was that of one which is gone", async () => {
    const { runtime, store } = await setUp();
    const runId = formatRunId("job-1");
    const alice = { runId, userId: "alice", tenantId: "acme" };
    const first = await runtime.submit(listener, "my PIN is 1234", alice);
    await first.result();
    // Whoever submits again while it is kept is given it.
    const again = await runtime.submit(listener, "my PIN is 1234", alice);
    expect([again.runId, again.sessionId]).toEqual([runId, first.sessionId]);
    expect(await sessionsIn(store)).toEqual([first.sessionId]);
    expect(unnamedBy(first.sessionId)).toBe(runId);
    await store.journal.delete(runId);
    const second = await runtime.submit(listener, "what was said?", {
      runId,
      userId: "bob",
      tenantId: "else",
    });
    await second.result();
    expect(await saidIn(store, second.sessionId)).toEqual(['"what was said?"']);
    expect(await saidIn(store, first.sessionId)).toEqual(['"my PIN is 1234"']);
    await runtime.close();
  });

  test("is that of no other run, though its id followed from a message's", async () => {
    const { runtime, store, pass } = await setUp();
    const mailed = agent("mailed", async () => "read", {
      messageOf: (input) => userMessage(JSON.stringify(input)),
    });
    runtime.register(mailed);
    const message = { id: "order-1", from: null, to: mailed.id, body: "my PIN is 1234", sentAt: 0 };
    await store.inbox.deliver(message);
    await pass(1_000);
    const [run] = (await store.journal.list({ agentId: mailed.id })).runs;
    expect(run?.status).toBe("completed");
    const { runId, sessionId } = run!;
    await store.journal.delete(runId);
    const other = await runtime.submit(mailed, "what was said?", { runId });
    await other.result();
    expect(other.sessionId).not.toBe(sessionId);
    expect([sessionId, other.sessionId].map(unnamedBy)).toEqual([runId, runId]);
    expect(await saidIn(store, other.sessionId)).toEqual(['"what was said?"']);
    await runtime.close();
  });

  test("and has an id that another had before it goes as others do", async () => {
    const { runtime, pass, store } = await setUp(options);
    for (const input of ["one", "two"]) {
      await (await runtime.submit(listener, input, { runId: "run_job-1" })).result();
      await pass(3_000);
    }
    expect(await sessionsIn(store)).toHaveLength(2);
    await pass(30_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("goes when nobody came back to it for so long", async () => {
    const { runtime, pass, store } = await setUp(options);
    for (let count = 0; count < 10; count++) await (await runtime.submit(listener, "hello")).result();
    await pass(9_000);
    expect(await sessionsIn(store)).toHaveLength(10);
    await pass(20_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("stays once somebody came back to it, as one with a name does", async () => {
    const { runtime, pass, store } = await setUp(options);
    const named = formatSessionId("mine");
    await (await runtime.submit(listener, "hello", { sessionId: named })).result();
    const { sessionId } = await (await runtime.submit(listener, "hello")).result();
    await pass(5_000);
    await (await runtime.submit(listener, "again", { sessionId })).result();
    await pass(60_000);
    expect((await sessionsIn(store)).toSorted()).toEqual([named, sessionId].toSorted());
    await runtime.close();
  });

  test("stays while its run may go on", async () => {
    const { runtime, pass, store } = await setUp(options);
    const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null, {
      messageOf: (input) => userMessage(JSON.stringify(input)),
    });
    const run = await runtime.submit(patient, "hello");
    await settle();
    await pass(60_000);
    expect(await store.sessions.read(run.sessionId, { includeHidden: true })).toHaveLength(1);
    await run.signal("go", "went");
    expect((await run.result()).output).toBe("went");
    await runtime.close();
  });

  test("is let go of when it is a fork's, as its origin's is", async () => {
    const { runtime, pass, store } = await setUp(options);
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
    await pass(30_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("and is a fork's is kept for so long after the fork was made", async () => {
    const { runtime, pass, store } = await setUp({ ...options, keepEndedRunsMs: 20_000 });
    const origin = await runtime.submit(listener, "hello");
    await origin.result();
    await pass(19_000);
    const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId) });
    await fork.result();
    await store.journal.delete(fork.runId);
    await pass(9_000);
    expect(await sessionsIn(store)).toContain(fork.sessionId);
    await pass(30_000);
    expect(await sessionsIn(store)).toEqual([]);
    await runtime.close();
  });

  test("stays when it is a fork's to which somebody came back, or of a session with a name", async () => {
    const { runtime, pass, store } = await setUp(options);
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
    await pass(60_000);
    expect(new Set(await sessionsIn(store))).toEqual(new Set(["mine", first, second, third.sessionId]));
    await runtime.close();
  });

  test.for([-1, Number.NaN, Infinity])("is not kept for %d milliseconds", async (keepUnnamedSessionsMs) => {
    await expect(createRuntime({ keepUnnamedSessionsMs })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("keepUnnamedSessionsMs"),
    });
  });
});

describe.each(twoStores)("deleteSession on %s", (_name, prepare) => {
  test("deletes it with what its workers remember, and no other", async () => {
    const store = await (await prepare())();
    const runtime = await createRuntime({ store });
    const mine = parseSessionId("mine");
    const others = ["mine-too", "mine/too"].map(parseSessionId);
    for (const sessionId of [mine, ...others])
      await (await runtime.submit(listener, "hello", { sessionId })).result();
    const [said] = await store.sessions.read(mine);
    const entry = { ...(said as StoredEntry).entry, taskId: formatTaskId(1) };
    const to = {
      sessionId: sessionWithin(mine, "worker"),
      agentId: listener.id,
      visibility: "visible",
    } as const;
    await store.sessions.apply([{ type: "append", entry, ...to }]);
    expect(await sessionsIn(store)).toHaveLength(4);
    await runtime.deleteSession(mine);
    await runtime.deleteSession(formatSessionId("nobody"));
    expect((await sessionsIn(store)).toSorted()).toEqual(others.toSorted());
    await runtime.close();
  });

  test("refuses while a run is under way in it", async () => {
    const store = await (await prepare())();
    const runtime = await createRuntime({ store, closeGraceMs: 0 });
    const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    const run = await runtime.submit(patient, null);
    await expect(runtime.deleteSession(run.sessionId)).rejects.toMatchObject({
      code: "agent_busy",
      details: { runId: run.runId },
    });
    await run.cancel();
    await run.result();
    await runtime.deleteSession(run.sessionId);
    await runtime.close();
  });
});
