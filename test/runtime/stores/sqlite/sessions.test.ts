import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatRunId,
  formatTaskId,
  userMessage,
  type EntryVisibility,
  type SessionChange,
  type SessionEntry,
} from "../../../../src/kernel/index.ts";
import { memoryStore } from "../../../../src/runtime/index.ts";
import { sha256 } from "../../../../src/runtime/process/sha256.ts";
import { agentId, sessionId } from "../../../../src/testing/contracts/store-fixtures.ts";
import { converse } from "../../sessions/conversation.ts";
import { connect, newPath, openStore } from "./store-files.ts";

const runId = formatRunId("a");

function entry(id: string, parentId: string | null, task = 0): SessionEntry {
  return {
    type: "message",
    id,
    parentId,
    at: 1,
    runId,
    taskId: formatTaskId(task),
    message: userMessage(id),
  };
}

function append(which: SessionEntry, visibility: EntryVisibility = "visible"): SessionChange {
  return { type: "append", sessionId, agentId, entry: which, visibility };
}

/** Appends entries `from` up to, but not including, `end`; each is the child of the entry before it. */
function chain(stem: string, from: number, end: number): SessionChange[] {
  const parentOf = (number: number): string | null => (number === 0 ? null : `${stem}/${number - 1}`);
  return Array.from({ length: end - from }, (_, index) =>
    append(entry(`${stem}/${from + index}`, parentOf(from + index))),
  );
}

test("session entries that are appended to SQLite together share a few rows, and behave like entries appended one by one", async () => {
  const path = await newPath();
  const { sessions } = await openStore(path);
  await sessions.apply(chain("run_a/t0", 0, 600));
  expect(connect(path).prepare("SELECT count(*) AS rows FROM entries").get()).toEqual({ rows: 3 });
  const read = await sessions.read(sessionId);
  expect(read.map((each) => each.entry)).toEqual(
    chain("run_a/t0", 0, 600).map((change) => (change.type === "append" ? change.entry : undefined)),
  );
  expect((await sessions.list()).sessions[0]?.entries).toBe(600);
  await sessions.apply([append(entry("under one in the middle", "run_a/t0/300"))]);
  await sessions.apply([{ ...append(entry("at the current entry", null)), atLeaf: true } as SessionChange]);
  expect((await sessions.read(sessionId)).at(-1)?.entry.parentId).toBe("under one in the middle");
  const orphan = append(entry("orphan", "run_a/t0/600"));
  await expect(sessions.apply([orphan])).rejects.toMatchObject({ code: "not_found" });
});

test("S2: appending session entries to SQLite again adds only new ones, wherever the lists overlap", async () => {
  const { sessions } = await openStore(await newPath());
  await sessions.apply(chain("run_a/t0", 0, 5));
  await sessions.apply(chain("run_a/t0", 3, 9));
  await sessions.apply(chain("run_a/t0", 0, 12));
  const read = await sessions.read(sessionId);
  expect(read.map((each) => each.entry.id)).toEqual(
    Array.from({ length: 12 }, (_, index) => `run_a/t0/${index}`),
  );
  expect(read.map((each) => each.entry.parentId).slice(1)).toEqual(
    read.map((each) => each.entry.id).slice(0, -1),
  );
});

const ids = ["a", "a/", "a/0", "a/1", "a/2", "a/3", "a/01", "a/-1", "b/2", "b/3", "7", "8", runId];
const id = fc.constantFrom(...ids);
const change = fc.record({
  id,
  parent: fc.option(fc.constantFrom(...ids, runId, "said/1", "said/2")),
  task: fc.nat(1),
  run: fc.constantFrom(runId, formatRunId("b")),
  visibility: fc.constantFrom<EntryVisibility[]>("pending", "hidden", "visible", "visible"),
  count: fc.nat(3),
  kind: fc.constantFrom("append", "append", "append", "leaf", "say", "say", "reveal", "remove"),
});

test("the SQLite store reads sessions like the memory store after any sequence of changes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(change, { maxLength: 6 }), { maxLength: 4 }), async (lists) => {
      const stores = [memoryStore({ hash: sha256 }), await openStore(await newPath())];
      const told = await Promise.all(
        stores.map(async ({ sessions }) => {
          const outcomes: unknown[] = [];
          for (const list of lists) {
            const changes = list.map(
              ({ id: name, parent, task, run, visibility, count, kind }): SessionChange => {
                const taskId = formatTaskId(task);
                if (kind === "reveal" || kind === "remove")
                  return { type: kind, sessionId, runId: run, taskId };
                const added = append({ ...entry(name, parent, task), runId: run }, visibility);
                if (kind === "say") {
                  const messages = ["one", "two", "three"].slice(0, count).map((text) => userMessage(text));
                  const stem = name.startsWith("b") ? "more" : "said";
                  const said = { runId: run, taskId, at: 1, parentId: parent, stem, from: 1, messages };
                  const shown = visibility === "pending" ? "hidden" : visibility;
                  return { type: "say", sessionId, agentId, batch: said, visibility: shown };
                }
                return kind === "leaf" ? ({ ...added, atLeaf: true } as SessionChange) : added;
              },
            );
            outcomes.push(await sessions.apply(changes).catch(({ code }: { code: string }) => code));
            outcomes.push(await sessions.read(sessionId, { includeHidden: true }));
          }
          return outcomes;
        }),
      );
      expect(told[1]).toEqual(told[0]);
    }),
    { numRuns: 60 },
  );
});

test("V3: a large entry that an application appends to SQLite is a content of the session's tenant", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const { runtime, scout } = await converse(store, ["Hello."]);
  await scout.invoke("Hi", { runtime, sessionId: "chat", tenantId: "acme" });
  await runtime.sessions.append("chat", { customType: "note", data: "x".repeat(10_000) });
  const tenants = connect(path).prepare("SELECT tenant FROM contents").all();
  expect(tenants.map(({ tenant }) => tenant)).toEqual(["=acme"]);
  await runtime.close();
});
