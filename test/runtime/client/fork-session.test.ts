import { describe, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import {
  formatRunId,
  HistoryRetention,
  messageText,
  parseSessionId,
  unnamedSessionId,
  userMessage,
  type Event,
  type ModelRequest,
  type RunHandle,
  type Runtime,
  type SessionId,
  type Store,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, readAll } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const sessionId = parseSessionId("trip");

function textsOf(request: ModelRequest | undefined): readonly string[] {
  return (request?.messages ?? []).map(messageText);
}

interface Conversation {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly model: ReturnType<typeof scriptedModel>;
  /** Sends the input in the session, or in the session of another run, and waits for the end of the run. */
  readonly send: (input: string, where?: RunHandle) => Promise<RunHandle>;
}

async function converse(open: () => Promise<Store>, script: readonly ScriptStep[]): Promise<Conversation> {
  const store = await open();
  const runtime = await createRuntime({ store, unknownPrice: "ignore" });
  const model = scriptedModel(script);
  const scout = new Agent({ name: "scout", model });
  const send = async (input: string, where: { sessionId: RunHandle["sessionId"] } = { sessionId }) => {
    const run = await runtime.submit(scout, input, { sessionId: where.sessionId });
    await run.result();
    return run;
  };
  return { store, runtime, model, send };
}

/** Seq of the event before the first event of this type. */
async function seqBefore(store: Store, { runId }: RunHandle, type: Event["type"]): Promise<number> {
  const event = (await readAll(store, runId)).find((each) => each.type === type);
  return (event?.seq ?? 0) - 1;
}

describe.each(twoStores)("%s: a fork", (_name, prepare) => {
  it("a fork has the labels of the entries of its session", async () => {
    const { store, runtime, send } = await converse(await prepare(), ["one", "two"]);
    await send("first");
    const origin = await send("second");
    const { nodes } = await runtime.sessions.tree(sessionId);
    for (const [index, { entry }] of nodes.entries())
      await runtime.sessions.label(sessionId, entry.id, `label ${index}`);
    const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId) });
    await fork.result();
    const copied = await runtime.sessions.tree(fork.sessionId);
    expect(copied.nodes.map(({ label }) => label)).toEqual(nodes.map((_, index) => `label ${index}`));
    await runtime.close();
  });

  it("a fork reads the session as it was at the fork point, and writes to a session of its own", async () => {
    const { store, runtime, model, send } = await converse(await prepare(), [
      "one",
      "two",
      "another two",
      "another one",
      "three",
      "more",
    ]);
    const first = await send("first?");
    const second = await send("second?");
    const before = await store.sessions.read(sessionId, { includeHidden: true });
    const forks: RunHandle[] = [];
    for (const run of [second, first]) {
      const fork = await run.fork({ at: 0 });
      expect((await fork.result()).sessionId).toBe(fork.sessionId);
      forks.push(fork);
    }
    expect(textsOf(model.calls[2])).toEqual(["first?", "one", "second?"]);
    expect(textsOf(model.calls[3])).toEqual(["first?"]);
    expect(new Set([sessionId, ...forks.map((fork) => fork.sessionId)]).size).toBe(3);
    expect(await store.sessions.read(sessionId, { includeHidden: true })).toEqual(before);
    await send("third?");
    expect(textsOf(model.calls[4])).toEqual(["first?", "one", "second?", "two", "third?"]);
    // The conversation of a fork can be continued.
    await send("and?", forks[0]);
    expect(textsOf(model.calls[5])).toEqual(["first?", "one", "second?", "another two", "and?"]);
    const forkEvent = (await readAll(store, forks[0]?.runId ?? first.runId)).find(
      (event): event is Event<"run_fork"> => event.type === "run_fork",
    );
    expect(forkEvent?.data).toMatchObject({ origin: second.runId, at: 0, sessionId: forks[0]?.sessionId });
    await runtime.close();
  });

  it("a fork continues the turn at the fork point, even if the origin's session was deleted after the fork", async () => {
    const { store, runtime, model, send } = await converse(await prepare(), ["one", "two", "again", "more"]);
    await send("first?");
    const second = await send("second?");
    const at = await seqBefore(store, second, "message_end");
    const fork = await second.fork({ at });
    await store.sessions.delete(sessionId);
    expect(await fork.result()).toMatchObject({ status: "completed", output: "again" });
    await send("and?", fork);
    expect(textsOf(model.calls[3])).toEqual(["first?", "one", "second?", "again", "and?"]);
    await expect(second.fork({ at })).rejects.toMatchObject({ code: "not_found" });
    await runtime.close();
  });

  it("a fork of an ended run contains the messages of that run", async () => {
    const { store, runtime, model, send } = await converse(await prepare(), ["one", "two", "more"]);
    const first = await send("first?");
    const at = await store.events.lastSeq(first.runId);
    await send("second?");
    const fork = await first.fork({ at });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "one" });
    await send("and?", fork);
    expect(textsOf(model.calls[2])).toEqual(["first?", "one", "and?"]);
    const entries = await store.sessions.read(fork.sessionId);
    expect(entries.some(({ entry }) => entry.runId === first.runId)).toBe(false);
    await runtime.close();
  });

  it("a fork gets a new session, even if its run id was used by a deleted fork", async () => {
    const { store, runtime, model, send } = await converse(await prepare(), ["one", "two", "three"]);
    const first = await send("first?");
    const runId = formatRunId("fork");
    const fork = await first.fork({ at: 0, runId });
    await fork.result();
    expect((await first.fork({ at: 0, runId })).sessionId).toBe(fork.sessionId);
    await store.journal.delete(runId);
    const again = await first.fork({ at: 0, runId });
    await again.result();
    expect(textsOf(model.calls[2])).toEqual(["first?"]);
    expect(again.sessionId).not.toBe(fork.sessionId);
    await runtime.close();
  });

  it("a fork of a run with an unnamed session gets an unnamed session", async () => {
    const store = await (await prepare())();
    const clock = new FakeClock();
    const runtime = await createRuntime({ store, clock, unknownPrice: "ignore" });
    const origin = await runtime.submit(new Agent({ name: "scout", model: scriptedModel(["one"]) }), "?");
    await origin.result();
    await clock.advance(1_000);
    const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId) });
    await fork.result();
    expect(fork.sessionId).toBe(unnamedSessionId(fork.runId));
    const entries = await store.sessions.read(fork.sessionId);
    expect(new Set(entries.map(({ entry }) => entry.runId))).toEqual(new Set([fork.runId]));
    const [newest] = (await store.sessions.list()).sessions;
    expect(newest).toMatchObject({ sessionId: fork.sessionId, updatedAt: clock.now() });
    await runtime.close();
  });

  it("S2: a fork that fails keeps the user's message pending, and can be resumed", async () => {
    const refused = { error: Object.assign(new Error("no such model"), { status: 400 }) };
    const { store, runtime, model, send } = await converse(await prepare(), [
      "one",
      refused,
      "again",
      "more",
    ]);
    const first = await send("first?");
    const fork = await first.fork({ at: 0 });
    expect((await fork.result()).status).toBe("failed");
    const [entry] = await store.sessions.read(fork.sessionId, { includeHidden: true });
    expect(entry).toMatchObject({ visibility: "pending", entry: { id: fork.runId, parentId: null } });
    await fork.resume();
    expect((await fork.result()).output).toBe("again");
    await send("and?", fork);
    expect(textsOf(model.calls[3])).toEqual(["first?", "again", "and?"]);
    await runtime.close();
  });

  it("a fork gives its children the history that they had at the fork point", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({ store });
    const child = agent("child", async (ctx) => {
      const turn = await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      const batch = {
        runId: ctx.facts.runId,
        taskId: ctx.taskId,
        at: turn.at,
        parentId: turn.leafId,
        stem: `${ctx.facts.runId}/${ctx.taskId}`,
        from: 0,
        messages: [userMessage(turn.input as string)],
      };
      ctx.report({
        sessions: [
          {
            type: "say",
            sessionId: turn.sessionId ?? sessionId,
            agentId: ctx.agentId,
            batch,
            visibility: "visible",
          },
        ],
      });
      return [...turn.history].map(messageText);
    });
    const parent = agent(
      "parent",
      async (ctx) => {
        const histories = [];
        for (const part of ["a", "b"]) {
          const brief = `${ctx.input as string} ${part}`;
          const spawned = await ctx.spawn(child.id, brief, { retention: HistoryRetention.PERMANENT });
          if (spawned.kind === "spawned") histories.push((await ctx.join(spawned.handle)).output);
        }
        return histories;
      },
      { subAgents: [child], messageOf: (input) => userMessage(input as string) },
    );
    const run = async (input: string): Promise<RunHandle> => {
      const handle = await runtime.submit(parent, input, { sessionId });
      await handle.result();
      return handle;
    };
    await run("first");
    const second = await run("second");
    await run("third");
    const events = await readAll(store, second.runId);
    const ended = events.filter(({ type, taskId }) => type === "task_end" && taskId !== "t0");
    const childSession = async (conversation: SessionId) => {
      const [own, ...others] = (await store.sessions.list({ under: conversation })).sessions;
      expect(others).toEqual([]);
      return store.sessions.read(own?.sessionId ?? conversation);
    };
    const before = await childSession(sessionId);
    // After the end of the first child of the second run, and before its start.
    for (const at of [ended[0]?.seq ?? -1, 0]) {
      const fork = await second.fork({ at });
      expect((await fork.result()).output).toEqual([
        ["first a", "first b"],
        ["first a", "first b", "second a"],
      ]);
      const entries = await childSession(fork.sessionId);
      expect(
        entries.map(({ entry }) => (entry.type === "message" ? messageText(entry.message) : entry.type)),
      ).toEqual(["first a", "first b", "second a", "second b"]);
    }
    expect(await childSession(sessionId)).toEqual(before);
    await runtime.close();
  });

  it("a fork is refused at a seq after the last event, and at a value that is no seq", async () => {
    const { store, runtime, send } = await converse(await prepare(), ["one"]);
    const run = await send("first?");
    const last = await store.events.lastSeq(run.runId);
    for (const at of [last + 1, 10_000, -1, 1.5, Number.NaN, "3" as unknown as number]) {
      await expect(run.fork({ at })).rejects.toMatchObject({ code: "invalid_argument" });
    }
    await expect(run.fork({ at: last + 1 })).rejects.toThrow(`so far is ${last}`);
    expect((await store.journal.list()).runs).toHaveLength(1);
    await run.fork({ at: last, runId: formatRunId("fork") });
    await runtime.close();
  });
});
