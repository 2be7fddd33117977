import { describe, expect, it } from "vitest";
import { AgentCore } from "../../../src/agents/index.ts";
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
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, readAll } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const sessionId = parseSessionId("trip");

function seen(request: ModelRequest | undefined): readonly string[] {
  return (request?.messages ?? []).map(messageText);
}

interface Talk {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly model: ReturnType<typeof scriptedModel>;
  /** Says it in the session, or in another, to the end. */
  readonly say: (input: string, where?: RunHandle) => Promise<RunHandle>;
}

async function talk(open: () => Promise<Store>, script: readonly ScriptStep[]): Promise<Talk> {
  const store = await open();
  const runtime = await createRuntime({ store, unknownPrice: "ignore" });
  const model = scriptedModel(script);
  const scout = new AgentCore({ name: "scout", model });
  const say = async (input: string, where: { sessionId: RunHandle["sessionId"] } = { sessionId }) => {
    const run = await runtime.submit(scout, input, { sessionId: where.sessionId });
    await run.result();
    return run;
  };
  return { store, runtime, model, say };
}

async function lastBefore(store: Store, { runId }: RunHandle, type: Event["type"]): Promise<number> {
  const event = (await readAll(store, runId)).find((each) => each.type === type);
  return (event?.seq ?? 0) - 1;
}

