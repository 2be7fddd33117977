import { describe, expect, test } from "vitest";
import { Agent } from "../../../src/entries/index.ts";
import { parseSessionId, userMessage } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";
import { converse, textsOf } from "./conversation.ts";

removeStoresAfterEach();

const echo = ({ messages }: { readonly messages: readonly unknown[] }): string => `answer ${messages.length}`;
const refused = Object.assign(new Error("bad key"), { status: 401 });
const chat = parseSessionId("chat");

describe.each(twoStores)("runtime.sessions in a %s store", (_name, prepare) => {
  test("sessions.list() returns conversations with name, title and owner, filtered and page by page", async () => {
    const { runtime, scout } = await converse(await (await prepare())(), Array(5).fill(echo));
    for (const [sessionId, userId, input] of [
      ["one", "ann", "Plan the trip"],
      ["two", "ann", "Write a poem"],
      ["three", "bob", "Book a trip"],
    ] as const)
      await scout.invoke(input, { runtime, sessionId, userId });
    await runtime.sessions.name("two", "Ode");
    const ids = async (options?: object): Promise<string[]> =>
      (await runtime.sessions.list(options)).sessions.map(({ sessionId }) => sessionId).toSorted();
    expect(await ids()).toEqual(["one", "three", "two"]);
    expect(await ids({ userId: "ann" })).toEqual(["one", "two"]);
    expect(await ids({ text: "trip" })).toEqual(["one", "three"]);
    expect(await ids({ text: "ode", agentId: "scout" })).toEqual(["two"]);
    expect(await ids({ tenantId: null, userId: "bob" })).toEqual(["three"]);
    const first = await runtime.sessions.list({ limit: 2 });
    const second = await runtime.sessions.list({ limit: 2, after: first.next as string });
    expect([first.sessions.length, second.sessions.length, second.next]).toEqual([2, 1, null]);
    expect(await runtime.sessions.get("two")).toMatchObject({
      name: "Ode",
      title: "Write a poem",
      userId: "ann",
    });
    expect(await runtime.sessions.get("none")).toBeUndefined();
    await runtime.close();
  });

  test("message entries of a session carry model, stop reason, usage and cost", async () => {
    const { runtime, say } = await converse(await (await prepare())(), [
      { text: "Rain.", usage: { inputTokens: 100, outputTokens: 20, costUsd: 0.5 } },
    ]);
    await say("Weather?", chat);
    const [question, answer] = await runtime.sessions.path(chat);
    expect(question).not.toHaveProperty("usage");
    expect(answer).toMatchObject({
      type: "message",
      model: { provider: "scripted", modelId: "script" },
      stopReason: "stop",
      usage: { inputTokens: 100, outputTokens: 20, costUsd: 0.5 },
    });
    await runtime.close();
  });

  test("sessions.move() continues after an earlier entry; the next invocation sees only that path and its summary", async () => {
    const { runtime, say, model } = await converse(await (await prepare())(), Array(4).fill(echo));
    await say("one", chat);
    await say("two", chat);
    const [, first] = await runtime.sessions.path(chat);
    const leafId = await runtime.sessions.move(chat, first?.id as string, { summary: "two led nowhere" });
    expect((await runtime.sessions.get(chat))?.leafId).toBe(leafId);
    await say("three", chat);
    const texts = model.calls.at(-1)?.messages.map((message) => JSON.stringify(message.content));
    expect(texts?.length).toBe(4);
    expect(texts?.[2]).toContain("two led nowhere");
    expect(textsOf(await runtime.sessions.path(chat))).toEqual([
      "one",
      "answer 1",
      "branch_summary",
      "three",
      "answer 4",
    ]);
    await runtime.sessions.move(chat, null);
    await say("four", chat);
    expect(textsOf(await runtime.sessions.path(chat))).toEqual(["four", "answer 1"]);
    await runtime.close();
  });

  test("sessions.tree() returns all branches with labels and marks the path to the current entry", async () => {
    const { runtime, say } = await converse(await (await prepare())(), Array(4).fill(echo));
    await say("one", chat);
    const [question] = await runtime.sessions.path(chat);
    const rootId = question?.id as string;
    await runtime.sessions.label(chat, rootId, "start");
    await say("two", chat);
    await runtime.sessions.move(chat, rootId);
    await say("three", chat);
    const { roots, leafId, nodes } = await runtime.sessions.tree(chat);
    const shape = (id: string): unknown => {
      const node = nodes.find(({ entry }) => entry.id === id);
      if (node === undefined) throw new Error(`there is no node ${id}`);
      const { entry, isOnPath, label, children } = node;
      return [textsOf([entry])[0], isOnPath, label, ...children.map(shape)];
    };
    expect(roots.map(shape)).toEqual([
      [
        "one",
        true,
        "start",
        ["answer 1", false, null, ["two", false, null, ["answer 3", false, null]]],
        ["three", true, null, ["answer 2", true, null]],
      ],
    ]);
    expect(leafId).toBe((await runtime.sessions.path(chat)).at(-1)?.id);
    await runtime.sessions.label(chat, rootId, null);
    expect((await runtime.sessions.tree(chat)).nodes[0]?.label).toBeNull();
    const { entries, next } = await runtime.sessions.entries(chat, { limit: 3 });
    const rest = await runtime.sessions.entries(chat, { limit: 100, after: next as string });
    expect([entries.length, entries.length + rest.entries.length, rest.next]).toEqual([3, 9, null]);
    await runtime.close();
  });

  test("sessions.fork() copies the path to an entry into a new session of the same owner; both continue independently", async () => {
    const { runtime, say, scout } = await converse(await (await prepare())(), Array(5).fill(echo));
    await scout.invoke("one", { runtime, sessionId: chat, userId: "ann", tenantId: "acme" });
    await scout.invoke("two", { runtime, sessionId: chat, userId: "ann", tenantId: "acme" });
    const path = await runtime.sessions.path(chat);
    const forked = await runtime.sessions.fork(chat, { entryId: path[1]?.id as string, name: "Fork" });
    expect(await runtime.sessions.get(forked)).toMatchObject({
      name: "Fork",
      tenantId: "acme",
      userId: "ann",
    });
    await say("three", forked);
    expect(textsOf(await runtime.sessions.path(forked))).toEqual([
      "one",
      "answer 1",
      "custom",
      "three",
      "answer 3",
    ]);
    expect(await runtime.sessions.path(chat)).toEqual(path);
    await expect(runtime.sessions.fork(chat, { sessionId: forked })).rejects.toMatchObject({
      code: "already_exists",
    });
    await runtime.sessions.delete(chat);
    expect(textsOf(await runtime.sessions.path(forked))).toHaveLength(5);
    await runtime.close();
  });

  test("sessions.fork() copies the labels of the entries that it copies, and no label that was removed", async () => {
    const { runtime, say } = await converse(await (await prepare())(), Array(2).fill(echo));
    await say("one", chat);
    await say("two", chat);
    const [question, answer, later] = (await runtime.sessions.path(chat)).map(({ id }) => id);
    for (const [id, label] of [
      [question, "draft"],
      [question, "start"],
      [answer, "gone"],
      [answer, null],
      [later, "after the fork"],
    ] as const)
      await runtime.sessions.label(chat, id as string, label);
    const forked = await runtime.sessions.fork(chat, { entryId: answer as string });
    const { nodes } = await runtime.sessions.tree(forked);
    expect(nodes.map(({ label }) => label)).toEqual(["start", null, null]);
    expect(textsOf(await runtime.sessions.path(forked))).toEqual(["one", "answer 1", "custom"]);
    await runtime.close();
  });

  test("sessions.append() adds data that the model does not see, or messages that it sees", async () => {
    const { runtime, say, model } = await converse(await (await prepare())(), Array(2).fill(echo));
    await say("one", chat);
    await runtime.sessions.append(chat, { customType: "note", data: { secret: 7 } });
    await runtime.sessions.append(chat, { customType: "hint", message: userMessage("Be brief.") });
    await say("two", chat);
    expect(model.calls.at(-1)?.messages).toHaveLength(4);
    expect(textsOf(await runtime.sessions.path(chat))).toEqual([
      "one",
      "answer 1",
      "custom",
      "Be brief.",
      "two",
      "answer 4",
    ]);
    await runtime.close();
  });

  test("sessions.compact() replaces the beginning of the path in the model's view and keeps every entry", async () => {
    const { runtime, say, model } = await converse(await (await prepare())(), Array(4).fill(echo));
    for (const input of ["one", "two", "three"]) await say(input, chat);
    const path = await runtime.sessions.path(chat);
    await runtime.sessions.compact(chat, { summary: "one and two", firstKeptEntryId: path[4]?.id as string });
    await say("four", chat);
    expect(model.calls.at(-1)?.messages).toHaveLength(4);
    expect(JSON.stringify(model.calls.at(-1)?.messages[0])).toContain("one and two");
    expect(await runtime.sessions.path(chat)).toHaveLength(9);
    expect(await runtime.sessions.path(chat, { from: "compaction" })).toHaveLength(5);
    const whole = await runtime.sessions.path(chat);
    expect(await runtime.sessions.path(chat, { limit: 3 })).toEqual(whole.slice(-3));
    await expect(runtime.sessions.path(chat, { limit: 3, from: "compaction" })).rejects.toThrow(
      /limit and from: "compaction" exclude each other/u,
    );
    await expect(
      runtime.sessions.compact(chat, { summary: "again", firstKeptEntryId: path[0]?.id as string }),
    ).rejects.toMatchObject({ code: "not_found" });
    await runtime.close();
  });

  test("sessions.search() finds entries of all branches in any case of letters, page by page, and only in selected sessions", async () => {
    const { runtime, scout } = await converse(await (await prepare())(), Array(6).fill("The RAIN falls."));
    for (const sessionId of ["a", "b", "c"])
      await scout.invoke(`rain in ${sessionId}`, { runtime, sessionId, userId: sessionId });
    const found: string[] = [];
    for (let after: string | null = null; ;) {
      const page = await runtime.sessions.search("Rain", { limit: 2, ...(after !== null && { after }) });
      found.push(...page.hits.map(({ sessionId, excerpt }) => `${sessionId}: ${excerpt}`));
      if ((after = page.next) === null) break;
    }
    expect(found.toSorted()).toEqual(
      ["a", "b", "c"].flatMap((id) => [`${id}: The RAIN falls.`, `${id}: rain in ${id}`]),
    );
    const one = await runtime.sessions.search("rain", { sessionId: "b" });
    expect(one.hits.map(({ sessionId }) => sessionId)).toEqual(["b", "b"]);
    expect((await runtime.sessions.search("rain", { userId: "c" })).hits).toHaveLength(2);
    expect(await runtime.sessions.search("snow")).toEqual({ hits: [], next: null });
    await runtime.close();
  });

  test("sessions.contextUsage() adds an estimate to the last reported usage and compares the sum with the model's window", async () => {
    const { runtime, say } = await converse(await (await prepare())(), [
      { text: "Rain.", usage: { inputTokens: 100, outputTokens: 20 } },
    ]);
    await say("Weather?", chat);
    expect(await runtime.sessions.contextUsage(chat)).toEqual({
      tokens: 120,
      reported: 120,
      estimated: 0,
      model: "scripted/script",
      contextWindow: 10_000,
      share: 0.012,
    });
    await runtime.sessions.append(chat, { customType: "hint", message: userMessage("x".repeat(400)) });
    expect(await runtime.sessions.contextUsage(chat)).toMatchObject({ tokens: 224, estimated: 104 });
    const [question] = await runtime.sessions.path(chat);
    await runtime.sessions.compact(chat, { summary: "short", firstKeptEntryId: question?.id as string });
    const after = await runtime.sessions.contextUsage(chat);
    expect([after.reported, after.tokens === after.estimated]).toEqual([0, true]);
    await runtime.close();
  });

  test("sessions.unsent() lists the inputs of failed runs, and resend() sends one of them again exactly once", async () => {
    const open = await prepare();
    const first = await converse(await open(), ["Hello.", { error: refused }]);
    await first.say("Hi", chat);
    expect((await first.say("Weather?", chat)).status).toBe("failed");
    const [unsent, ...others] = await first.runtime.sessions.unsent(chat);
    expect(others).toEqual([]);
    expect(unsent).toMatchObject({
      input: "Weather?",
      error: { code: "model_auth" },
      run: { status: "failed" },
    });
    await first.runtime.close();
    const runId = unsent?.run.runId as string;
    // Another process sends it again; a repeated call returns the same run.
    const second = await converse(await open(), ["Rain."]);
    const sent = await Promise.all([runId, runId].map((id) => second.runtime.sessions.resend(id)));
    expect(new Set(sent.map((run) => run.runId)).size).toBe(1);
    expect(await sent[0]?.result()).toMatchObject({ status: "completed", output: "Rain.", sessionId: chat });
    expect(textsOf(await second.runtime.sessions.path(chat))).toEqual(["Hi", "Hello.", "Weather?", "Rain."]);
    expect(await second.runtime.sessions.unsent(chat)).toEqual([]);
    await expect(second.runtime.sessions.resend(sent[0]?.runId as string)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await second.runtime.close();
  });

  test("S5: agent.phase() is turn while a run is unfinished, in every process, and only for its agent and session", async () => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open(), closeGraceMs: 0 });
    const other = await createRuntime({ store: await open() });
    const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    expect(await runtime.sessions.phase(chat, "patient")).toBe("idle");
    const run = await runtime.submit(patient, null, { sessionId: chat });
    for (const each of [runtime, other]) {
      expect(await each.sessions.phase(chat, "patient")).toBe("turn");
      expect(await each.sessions.phase(chat, "scout")).toBe("idle");
      expect(await each.sessions.phase("elsewhere", "patient")).toBe("idle");
    }
    await run.cancel();
    await run.result();
    expect(await other.sessions.phase(chat, "patient")).toBe("idle");
    await Promise.all([runtime.close(), other.close()]);
  });

  test("S5: agent.phase() is compaction for every agent while a run compacts the session, and invoke() waits for its end", async () => {
    const store = await (await prepare())();
    const { runtime, scout, say } = await converse(store, Array(3).fill(echo));
    expect(await scout.phase(chat, { runtime })).toBe("idle");
    await say("one", chat);
    const [done] = (await runtime.list({ sessionId: chat })).runs;
    if (done === undefined) throw new Error("the run is missing");
    const record = { ...done, runId: `${done.runId}-c` as typeof done.runId, kind: "compaction" } as const;
    const compactor = await store.journal.find(done.runId);
    if (compactor === undefined) throw new Error("the run is missing");
    const run = {
      ...compactor,
      runId: record.runId,
      kind: record.kind,
      agentId: agent("gone", async () => null).id,
    };
    expect(await store.journal.create(run, { number: 0, at: 1 })).toMatchObject({ kind: "created" });
    expect(await scout.phase(chat, { runtime })).toBe("compaction");
    const saying = say("two", chat);
    await until(async () => (await runtime.list({ sessionId: chat, status: "pending" })).runs.length === 2);
    expect(
      (await runtime.list({ sessionId: chat, agentId: scout.id, status: "pending" })).runs,
    ).toMatchObject([{ waitsFor: ["compaction"] }]);
    await store.journal.delete(run.runId);
    expect((await saying).status).toBe("completed");
    expect(await scout.phase(chat, { runtime })).toBe("idle");
    await runtime.close();
  });

  test("S5: fork() with an entry copies its path while a run is in progress in the session", async () => {
    const store = await (await prepare())();
    const { runtime, say } = await converse(store, Array(2).fill(echo), { closeGraceMs: 0 });
    await say("one", chat);
    const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    await runtime.submit(patient, null, { sessionId: chat });
    const path = await runtime.sessions.path(chat);
    const copy = await runtime.sessions.fork(chat, { entryId: path.at(-1)?.id as string });
    const copied = (await runtime.sessions.path(copy)).map(({ id }) => id);
    expect(copied.slice(0, path.length)).toEqual(path.map(({ id }) => id));
    await runtime.close();
  });

  test("S5: move(), fork(), compact() and delete() of a session throw agent_busy and change nothing while any agent runs", async () => {
    const store = await (await prepare())();
    const { runtime, say } = await converse(store, Array(2).fill(echo), { closeGraceMs: 0 });
    await say("one", chat);
    const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    const run = await runtime.submit(patient, null, { sessionId: chat });
    const before = [
      await runtime.sessions.get(chat),
      await store.sessions.read(chat, { includeHidden: true }),
    ];
    const [question] = await runtime.sessions.path(chat);
    const entryId = question?.id as string;
    for (const change of [
      () => runtime.sessions.move(chat, entryId),
      () => runtime.sessions.move(chat, null, { summary: "x" }),
      () => runtime.sessions.fork(chat, { sessionId: "copy" }),
      () => runtime.sessions.compact(chat, { summary: "x", firstKeptEntryId: entryId }),
      () => runtime.sessions.delete(chat),
    ])
      await expect(change()).rejects.toMatchObject({ code: "agent_busy", details: { runId: run.runId } });
    expect([
      await runtime.sessions.get(chat),
      await store.sessions.read(chat, { includeHidden: true }),
    ]).toEqual(before);
    expect(await runtime.sessions.get("copy")).toBeUndefined();
    // Names, labels and settings do not need an idle session.
    await runtime.sessions.name(chat, "Busy");
    await run.cancel();
    await run.result();
    expect(await runtime.sessions.move(chat, entryId)).toBe(entryId);
    await runtime.close();
  });

  test("runtime.sessions refuses ids of other sessions, labels of 1 MB, NaN, empty texts and unknown options", async () => {
    const { runtime, say } = await converse(await (await prepare())(), Array(2).fill(echo));
    await say("one", chat);
    await say("two", "other");
    const { sessions } = runtime;
    const [foreign] = await sessions.path("other");
    const [own] = await sessions.path(chat);
    const id = foreign?.id as string;
    const before = await sessions.tree(chat);
    const long = "x".repeat(1_048_576);
    const bad: readonly [string, () => Promise<unknown>][] = [
      ["not_found", () => sessions.move(chat, id)],
      ["not_found", () => sessions.fork(chat, { entryId: id })],
      ["not_found", () => sessions.label(chat, id, "x")],
      ["not_found", () => sessions.path(chat, { leafId: id })],
      ["not_found", () => sessions.entries(chat, { after: id })],
      ["not_found", () => sessions.compact(chat, { summary: "x", firstKeptEntryId: id })],
      ["not_found", () => sessions.tree("none")],
      ["not_found", () => sessions.name("none", "x")],
      ["not_found", () => sessions.setModel("none", "a/b")],
      ["not_found", () => sessions.unsent("none")],
      ["not_found", () => sessions.resend("run_none")],
      ["invalid_argument", () => sessions.label(chat, own?.id as string, long)],
      ["invalid_argument", () => sessions.name(chat, long)],
      ["invalid_argument", () => sessions.name(chat, "")],
      ["invalid_argument", () => sessions.name(chat, "\ud800")],
      ["invalid_argument", () => sessions.list({ limit: NaN })],
      ["invalid_argument", () => sessions.entries(chat, { limit: NaN })],
      ["invalid_argument", () => sessions.search("x", { limit: NaN })],
      ["invalid_argument", () => sessions.search("")],
      ["invalid_argument", () => sessions.search("x", { after: "y" })],
      ["invalid_argument", () => sessions.move(chat, 7 as never)],
      ["invalid_argument", () => sessions.setModel(chat, "model")],
      ["invalid_argument", () => sessions.setModel(chat, NaN as never)],
      ["invalid_argument", () => sessions.setThinkingLevel(chat, "deep" as never)],
      ["invalid_argument", () => sessions.list({ texts: "x" } as never)],
      ["invalid_argument", () => sessions.path(chat, { from: "middle" as never })],
      ["not_json", () => sessions.append(chat, { customType: "x", data: { n: NaN } })],
      ["invalid_argument", () => sessions.append(chat, { customType: "x" } as never)],
      ["invalid_argument", () => sessions.get("../etc")],
      ["invalid_argument", () => sessions.path(chat, { leafId: 7 as never })],
      ["invalid_argument", () => sessions.entries(chat, { after: {} as never })],
      ["not_json", () => sessions.append(chat, { customType: "x", data: circle() as never })],
    ];
    for (const [code, change] of bad) await expect(change()).rejects.toMatchObject({ code });
    expect(await sessions.tree(chat)).toEqual(before);
    await runtime.close();
    await expect(sessions.list()).rejects.toMatchObject({ code: "closed" });
  });
});

describe("runtime.sessions of agents without their own runtime", () => {
  test("agent.phase() uses the default runtime and is idle after the invocation", async () => {
    const scout = new Agent({ name: "scout-of-default", model: scriptedModel(["Hi."]) });
    const { sessionId } = await scout.invoke("Hello");
    expect(await scout.phase(sessionId)).toBe("idle");
  });
});

function circle(): object {
  const value: { self?: object } = {};
  value.self = value;
  return value;
}
