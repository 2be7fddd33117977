import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, inject, onTestFinished, test } from "vitest";
import { formatRunId, messageText, type SessionEntry } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { WorkerProcess } from "../../src/testing/index.ts";
import { isFull } from "../effort.ts";
import { contentBytes, largeText, session } from "./stored-contents.ts";

const [one, two] = [{ runId: formatRunId("one") }, { runId: formatRunId("two") }];
const hash = sha256(contentBytes);

function textOf(entry: SessionEntry): string {
  return entry.type === "message" ? messageText(entry.message) : "";
}

/** Runs the worker, which dies before transaction number `at`, and returns how it ended. */
async function live(folder: string, file: string, at: number): Promise<string> {
  const server = { url: "", caller: "" };
  const orders = { file, workload: "contents", server, death: null, data: at };
  const script = new URL("contents-worker.mjs", inject("crashWorkers"));
  const end = await WorkerProcess.start(script, orders, join(folder, "compiled")).endWithin(120_000);
  return end.kind === "failed" ? end.reason : end.kind;
}

/**
 * What a reader finds: the content of each owner that exists, and the text of the session if it exists. Each of them
 * must be whole.
 */
async function readWhole(file: string): Promise<{ readonly owned: number; readonly entries: number }> {
  const store = await sqliteStore({ path: file, hash: sha256 });
  const read = await Promise.all([one, two].map((owner) => store.contents.get(owner, hash)));
  const owned = read.filter((bytes) => bytes !== undefined);
  for (const bytes of owned) expect(contentBytes.equals(bytes)).toBe(true);
  const entries = await store.sessions.read(session);
  for (const { entry } of entries) expect(textOf(entry) === largeText).toBe(true);
  await store.close();
  return { owned: owned.length, entries: entries.length };
}

function countPieces(file: string): unknown {
  using connection = new DatabaseSync(file);
  const { integrity_check: integrity } = connection.prepare("PRAGMA integrity_check").get() ?? {};
  const tables =
    "(SELECT count(*) FROM contents) AS contents, (SELECT count(*) FROM content_pieces) AS pieces";
  return { integrity, ...connection.prepare(`SELECT ${tables}`).get() };
}

test("V1, V2, V4: a process that dies while it puts, shares or deletes large contents leaves each of them whole or absent", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-contents-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const seen = new Set<string>();
  let isOver = false;
  // In `npm test` every second transaction is enough, because the last ones each free one piece.
  for (let at = 1; !isOver; at += isFull ? 1 : 2) {
    const file = join(folder, `${at}.db`);
    isOver = (await live(folder, file, at)) === "finished";
    const { owned, entries } = await readWhole(file);
    seen.add(`${owned} owners, ${entries} entries`);
    expect(isOver ? "finished" : await live(folder, file, 0)).toBe("finished");
    expect(await readWhole(file)).toEqual({ owned: 1, entries: 0 });
    expect(countPieces(file)).toEqual({ integrity: "ok", contents: 1, pieces: 4 });
  }
  expect(seen.size).toBeGreaterThan(3);
});
