import { describe, expect, test } from "vitest";
import { Fault, parseSessionId, userMessage, type RuntimeSessions } from "../../../src/kernel/index.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";
import { converse } from "./conversation.ts";

removeStoresAfterEach();

const theirs = parseSessionId("theirs");
const refused = Object.assign(new Error("bad key"), { status: 401 });

const imported = {
  type: "message",
  id: "e1",
  parentId: null,
  at: 0,
  runId: null,
  taskId: null,
  message: userMessage("mine"),
} as const;

/** Calls every method of a view with ids of others. */
const attacks = (
  sessions: RuntimeSessions,
  entryId: string,
  runId: string,
): Readonly<Record<keyof RuntimeSessions, () => Promise<unknown>>> => ({
  list: async () => (await sessions.list()).sessions,
  get: async () => (await sessions.get(theirs)) ?? [],
  search: async () => (await sessions.search("secret")).hits,
  path: () => sessions.path(theirs),
  entries: () => sessions.entries(theirs),
  tree: () => sessions.tree(theirs),
  name: () => sessions.name(theirs, "mine"),
  label: () => sessions.label(theirs, entryId, "mine"),
  move: () => sessions.move(theirs, entryId),
  fork: () => sessions.fork(theirs, { sessionId: "stolen" }),
  import: () => sessions.import({ agentId: "scout", sessionId: theirs, entries: [imported] }),
  switch: () => sessions.switch(theirs, null),
  append: () => sessions.append(theirs, { customType: "x", message: userMessage("mine") }),
  compact: () => sessions.compact(theirs, { summary: "mine", firstKeptEntryId: entryId }),
  setModel: () => sessions.setModel(theirs, "a/b"),
  setThinkingLevel: () => sessions.setThinkingLevel(theirs, "high"),
  contextUsage: () => sessions.contextUsage(theirs),
  fileChanges: () => sessions.fileChanges(theirs, entryId),
  unsent: () => sessions.unsent(theirs),
  resend: () => sessions.resend(runId),
  phase: async () => ((await sessions.phase(theirs, "scout")) === "idle" ? [] : "busy"),
  delete: async () => (await sessions.delete(theirs)) ?? [],
});

/** The methods that find nothing. All others throw `not_found`. */
const empty: ReadonlySet<string> = new Set(["list", "get", "search", "phase", "delete"]);

describe.each(twoStores)("runtime.sessions of a view in a %s store", (_name, prepare) => {
  test("S6: every method of runtime.sessions with an id of another tenant or user finds nothing and changes nothing", async () => {
    const store = await (await prepare())();
    const { runtime, scout } = await converse(store, ["the secret", { error: refused }]);
    const options = { runtime, sessionId: theirs, tenantId: "acme", userId: "ann" };
    await scout.invoke("tell me", options);
    const { runId } = await scout.invoke("again", options);
    const all = async (): Promise<unknown> => [
      await runtime.sessions.list(),
      await store.sessions.read(theirs, { includeHidden: true }),
      (await runtime.list()).runs.length,
    ];
    const before = await all();
    const [entry] = await runtime.sessions.path(theirs);
    for (const scope of [
      { tenantId: "acme", userId: "bob" },
      { tenantId: "other", userId: "ann" },
      { tenantId: "other" },
    ]) {
      const { sessions } = runtime.forTenant(scope);
      for (const [method, attack] of Object.entries(attacks(sessions, entry?.id ?? "", runId))) {
        const outcome = await attack().catch((error: unknown) => Fault.from(error).code);
        expect([method, outcome]).toEqual([method, empty.has(method) ? [] : "not_found"]);
      }
      await expect(sessions.list({ tenantId: "acme-2" })).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect(await all()).toEqual(before);
    const own = runtime.forTenant({ tenantId: "acme", userId: "ann" }).sessions;
    expect(await own.path(theirs)).toHaveLength(2);
    expect(await own.unsent(theirs)).toHaveLength(1);
    expect((await own.search("secret")).hits).toHaveLength(1);
    const forked = await own.fork(theirs);
    expect(await runtime.sessions.get(forked)).toMatchObject({ tenantId: "acme", userId: "ann" });
    await runtime.close();
  });
});
