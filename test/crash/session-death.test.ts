import { expect, test } from "vitest";
import {
  formatSessionId,
  parseSessionId,
  type RuntimeSessions,
  type SessionEntry,
  type Store,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { dyingStore } from "../../src/testing/dying-store.ts";
import { appendEntry, sessionEntry } from "../../src/testing/contracts/store-fixtures.ts";
import { removeStoresAfterEach, twoStores } from "../runtime/two-stores.ts";

removeStoresAfterEach();

const chat = parseSessionId("chat");
const copy = formatSessionId("copy");

const changes: Readonly<Record<string, (sessions: RuntimeSessions) => Promise<unknown>>> = {
  "moving the current entry": (sessions) => sessions.move(chat, "a"),
  "moving the current entry with a summary": (sessions) => sessions.move(chat, "a", { summary: "left" }),
  "forking a session": (sessions) => sessions.fork(chat, { sessionId: copy, name: "Copy" }),
  "compacting a session": (sessions) => sessions.compact(chat, { summary: "so far", firstKeptEntryId: "b" }),
  "deleting a session": (sessions) => sessions.delete(chat),
};

interface Seen {
  readonly leafId: string | null | undefined;
  readonly entries: readonly SessionEntry["type"][];
  readonly copied: number;
}

async function see({ sessions }: Store): Promise<Seen> {
  const stored = await sessions.read(chat, { includeHidden: true });
  return {
    leafId: (await sessions.find(chat))?.leafId,
    entries: stored.map(({ entry }) => entry.type),
    copied: (await sessions.read(copy)).length,
  };
}

async function prepared(open: () => Promise<Store>): Promise<Store> {
  const store = await open();
  const entries = [sessionEntry("a", null), sessionEntry("b", "a"), sessionEntry("c", "b")];
  await store.sessions.apply(entries.map((entry) => appendEntry(entry, "visible", chat)));
  return store;
}

/** Changes the session through a store that dies at write `at`. Returns the number of writes. */
async function changeAndDie(
  store: Store,
  change: (sessions: RuntimeSessions) => Promise<unknown>,
  death: { readonly at: number; readonly when: "before" | "after" },
): Promise<number> {
  let died: () => void = () => undefined;
  const dead = new Promise<void>((resolve) => (died = resolve));
  const dying = dyingStore(store, { ...death, die: () => died() });
  const runtime = await Promise.race([
    createRuntime({ store: dying, keepAlive: false, onError: () => undefined }),
    dead,
  ]);
  if (runtime !== undefined) await Promise.race([change(runtime.sessions), dead]);
  return dying.writes;
}

test.each(
  twoStores.flatMap(([name, prepare]) => Object.keys(changes).map((what) => [what, name, prepare] as const)),
)(
  "%s in a %s store is either done completely or not at all, wherever the process dies",
  async (what, _name, prepare) => {
    const change = changes[what] as (typeof changes)[string];
    const whole = await prepared(await prepare());
    const before = await see(whole);
    const writes = await changeAndDie(whole, change, { at: Infinity, when: "after" });
    const after = await see(whole);
    expect(after).not.toEqual(before);
    await whole.close();
    for (let at = 1; at <= writes; at++)
      for (const when of ["before", "after"] as const) {
        const open = await prepare();
        const store = await prepared(open);
        await changeAndDie(store, change, { at, when });
        const seen = await see(store);
        const isDone = seen.entries.length !== before.entries.length || seen.copied > 0;
        const expected = isDone ? after : before;
        expect({ ...seen, leafId: typeof seen.leafId }).toEqual({
          ...expected,
          leafId: typeof expected.leafId,
        });
        expect(await store.sessions.readPath(chat)).toBeDefined();
        await store.close();
      }
  },
);

test("a reader in another process sees either the whole session or nothing while the session is deleted", async () => {
  const prepare = twoStores.find(([name]) => name === "sqlite")?.[1];
  if (prepare === undefined) throw new Error("the SQLite store is missing");
  const open = await prepare();
  const writer = await open();
  const reader = await open();
  const many = Array.from({ length: 2_000 }, (_, index) =>
    appendEntry(
      { ...sessionEntry(`e${index}`, index === 0 ? null : `e${index - 1}`), runId: null },
      "visible",
      chat,
    ),
  );
  await writer.sessions.apply(many);
  const sizes = new Set<number>();
  const deleting = writer.sessions.delete(chat);
  for (let round = 0; round < 50; round++) {
    const path = await reader.sessions.readPath(chat);
    sizes.add(path?.entries.length ?? -1);
    sizes.add((await reader.sessions.read(chat)).length);
  }
  await deleting;
  sizes.add((await reader.sessions.read(chat)).length);
  expect([...sizes].every((size) => size === 0 || size === 2_000)).toBe(true);
  expect(sizes.has(0)).toBe(true);
  await Promise.all([writer.close(), reader.close()]);
});