describe.each(twoStores)("%s: a fork", (_name, prepare) => {
  it("sees the session as it stood at the cut, and says nothing in it", async () => {
    const { store, runtime, model, say } = await talk(await prepare(), [
      "one",
      "two",
      "another two",
      "another one",
      "three",
      "more",
    ]);
    const first = await say("first?");
    const second = await say("second?");
    const before = await store.sessions.read(sessionId, { includeHidden: true });
    const forks: RunHandle[] = [];
    for (const run of [second, first]) {
      const fork = await run.fork({ at: 0 });
      expect((await fork.result()).sessionId).toBe(fork.sessionId);
      forks.push(fork);
    }
    expect(seen(model.calls[2])).toEqual(["first?", "one", "second?"]);
    expect(seen(model.calls[3])).toEqual(["first?"]);
    expect(new Set([sessionId, ...forks.map((fork) => fork.sessionId)]).size).toBe(3);
    expect(await store.sessions.read(sessionId, { includeHidden: true })).toEqual(before);
    await say("third?");
    expect(seen(model.calls[4])).toEqual(["first?", "one", "second?", "two", "third?"]);
    // The fork's conversation can be gone on with.
    await say("and?", forks[0]);
    expect(seen(model.calls[5])).toEqual(["first?", "one", "second?", "another two", "and?"]);
    const told = (await readAll(store, forks[0]?.runId ?? first.runId)).find(
      (event): event is Event<"run_fork"> => event.type === "run_fork",
    );
    expect(told?.data).toMatchObject({ origin: second.runId, at: 0, sessionId: forks[0]?.sessionId });
    await runtime.close();
  });

  it("goes on with the turn it shares, also when the origin's session is gone since", async () => {
    const { store, runtime, model, say } = await talk(await prepare(), ["one", "two", "again", "more"]);
    await say("first?");
    const second = await say("second?");
    const at = await lastBefore(store, second, "message_end");
    const fork = await second.fork({ at });
    await store.sessions.delete(sessionId);
    expect(await fork.result()).toMatchObject({ status: "completed", output: "again" });
    await say("and?", fork);
    expect(seen(model.calls[3])).toEqual(["first?", "one", "second?", "again", "and?"]);
    await expect(second.fork({ at })).rejects.toMatchObject({ code: "not_found" });
    await runtime.close();
  });

  it("of a run that has ended has what it said", async () => {
    const { store, runtime, model, say } = await talk(await prepare(), ["one", "two", "more"]);
    const first = await say("first?");
    const at = await store.events.lastSeq(first.runId);
    await say("second?");
    const fork = await first.fork({ at });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "one" });
    await say("and?", fork);
    expect(seen(model.calls[2])).toEqual(["first?", "one", "and?"]);
    const entries = await store.sessions.read(fork.sessionId);
    expect(entries.some(({ entry }) => entry.runId === first.runId)).toBe(false);
    await runtime.close();
  });

  it("has a session nobody else is in, also under the id of one that was deleted", async () => {
    const { store, runtime, model, say } = await talk(await prepare(), ["one", "two", "three"]);
    const first = await say("first?");
    const runId = formatRunId("fork");
    const fork = await first.fork({ at: 0, runId });
    await fork.result();
    expect((await first.fork({ at: 0, runId })).sessionId).toBe(fork.sessionId);
    await store.journal.delete(runId);
    const again = await first.fork({ at: 0, runId });
    await again.result();
    expect(seen(model.calls[2])).toEqual(["first?"]);
    expect(again.sessionId).not.toBe(fork.sessionId);
    await runtime.close();
  });

  it("of a run whose session nobody named has one that nobody named", async () => {
    const store = await (await prepare())();
    const clock = new FakeClock();
    const runtime = await createRuntime({ store, clock, unknownPrice: "ignore" });
    const origin = await runtime.submit(new AgentCore({ name: "scout", model: scriptedModel(["one"]) }), "?");
    await origin.result();
    await clock.advance(1_000);
    const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId) });
    await fork.result();
    expect(fork.sessionId).toBe(unnamedSessionId(fork.runId));
    const entries = await store.sessions.read(fork.sessionId);
    expect(new Set(entries.map(({ entry }) => entry.runId))).toEqual(new Set([fork.runId]));
    const [newest] = await store.sessions.list();
    expect(newest).toMatchObject({ sessionId: fork.sessionId, updatedAt: clock.now() });
    await runtime.close();
  });

  it("that fails keeps what its user said pending (S2), and is resumed", async () => {
    const refused = { error: Object.assign(new Error("no such model"), { status: 400 }) };
    const { store, runtime, model, say } = await talk(await prepare(), ["one", refused, "again", "more"]);
    const first = await say("first?");
    const fork = await first.fork({ at: 0 });
    expect((await fork.result()).status).toBe("failed");
    const [entry] = await store.sessions.read(fork.sessionId, { includeHidden: true });
    expect(entry).toMatchObject({ visibility: "pending", entry: { id: fork.runId, parentId: null } });
    await fork.resume();
    expect((await fork.result()).output).toBe("again");
    await say("and?", fork);
    expect(seen(model.calls[3])).toEqual(["first?", "again", "and?"]);
    await runtime.close();
  });

  it("has children who remember what they did up to the cut, and nothing since", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({ store });
    const child = agent("child", async (ctx) => {
      const turn = await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      const said = {
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
            batch: said,
            visibility: "visible",
          },
        ],
      });
      return [...turn.history].map(messageText);
    });
    const parent = agent(
      "parent",
      async (ctx) => {
        const heard = [];
        for (const part of ["a", "b"]) {
          const brief = `${ctx.input as string} ${part}`;
          const spawned = await ctx.spawn(child.id, brief, { retention: HistoryRetention.PERMANENT });
          if (spawned.kind === "spawned") heard.push((await ctx.join(spawned.handle)).output);
        }
        return heard;
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
    const childOf = async (conversation: SessionId) => {
      const [own, ...others] = await store.sessions.list({ under: conversation });
      expect(others).toEqual([]);
      return store.sessions.read(own?.sessionId ?? conversation);
    };
    const before = await childOf(sessionId);
    // After the first child of the second run, and before it began.
    for (const at of [ended[0]?.seq ?? -1, 0]) {
      const fork = await second.fork({ at });
      expect((await fork.result()).output).toEqual([
        ["first a", "first b"],
        ["first a", "first b", "second a"],
      ]);
      const entries = await childOf(fork.sessionId);
      expect(
        entries.map(({ entry }) => (entry.type === "message" ? messageText(entry.message) : entry.type)),
      ).toEqual(["first a", "first b", "second a", "second b"]);
    }
    expect(await childOf(sessionId)).toEqual(before);
    await runtime.close();
  });

  it("is refused past the last event, and where there is none", async () => {
    const { store, runtime, say } = await talk(await prepare(), ["one"]);
    const run = await say("first?");
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
