import {
  assistantMessage,
  Fault,
  formatRunId,
  formatSessionId,
  formatTaskId,
  pathTo,
  rootLeafOf,
  userMessage,
  type ChatMessage,
  type SessionChange,
  type SessionEntry,
  type Sessions,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  agentId,
  appendEntry as append,
  rootTask,
  sessionEntry as entry,
  sessionId,
} from "./store-fixtures.ts";

const runId = formatRunId("a");
const outside = { at: 1, runId: null, taskId: null } as const;

function leaf(id: string, targetId: string | null): SessionEntry {
  return { type: "leaf", id, parentId: targetId, targetId, ...outside };
}

function compaction(id: string, parentId: string, firstKeptEntryId: string): SessionEntry {
  return { type: "compaction", id, parentId, firstKeptEntryId, summary: id, tokensBefore: 9, ...outside };
}

function say(stem: string, parentId: string | null, texts: readonly string[]): SessionChange {
  const messages: ChatMessage[] = texts.map((text, index) =>
    index % 2 === 0 ? userMessage(text) : assistantMessage(text),
  );
  const batch = { runId, taskId: rootTask, at: 1, parentId, stem, from: 0, messages };
  return { type: "say", sessionId, agentId, batch, visibility: "visible" };
}

/** Tests of `readPath`, of the stored current entry and of paged entries. */
export function sessionPathContract({ test, expect, open }: ContractHarness): void {
  const ids = async (sessions: Sessions, query = {}): Promise<readonly string[] | undefined> =>
    (await sessions.readPath(sessionId, query))?.entries.map(({ id }) => id);
  const leafId = async (sessions: Sessions): Promise<string | null | undefined> =>
    (await sessions.find(sessionId))?.leafId;

  test("N5: readPath() returns the entries from the root to the current entry and no entry of another branch", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null)), append(entry("b", "a")), append(entry("c", "a"))]);
    expect(await sessions.readPath(sessionId)).toEqual({
      leafId: "c",
      entries: [entry("a", null), entry("c", "a")],
    });
    expect(await ids(sessions, { leafId: "b" })).toEqual(["a", "b"]);
  });

  test("N5: readPath() of a session that does not exist is empty, and undefined for an entry that is not visible", async () => {
    const { sessions } = await open();
    expect(await sessions.readPath(sessionId)).toEqual({ leafId: null, entries: [] });
    expect(await sessions.readPath(sessionId, { leafId: "a" })).toBeUndefined();
    await sessions.apply([append(entry("a", null)), append(entry("p", "a"), "pending")]);
    expect(await sessions.readPath(sessionId, { leafId: "p" })).toBeUndefined();
    expect(await sessions.readPath(sessionId, { leafId: "none" })).toBeUndefined();
    expect(await ids(sessions)).toEqual(["a"]);
  });

  test("N5: readPath() never returns an entry of another session with the same id", async () => {
    const { sessions } = await open();
    const other = formatSessionId("other");
    await sessions.apply([append(entry("a", null)), append(entry("b", null), "visible", other)]);
    expect(await sessions.readPath(sessionId, { leafId: "b" })).toBeUndefined();
    expect(await sessions.readPath(other, { leafId: "a" })).toBeUndefined();
  });

  test("N5: readPath() from the compaction starts at the first kept entry and includes the compaction", async () => {
    const { sessions } = await open();
    await sessions.apply([
      say("x", null, ["1", "2", "3", "4"]),
      append(compaction("c", "x/3", "x/2")),
      append(entry("d", "c")),
    ]);
    expect(await ids(sessions, { from: "compaction" })).toEqual(["x/2", "x/3", "c", "d"]);
    expect(await ids(sessions, { from: "root" })).toEqual(["x/0", "x/1", "x/2", "x/3", "c", "d"]);
    expect(await ids(sessions, { leafId: "x/3", from: "compaction" })).toEqual(["x/0", "x/1", "x/2", "x/3"]);
  });

  test("N5: readPath() with a limit returns the newest entries of the path, also if the limit is within a batch", async () => {
    const { sessions } = await open();
    await sessions.apply([
      say("x", null, ["1", "2", "3", "4"]),
      append(compaction("c", "x/3", "x/2")),
      append(entry("d", "c")),
    ]);
    expect(await ids(sessions, { limit: 1 })).toEqual(["d"]);
    expect(await ids(sessions, { limit: 4 })).toEqual(["x/2", "x/3", "c", "d"]);
    expect(await ids(sessions, { leafId: "x/2", limit: 2 })).toEqual(["x/1", "x/2"]);
    expect(await ids(sessions, { limit: 9 })).toEqual(["x/0", "x/1", "x/2", "x/3", "c", "d"]);
  });

  test("N5: readPath() uses the newest compaction of the path and ignores those of other branches", async () => {
    const { sessions } = await open();
    await sessions.apply([
      say("x", null, ["1", "2", "3", "4"]),
      append(compaction("c1", "x/3", "x/1")),
      append(entry("d", "c1")),
      append(compaction("c2", "d", "c1")),
      append(entry("e", "c2")),
      append(entry("f", "d")),
    ]);
    expect(await ids(sessions, { from: "compaction" })).toEqual(["x/1", "x/2", "x/3", "c1", "d", "f"]);
    expect(await ids(sessions, { leafId: "e", from: "compaction" })).toEqual(["c1", "d", "c2", "e"]);
  });

  test("N5: readPath() starts at a compaction whose first kept entry is not on the path", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null)), append(compaction("c", "a", "gone"))]);
    await sessions.apply([append(entry("b", "c"))]);
    expect(await ids(sessions, { from: "compaction" })).toEqual(["c", "b"]);
  });

  test("N5: readPath() ends where the next entry of the path was removed", async () => {
    const { sessions } = await open();
    const own = (id: string, parentId: string | null): SessionEntry => ({
      ...entry(id, parentId),
      runId: null,
      taskId: null,
    });
    await sessions.apply([append(own("a", null)), append(entry("b", "a")), append(own("c", "b"))]);
    await sessions.apply([{ type: "remove", sessionId, runId }]);
    expect(await ids(sessions)).toEqual(["c"]);
  });

  test("N5: readPath() ends if an entry that was removed and appended again below its descendant closes a circle", async () => {
    const { sessions } = await open();
    const own = { ...entry("b", "a"), runId: null, taskId: null };
    await sessions.apply([append(entry("a", null)), append(own)]);
    await sessions.apply([{ type: "remove", sessionId, runId }]);
    await sessions.apply([append(entry("a", "b"))]);
    expect(await ids(sessions)).toEqual(["b", "a"]);
    const entries = (await sessions.read(sessionId)).map((each) => each.entry);
    expect(pathTo(entries, rootLeafOf(entries))?.map(({ id }) => id)).toEqual(["b", "a"]);
  });

  test("N2: the stored current entry follows appended entries and `leaf` entries, and ignores labels, names and child tasks", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null)), append(entry("b", "a"))]);
    expect(await leafId(sessions)).toBe("b");
    const child = { ...entry("c", null), taskId: formatTaskId(1) };
    await sessions.apply([
      append({ type: "label", id: "l", parentId: "b", targetId: "a", label: "start", ...outside }),
      append({ type: "session_info", id: "n", parentId: "b", name: "Weather", ...outside }),
      append(child),
    ]);
    expect(await leafId(sessions)).toBe("b");
    expect((await sessions.readPath(sessionId, { ofChild: true }))?.leafId).toBe("c");
    await sessions.apply([append(leaf("m", "a"))]);
    expect(await leafId(sessions)).toBe("a");
    await sessions.apply([append(leaf("n2", null))]);
    expect(await leafId(sessions)).toBe(null);
    expect(await sessions.readPath(sessionId)).toEqual({ leafId: null, entries: [] });
  });

  test("N2: the stored current entry changes when pending entries become visible and when entries are removed", async () => {
    const { sessions } = await open();
    const own = { ...entry("a", null), runId: null, taskId: null };
    await sessions.apply([append(own), append(entry("p", "a"), "pending")]);
    expect(await leafId(sessions)).toBe("a");
    await sessions.apply([{ type: "reveal", sessionId, runId }]);
    expect(await leafId(sessions)).toBe("p");
    await sessions.apply([{ type: "remove", sessionId, runId }]);
    expect(await leafId(sessions)).toBe("a");
  });

  test("N4: a `leaf` entry or a label whose target is missing, hidden or in another session is refused", async () => {
    const { sessions } = await open();
    const other = formatSessionId("other");
    await sessions.apply([
      append(entry("a", null)),
      append(entry("p", "a"), "pending"),
      append(entry("o", null), "visible", other),
    ]);
    for (const targetId of ["none", "p", "o"]) {
      const label = { type: "label", id: "l", parentId: "a", targetId, label: "x", ...outside } as const;
      for (const each of [{ ...leaf("m", targetId), parentId: "a" }, label])
        await expect(sessions.apply([append(each)])).rejects.toMatchObject({ code: "not_found" });
    }
    expect(await leafId(sessions)).toBe("a");
    await sessions.apply([append(entry("b", "a")), append(leaf("m", "b"))]);
    expect(await leafId(sessions)).toBe("b");
  });

  test("read() of a session returns pages of entries in the order of appending, also across rows with many entries", async () => {
    const { sessions } = await open();
    const texts = Array.from({ length: 300 }, (_, index) => `${index}`);
    await sessions.apply([append(entry("a", null)), say("x", "a", texts), append(entry("z", "x/299"))]);
    const all = (await sessions.read(sessionId)).map((each) => each.entry.id);
    expect(all.length).toBe(302);
    const paged: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await sessions.read(sessionId, { limit: 7, ...(after !== undefined && { after }) });
      paged.push(...page.map((each) => each.entry.id));
      after = paged.at(-1);
      if (page.length < 7) break;
    }
    expect(paged).toEqual(all);
  });

  test("read() of a session refuses a page after an unknown or hidden entry, and a limit that is not a positive integer", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null)), append(entry("p", "a"), "pending")]);
    const read = async (query: object): Promise<unknown> => sessions.read(sessionId, query);
    for (const after of ["none", "p"])
      await expect(read({ after })).rejects.toMatchObject({ code: "not_found" });
    expect(await read({ after: "p", includeHidden: true })).toEqual([]);
    for (const limit of [0, -1, 1.5, NaN])
      await expect(read({ limit })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("apply() to a session refuses an entry that is malformed or is not JSON, with all changes of the same call", async () => {
    const { sessions } = await open();
    const good = entry("a", null);
    const bad: readonly object[] = [
      { ...good, id: "" },
      { ...good, id: 7 },
      { ...good, id: "\ud800" },
      { ...good, at: NaN },
      { ...good, at: 0.5 },
      { ...good, type: "poem" },
      { ...good, taskId: "zero" },
      { ...good, message: { role: "robot", content: [] } },
      { ...good, message: { role: "user", content: [{ type: "text", text: 7 }] } },
      { ...good, usage: { inputTokens: Infinity } },
      { ...leaf("b", null), targetId: 4 },
      { type: "custom", id: "c", parentId: null, customType: "x", ...outside },
      { type: "compaction", id: "d", parentId: null, summary: "s", firstKeptEntryId: "a", ...outside },
    ];
    for (const each of bad) {
      const changes = [append(good), append(each as SessionEntry)];
      const code = await sessions.apply(changes).then(
        () => "applied",
        (error: unknown) => Fault.from(error).code,
      );
      expect(code === "invalid_argument" || code === "not_json").toBe(true);
    }
    expect(await sessions.find(sessionId)).toBeUndefined();
  });

  test("N3: a batch of entries starts the conversation if the change before it removed every entry", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null), "pending")]);
    await sessions.apply([{ type: "remove", sessionId, runId }, say("more", "a", ["one"])]);
    const stored = await sessions.read(sessionId);
    expect(stored.map(({ entry: { parentId } }) => parentId)).toEqual([null]);
  });
}
