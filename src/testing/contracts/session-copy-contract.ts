import {
  assistantMessage,
  formatRunId,
  formatSessionId,
  userMessage,
  type ApplyOptions,
  type ChatMessage,
  type SessionChange,
  type SessionEntry,
  type SessionId,
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

const to = formatSessionId("copy");
/** Fields that all copies in these tests share. */
const found = { sessionId: to, agentId, tenantId: null, userId: null, name: null, updatedAt: 1 };
const outside = { at: 1, runId: null, taskId: null } as const;
const runId = formatRunId("a");

function say(stem: string, parentId: string, texts: readonly string[]): SessionChange {
  const messages: ChatMessage[] = texts.map((text, index) =>
    index % 2 === 0 ? userMessage(text) : assistantMessage(text),
  );
  const batch = { runId, taskId: rootTask, at: 1, parentId, stem, from: 0, messages };
  return { type: "say", sessionId, agentId, batch, visibility: "visible" };
}

function label(id: string, targetId: string, text: string | null): SessionEntry {
  return { type: "label", id, parentId: targetId, targetId, label: text, ...outside };
}

/** Tests of `ApplyOptions.copy`. */
export function sessionCopyContract({ test, expect, open }: ContractHarness): void {
  const entriesOf = async (sessions: Sessions, id: SessionId): Promise<readonly SessionEntry[]> =>
    (await sessions.read(id)).map((each) => each.entry);

  test("N7: a copied session has the path to its current entry and the labels in force, and both sessions continue independently", async () => {
    const { sessions } = await open();
    const large = "large ".repeat(4_000);
    const texts = Array.from({ length: 300 }, (_, index) =>
      index % 100 === 7 ? `${large}${index}` : `${index}`,
    );
    await sessions.apply([append(entry("a", null)), say("x", "a", texts), append(entry("b", "x/270"))]);
    await sessions.apply([
      append(entry("p", "b"), "pending"),
      append(label("l1", "x/3", "old")),
      append(label("l2", "x/3", "new")),
      append(label("l3", "x/4", "removed")),
      append(label("l4", "x/4", null)),
      append(label("l5", "x/299", "on another branch")),
    ]);
    const before = await entriesOf(sessions, sessionId);
    const link = {
      type: "custom",
      id: "link",
      parentId: "b",
      customType: "fork",
      data: 1,
      ...outside,
    } as const;
    await sessions.apply([append(link, "visible", to)], { copy: { from: sessionId, leafId: "b", to } });

    const origin = (await sessions.readPath(sessionId, { leafId: "b" }))?.entries ?? [];
    expect(origin.length).toBe(273);
    const copied = await entriesOf(sessions, to);
    const isPath = ({ type }: SessionEntry): boolean => type === "message";
    expect(copied.filter(isPath)).toEqual(origin);
    expect(copied.filter((each) => !isPath(each))).toEqual([
      { ...label("l2", "x/3", "new"), parentId: "b" },
      link,
    ]);
    expect(await sessions.readPath(to)).toEqual({ leafId: "link", entries: [...origin, link] });
    expect(await sessions.find(to)).toEqual({ ...found, title: "a", entries: 275, leafId: "link" });

    await sessions.apply([append(entry("c", "link"), "visible", to)]);
    expect(await entriesOf(sessions, sessionId)).toEqual(before);
    await sessions.delete(sessionId);
    expect((await sessions.readPath(to))?.entries.slice(0, -2)).toEqual(origin);
  });

  test("N7: the first entry of a copied session has no parent, and the copy belongs to the owner of the call", async () => {
    const { sessions } = await open();
    const gone = formatRunId("gone");
    const first = { ...entry("a", null), runId: gone };
    await sessions.apply([append(first), append(entry("b", "a")), append(entry("c", "b"))]);
    await sessions.apply([{ type: "remove", sessionId, runId: gone }]);
    const owner = { tenantId: "acme", userId: "ann" };
    await sessions.apply([], { owner, copy: { from: sessionId, leafId: "c", to } });
    expect(await entriesOf(sessions, to)).toEqual([entry("b", null), entry("c", "b")]);
    expect(await sessions.find(to)).toEqual({ ...found, ...owner, title: "b", entries: 2, leafId: "c" });
  });

  test("N7: copying a session fails as a whole if its current entry is hidden, its origin is in another scope, or the copy exists", async () => {
    const { sessions } = await open();
    const owner = { tenantId: "acme", userId: "ann" };
    await sessions.apply([append(entry("a", null)), append(entry("p", "a"), "pending")], { owner });
    const copy = { from: sessionId, leafId: "a", to };
    const refused: readonly [string, ApplyOptions, readonly SessionChange[]][] = [
      ["not_found", { copy: { ...copy, leafId: "p" } }, []],
      ["not_found", { copy: { ...copy, leafId: "none" } }, []],
      ["not_found", { copy: { ...copy, from: formatSessionId("none") } }, []],
      ["not_found", { copy, scope: { tenantId: "other" } }, []],
      ["not_found", { copy }, [append(entry("b", "none"), "visible", to)]],
      ["already_exists", { copy: { ...copy, to: sessionId } }, []],
    ];
    for (const [code, options, changes] of refused)
      await expect(sessions.apply(changes, options)).rejects.toMatchObject({ code });
    expect(await sessions.find(to)).toBeUndefined();
    expect((await entriesOf(sessions, sessionId)).length).toBe(1);
  });
}
