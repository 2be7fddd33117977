import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Agent, HistoryRetention, openRuntime, openStore, sha256 } from "../../../src/entries/index.ts";
import {
  agentIdOf,
  parseRunId,
  parseSessionId,
  rootTaskId,
  type HostedAgent,
  type RunHandle,
  type Runtime,
  type Store,
  type TenantScope,
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-tenants-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const waiter: HostedAgent = { id: agentIdOf("waiter"), run: async (ctx) => ctx.waitForSignal("go") };
const quick: HostedAgent = { id: agentIdOf("quick"), run: async () => "done" };
const notFound = { code: "not_found" };

/** A user of tenant acme with a waiting run, an ended run and a session, and a view of another user or tenant. */
interface World {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly ann: Runtime;
  readonly waiting: RunHandle;
  readonly ended: RunHandle;
  readonly hidden: RunHandle;
  readonly agent: Agent;
}

const intruders: Readonly<Record<string, TenantScope>> = {
  "another tenant": { tenantId: "other" },
  "the same user of another tenant": { tenantId: "other", userId: "ann" },
  "another user of the tenant": { tenantId: "acme", userId: "bob" },
};

describe.each(["memory:", "sqlite:"])("a tenant view on %s", (kind) => {
  async function setUp(): Promise<World> {
    const url = kind === "memory:" ? kind : `sqlite:${join(folder, `${++files}.db`)}`;
    const store = await openStore(url, { hash: sha256 });
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const ann = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const agent = new Agent({ name: "talker", model: scriptedModel(["hello", "again", "more"]) });
    const waiting = await ann.submit(waiter, "secret", { runId: "run_waiting", sessionId: "ses_waiting" });
    const options = { runId: "run_hidden", sessionId: "ses_hidden", retention: HistoryRetention.NONE };
    const hidden = await ann.submit(waiter, "secret", options);
    const ended = await ann.submit(agent, "secret", { runId: "run_ended", sessionId: "ses_ended" });
    await ended.result();
    for (const run of [waiting, hidden])
      while ((await run.snapshot()).status !== "waiting") await new Promise(setImmediate);
    return { store, runtime, ann, waiting, ended, hidden, agent };
  }

  /** Everything that an intruder could change. */
  async function stateOf({ store, waiting, ended, hidden }: World): Promise<unknown> {
    const runs = [];
    for (const { runId, sessionId } of [waiting, ended, hidden]) {
      const commits = [];
      for await (const commit of store.journal.read(parseRunId(runId))) commits.push(commit.number);
      const mail = await store.mailbox.read(parseRunId(runId));
      const entries = await store.sessions.read(parseSessionId(sessionId), { includeHidden: true });
      runs.push({ runId, commits, mail, entries });
    }
    return runs;
  }

  async function settled(world: World): Promise<void> {
    await world.waiting.signal("go", "now");
    await world.hidden.signal("go", "now");
    expect((await world.waiting.result()).output).toBe("now");
    expect((await world.hidden.result()).status).toBe("completed");
    await world.runtime.close();
    await world.store.close();
  }

  it("a tenant view refuses ids that a store cannot store unchanged, so that no two tenants become one", async () => {
    const world = await setUp();
    const { runtime } = world;
    const before = (await runtime.list()).runs.length;
    for (const id of [
      "\ud800",
      "acme\udfff",
      "x".repeat(1_025),
      5,
      {},
      ["acme"],
      true,
    ] as unknown as string[]) {
      const invalid = { code: "invalid_argument" };
      expect(() => runtime.forTenant({ tenantId: id })).toThrow(expect.objectContaining(invalid));
      expect(() => runtime.forTenant({ tenantId: "acme", userId: id })).toThrow(
        expect.objectContaining(invalid),
      );
      await expect(runtime.submit(quick, "x", { tenantId: id })).rejects.toMatchObject(invalid);
      await expect(runtime.submit(quick, "x", { userId: id })).rejects.toMatchObject(invalid);
      const record = { namespace: "notes", key: "k", tenantId: id, value: 1 };
      await expect(world.store.records.put(record, "absent")).rejects.toMatchObject(invalid);
    }
    expect((await runtime.list()).runs).toHaveLength(before);
    await settled(world);
  });

  it("a tenant view refuses a query of usage that is no object, and so does the runtime", async () => {
    const world = await setUp();
    const query = null as unknown as Parameters<Runtime["usage"]>[0];
    for (const view of [world.runtime, world.ann])
      await expect(view.usage(query)).rejects.toMatchObject({ code: "invalid_argument" });
    await settled(world);
  });

  it("a tenant view whose userId is undefined keeps the user of a submission and of a query", async () => {
    const world = await setUp();
    const scope = { tenantId: "acme", userId: undefined } as unknown as TenantScope;
    const view = world.runtime.forTenant(scope);
    const run = await view.submit(quick, "x", { userId: "bob" });
    await run.result();
    expect((await view.list({ userId: "bob" })).runs).toMatchObject([{ runId: run.runId, userId: "bob" }]);
    await settled(world);
  });

  describe.each(Object.entries(intruders))("for %s", (_name, scope) => {
    it("a tenant view hides every run, session, dead letter and usage of others, and changes nothing", async () => {
      const world = await setUp();
      const { runtime, agent, waiting, ended, hidden } = world;
      const view = runtime.forTenant(scope);
      const before = await stateOf(world);
      for (const { runId, sessionId } of [waiting, ended, hidden]) {
        expect(await view.find(runId)).toBeUndefined();
        expect((await view.list({ sessionId })).runs).toEqual([]);
        await expect(agent.resume(runId, { runtime: view })).rejects.toMatchObject(notFound);
        await expect(agent.signal(runId, "go", "stolen", { runtime: view })).rejects.toMatchObject(notFound);
        await view.sessions.delete(sessionId);
      }
      for (const { sessionId } of [waiting, hidden])
        await expect(view.submit(waiter, "x", { sessionId, whenBusy: "steer" })).rejects.toMatchObject(
          notFound,
        );
      await expect(view.submit(agent, "x", { sessionId: ended.sessionId })).rejects.toMatchObject(notFound);
      await expect(agent.invoke("x", { sessionId: ended.sessionId, runtime: view })).rejects.toMatchObject(
        notFound,
      );
      await expect(agent.continue(ended.sessionId, { runtime: view })).rejects.toMatchObject(notFound);
      expect((await view.list()).runs).toEqual([]);
      expect(await view.deadLetters()).toEqual([]);
      expect(await view.redeliver("talker@1")).toBe(0);
      expect(await view.usage({ by: "agent" })).toEqual([]);
      expect(await view.collect({ endedBefore: Number.MAX_SAFE_INTEGER })).toBe(0);
      expect(await stateOf(world)).toEqual(before);
      await settled(world);
    });

    it("a tenant view hides the sessions of others from every method of runtime.sessions, and changes nothing", async () => {
      const world = await setUp();
      const { runtime, ann, ended, waiting, hidden } = world;
      const { sessions } = runtime.forTenant(scope);
      const [entry] = await ann.sessions.path(ended.sessionId);
      const entryId = entry?.id ?? "";
      const before = await stateOf(world);
      const outcomes: Record<string, unknown> = {};
      for (const { sessionId } of [ended, waiting, hidden]) {
        const calls: Readonly<Record<string, () => Promise<unknown>>> = {
          path: () => sessions.path(sessionId),
          entries: () => sessions.entries(sessionId),
          tree: () => sessions.tree(sessionId),
          name: () => sessions.name(sessionId, "stolen"),
          label: () => sessions.label(sessionId, entryId, "stolen"),
          move: () => sessions.move(sessionId, null),
          fork: () => sessions.fork(sessionId),
          append: () => sessions.append(sessionId, { customType: "x", data: 1 }),
          compact: () => sessions.compact(sessionId, { summary: "stolen", firstKeptEntryId: entryId }),
          setModel: () => sessions.setModel(sessionId, "openai/gpt-5"),
          setThinkingLevel: () => sessions.setThinkingLevel(sessionId, "high"),
          contextUsage: () => sessions.contextUsage(sessionId),
          unsent: () => sessions.unsent(sessionId),
        };
        for (const [name, call] of Object.entries(calls))
          outcomes[`${name} ${sessionId}`] = await call().then(
            (value) => value,
            ({ code }: { readonly code: string }) => code,
          );
        expect(await sessions.get(sessionId)).toBeUndefined();
        expect(await sessions.phase(sessionId, ended.agentId)).toBe("idle");
        expect(await sessions.phase(sessionId, waiting.agentId)).toBe("idle");
        expect((await sessions.search("secret", { sessionId })).hits).toEqual([]);
        await sessions.delete(sessionId);
      }
      expect(outcomes).toEqual(Object.fromEntries(Object.keys(outcomes).map((name) => [name, "not_found"])));
      for (const { runId } of [ended, waiting, hidden])
        await expect(sessions.resend(runId)).rejects.toMatchObject(notFound);
      expect((await sessions.list()).sessions).toEqual([]);
      expect((await sessions.search("secret")).hits).toEqual([]);
      expect(await stateOf(world)).toEqual(before);
      await settled(world);
    });

    it("a tenant view does not fork its own session into a session of others", async () => {
      const world = await setUp();
      const view = world.runtime.forTenant(scope);
      const agent = new Agent({ name: "talker", model: scriptedModel(["mine"]) });
      const options = { runtime: world.runtime, sessionId: "ses_mine", ...scope };
      await agent.with({ name: "other" }).invoke("hi", options);
      const before = await stateOf(world);
      const fork = view.sessions.fork("ses_mine", { sessionId: world.ended.sessionId });
      await expect(fork).rejects.toMatchObject(notFound);
      expect(await stateOf(world)).toEqual(before);
      await settled(world);
    });

    it("a tenant view refuses for a fork the run id of another user of the tenant, and accepts that of another tenant", async () => {
      const world = await setUp();
      const view = world.runtime.forTenant(scope);
      const own = await view.submit(quick, "mine");
      await own.result();
      for (const { runId } of [world.waiting, world.ended]) {
        const fork = own.fork({ at: 0, runId }).then(
          (other) => other.runId === runId,
          ({ code }: { readonly code: string }) => code,
        );
        expect(await fork).toBe(scope.tenantId === "acme" ? "already_exists" : false);
      }
      await settled(world);
    });

    it("a tenant view refuses every call of a handle whose run id now belongs to others", async () => {
      const world = await setUp();
      const { runtime, store } = world;
      const view = runtime.forTenant(scope);
      const options = { runId: "run_reused", sessionId: "ses_reused" };
      const stale = await view.submit(quick, "mine", options);
      await stale.result();
      await store.journal.delete(parseRunId(stale.runId));
      await view.sessions.delete("ses_reused");
      const again = await runtime.submit(waiter, "secret", { ...options, runId: stale.runId });
      const calls: Readonly<Record<string, () => Promise<unknown>>> = {
        result: () => stale.result(),
        snapshot: () => stale.snapshot(),
        cancel: () => stale.cancel(),
        pause: () => stale.pause(),
        resume: () => stale.resume(),
        topUp: () => stale.topUp({ maxCostUsd: 1 }),
        reprioritize: () => stale.reprioritize(rootTaskId, 1),
        steer: () => stale.steer("x"),
        followUp: () => stale.followUp("x"),
        signal: () => stale.signal("go", "stolen"),
        approve: () => stale.approve("a", { decision: "approved" }),
        toolResult: () => stale.toolResult("c", "x"),
        pendingApprovals: () => stale.pendingApprovals(),
        fork: () => stale.fork({ at: 0 }),
        events: async () => {
          for await (const event of stale.events()) return event;
          return undefined;
        },
      };
      const outcomes: Record<string, unknown> = {};
      for (const [name, call] of Object.entries(calls))
        outcomes[name] = await call().then(
          () => "done",
          ({ code }: { readonly code: string }) => code,
        );
      expect(outcomes).toEqual(Object.fromEntries(Object.keys(calls).map((name) => [name, "not_found"])));
      await again.signal("go", "untouched");
      expect((await again.result()).output).toBe("untouched");
      await settled(world);
    });
  });

  it("a tenant view assigns the runs, sessions and usage that it creates to its tenant and user", async () => {
    const world = await setUp();
    const { runtime, ann, ended, agent } = world;
    const { runs } = await ann.list();
    expect(runs.map(({ tenantId, userId }) => [tenantId, userId])).toEqual(runs.map(() => ["acme", "ann"]));
    expect((await ann.find(ended.runId))?.runId).toBe(ended.runId);
    const more = await agent.invoke("more", { runtime: ann, sessionId: ended.sessionId });
    expect(more.output).toBe("again");
    const acme = runtime.forTenant({ tenantId: "acme" });
    expect((await acme.list()).runs).toHaveLength(4);
    expect((await acme.usage({ by: "user" })).map(({ key }) => key)).toEqual(["ann"]);
    const bobs = await acme.submit(quick, "x", { userId: "bob" });
    expect((await acme.find(bobs.runId))?.runId).toBe(bobs.runId);
    expect(await ann.find(bobs.runId)).toBeUndefined();
    await settled(world);
  });

  it("a tenant view refuses names of other tenants and users, and names that are no text", async () => {
    const world = await setUp();
    const { runtime, ann, ended } = world;
    const invalid = { code: "invalid_argument" };
    await expect(ann.submit(quick, "x", { tenantId: "other" })).rejects.toMatchObject(invalid);
    await expect(ann.submit(quick, "x", { userId: "bob" })).rejects.toMatchObject(invalid);
    await expect(ann.list({ tenantId: "other" })).rejects.toMatchObject(invalid);
    await expect(ann.list({ userId: null })).rejects.toMatchObject(invalid);
    await expect(ann.usage({ by: "day", tenantId: null })).rejects.toMatchObject(invalid);
    expect(() => ann.forTenant({ tenantId: "other" })).toThrow(/this view is for "acme"/);
    expect(() => ended.as("bob")).toThrow(/invalid name "bob"/);
    for (const scope of [{}, { tenantId: "" }, { tenantId: 1 }, { tenantId: "a", userId: "" }, null])
      expect(() => runtime.forTenant(scope as TenantScope)).toThrow(/forTenant\(\)/);
    expect(() => runtime.forTenant({ tenantId: "a", user: "b" } as never)).toThrow(/userId/);
    await settled(world);
  });

  it("a run that the code of another run starts belongs to the same tenant and user", async () => {
    const world = await setUp();
    const { runtime, ann } = world;
    const outer: HostedAgent = {
      id: agentIdOf("outer"),
      run: async (ctx) =>
        ctx.step("start others", async () => {
          const other = runtime.forTenant({ tenantId: "other" });
          const runs = [
            await runtime.submit(quick, "x"),
            await runtime.forTenant({ tenantId: "acme" }).submit(quick, "x"),
            await runtime.submit(quick, "x", { userId: "bob" }),
            await other.submit(quick, "x"),
          ];
          return runs.map(({ runId }) => runId);
        }),
    };
    const run = await ann.submit(outer, "go");
    const started = (await run.result()).output as readonly string[];
    const owners = [];
    for (const runId of started) {
      const record = await world.store.journal.find(parseRunId(runId));
      owners.push([record?.tenantId, record?.userId]);
    }
    expect(owners).toEqual([
      ["acme", "ann"],
      ["acme", "ann"],
      [null, "bob"],
      ["other", null],
    ]);
    await settled(world);
  });

  it("closing a tenant view keeps its runtime open", async () => {
    const world = await setUp();
    await world.ann.close();
    expect((await world.runtime.list()).runs).toHaveLength(3);
    await settled(world);
  });
});

it("B7: a runtime and a tenant view name the daily cap that applies to their runs", async () => {
  const caps = { perDayUsd: 50, perTenantPerDayUsd: 5, perUserPerDayUsd: 1 };
  await using runtime = await openRuntime({ caps });
  const views = [
    runtime,
    runtime.forTenant({ tenantId: "acme" }),
    runtime.forTenant({ tenantId: "acme", userId: "ann" }),
  ];
  expect(views.map(({ dayCapUsd }) => dayCapUsd)).toEqual([50, 5, 1]);
  await using uncapped = await openRuntime();
  expect(uncapped.dayCapUsd).toBeNull();
});
