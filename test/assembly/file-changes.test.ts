import { mkdir, readdir, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Agent, HistoryRetention, openRuntime, tool, type Runtime } from "../../src/entries/index.ts";
import { scriptedModel, type ScriptedReply, type ScriptStep } from "../../src/entries/testing.ts";
import { fileTools, restoreFiles, type RestoredFile } from "../../src/entries/tools.ts";
import { FileRoot } from "../../src/capabilities/files/file-root.ts";
import { fileState, removeFile } from "../../src/capabilities/files/replace-file.ts";
import type { SessionId } from "../../src/kernel/index.ts";
import { fileChangesAfter } from "../../src/runtime/client/file-changes.ts";
import { memoryStore, sha256, systemClock } from "../../src/runtime/index.ts";
import { newRun } from "../../src/runtime/journal/new-run.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { dyingStore } from "../../src/testing/dying-store.ts";
import { sequentialIds } from "../../src/testing/index.ts";
import { tempFolder } from "../capabilities/tools/call-tool.ts";
import { withRuntime } from "./with-runtime.ts";

type Call = readonly [tool: string, input: Readonly<Record<string, string>>];

/** One model answer that calls the tools one after the other, and the answer after it. */
const turn = (...calls: readonly Call[]): readonly ScriptStep[] => [
  { toolCalls: calls.map(([name, input]) => ({ name, input })) },
  "done",
];

const shell = tool({
  name: "bash",
  description: "Runs a command",
  inputSchema: { type: "object" },
  execute: async () => "ran",
});

function editor(root: string, script: readonly ScriptStep[]): Agent {
  return new Agent({
    name: "editor",
    model: scriptedModel([...script]),
    tools: [...fileTools({ root }), shell],
  });
}

/** Runs one turn of the conversation and returns the id of the user's entry. */
async function say(runtime: Runtime, agent: Agent, sessionId: SessionId): Promise<string> {
  const run = await runtime.submit(agent, "Work.", { sessionId });
  await run.result();
  const path = await runtime.sessions.path(sessionId);
  return path.findLast((entry) => entry.type === "message" && entry.message.role === "user")?.id ?? "";
}

const states = (files: readonly RestoredFile[], root: string): object =>
  Object.fromEntries(files.map(({ path, state }) => [path.slice(root.length + 1), state]));

test("restoreFiles() restores what write and edit changed after an entry, and shows the changes first", () =>
  withRuntime(async (runtime) => {
    const root = await tempFolder();
    const sessionId = "chat" as SessionId;
    await writeFile(join(root, "a.txt"), "one\n");
    await writeFile(join(root, "image"), Buffer.from([0xff, 0, 1]), { mode: 0o751 });
    const agent = editor(root, [
      ...turn(["edit", { path: "a.txt", oldText: "one", newText: "two" }]),
      ...turn(
        ["edit", { path: "a.txt", oldText: "two", newText: "three" }],
        ["write", { path: "image", content: "text" }],
        ["write", { path: "new/b.txt", content: "new" }],
        ["write", { path: "new/b.txt", content: "newer" }],
        ["bash", { command: "make" }],
        ["read", { path: "a.txt" }],
      ),
    ]);
    const first = await say(runtime, agent, sessionId);
    const second = await say(runtime, agent, sessionId);

    const later = await runtime.sessions.fileChanges(sessionId, second);
    expect(later.otherCalls).toEqual([
      { toolName: "bash", count: 1 },
      { toolName: "read", count: 1 },
    ]);
    expect(later.changes).toHaveLength(4);
    const planned = await restoreFiles(later.changes, { folders: [root] });
    expect(states(planned, root)).toEqual({
      "a.txt": "restorable",
      image: "restorable",
      "new/b.txt": "restorable",
    });
    expect(planned.map(({ wasAbsent }) => wasAbsent)).toEqual([false, false, true]);
    expect(planned[0]?.diff).toContain("-three\n+two\n");
    expect(planned[1]?.diff).toBe("");
    expect(await readFile(join(root, "a.txt"), "utf8")).toBe("three\n");

    await restoreFiles(later.changes, { folders: [root], apply: true });
    expect(await readFile(join(root, "a.txt"), "utf8")).toBe("two\n");
    expect(await readFile(join(root, "image"))).toEqual(Buffer.from([0xff, 0, 1]));
    expect((await stat(join(root, "image"))).mode & 0o777).toBe(0o751);
    await expect(stat(join(root, "new/b.txt"))).rejects.toMatchObject({ code: "ENOENT" });
    const again = await restoreFiles(later.changes, { folders: [root], apply: true });
    expect(new Set(again.map(({ state }) => state))).toEqual(new Set(["same"]));

    const all = await runtime.sessions.fileChanges(sessionId, first);
    await restoreFiles(all.changes, { folders: [root], apply: true });
    expect(await readFile(join(root, "a.txt"), "utf8")).toBe("one\n");
    await expect(runtime.sessions.fileChanges(sessionId, "nowhere")).rejects.toMatchObject({
      code: "not_found",
      message: "session chat has no entry nowhere; use an entry of its tree",
    });
  }));

test("restoreFiles() with the option only restores the files that were shown, if their content is still what was shown", () =>
  withRuntime(async (runtime) => {
    const root = await tempFolder();
    const sessionId = "chat" as SessionId;
    for (const name of ["a.txt", "b.txt", "c.txt"]) await writeFile(join(root, name), "old\n");
    const agent = editor(
      root,
      ["a.txt", "b.txt", "c.txt", "b.txt"].flatMap((path, index) =>
        turn([
          "edit",
          { path, oldText: index === 3 ? "new" : "old", newText: index === 3 ? "newer" : "new" },
        ]),
      ),
    );
    const first = await say(runtime, agent, sessionId);
    await say(runtime, agent, sessionId);
    const { changes } = await runtime.sessions.fileChanges(sessionId, first);
    const only = await restoreFiles(changes, { folders: [root] });
    await say(runtime, agent, sessionId);
    await say(runtime, agent, sessionId);
    const now = (await runtime.sessions.fileChanges(sessionId, first)).changes;
    const restored = await restoreFiles(now, { folders: [root], apply: true, only });
    expect(states(restored, root)).toEqual({
      "a.txt": "restored",
      "b.txt": "changed",
      "c.txt": "restorable",
    });
    expect(restored[1]?.reason).toBe("the file has changed since it was shown");
    const texts = ["a.txt", "b.txt", "c.txt"].map((name) => readFile(join(root, name), "utf8"));
    expect(await Promise.all(texts)).toEqual(["old\n", "newer\n", "new\n"]);
  }));

test("fileChanges() leaves out what a run changed before its own entry in the session", () =>
  withRuntime(async (runtime) => {
    const root = await tempFolder();
    const sessionId = "chat" as SessionId;
    const agent = editor(root, [
      { toolCalls: [{ name: "write", input: { path: "a.txt", content: "1" } }] },
      { toolCalls: [{ name: "write", input: { path: "a.txt", content: "2" } }] },
      "done",
    ]);
    await say(runtime, agent, sessionId);
    const path = await runtime.sessions.path(sessionId);
    const answers = path.filter((entry) => entry.type === "message" && entry.message.role === "assistant");
    const counts: number[] = [];
    for (const { id } of answers)
      counts.push((await runtime.sessions.fileChanges(sessionId, id)).changes.length);
    expect(counts).toEqual([2, 1, 0]);
  }));

test("restoreFiles() leaves alone a file that another program changed, and a file outside of the folders", () =>
  withRuntime(async (runtime) => {
    const root = await tempFolder();
    const elsewhere = await tempFolder();
    const sessionId = "chat" as SessionId;
    for (const name of ["since", "between", "deleted", "large"]) await writeFile(join(root, name), "old");
    await writeFile(join(root, "large"), Buffer.alloc(4 * 1024 * 1024 + 1));
    const write = (name: string, content: string): Call => ["write", { path: name, content }];
    const agent = editor(root, [
      ...turn(
        write("since", "agent"),
        write("between", "agent"),
        write("deleted", "agent"),
        write("large", "agent"),
      ),
      ...turn(write("between", "agent again")),
    ]);
    const entry = await say(runtime, agent, sessionId);
    await writeFile(join(root, "between"), "mine");
    await say(runtime, agent, sessionId);
    await writeFile(join(root, "since"), "mine");
    await rm(join(root, "deleted"));
    const { changes } = await runtime.sessions.fileChanges(sessionId, entry);
    const restored = await restoreFiles(changes, { folders: [root], apply: true });
    expect(states(restored, root)).toEqual({
      since: "changed",
      between: "changed",
      deleted: "restored",
      large: "not_kept",
    });
    expect(restored.map(({ reason }) => reason)).toEqual([
      "another program or person has changed the file since",
      "another program or person changed the file between two changes",
      "",
      "the previous content had more than 4194304 bytes",
    ]);
    expect(await readFile(join(root, "since"), "utf8")).toBe("mine");
    expect(await readFile(join(root, "between"), "utf8")).toBe("agent again");
    expect(await readFile(join(root, "deleted"), "utf8")).toBe("old");
    const outside = await restoreFiles(changes, { folders: [elsewhere], apply: true });
    expect(new Set(outside.map(({ state }) => state))).toEqual(new Set(["outside"]));
    await expect(restoreFiles(changes, { folder: root } as never)).rejects.toThrow("folder");
  }));

test("restoreFiles() reports a file whose place is now a folder, and restores the other files", () =>
  withRuntime(async (runtime) => {
    const root = await tempFolder();
    const sessionId = "chat" as SessionId;
    const agent = editor(
      root,
      turn(["write", { path: "a", content: "x" }], ["write", { path: "b", content: "x" }]),
    );
    const entry = await say(runtime, agent, sessionId);
    await rm(join(root, "a"));
    await mkdir(join(root, "a"));
    const { changes } = await runtime.sessions.fileChanges(sessionId, entry);
    const restored = await restoreFiles(changes, { folders: [root], apply: true });
    expect(states(restored, root)).toEqual({ a: "failed", b: "restored" });
  }));

test("restoreFiles() follows no link that has taken the place of a file or of a folder, and reports the file as changed", () =>
  withRuntime(async (runtime) => {
    const root = await realpath(await tempFolder());
    const elsewhere = await realpath(await tempFolder());
    const sessionId = "chat" as SessionId;
    const names = ["file", "new", "folder/file", "away/file", "absent/deep/file"];
    for (const folder of ["folder", "away", "absent", "target"]) await mkdir(join(root, folder));
    await mkdir(join(root, "absent/deep"));
    for (const name of names.filter((each) => each !== "new")) await writeFile(join(root, name), "old");
    const agent = editor(root, turn(...names.map((path): Call => ["write", { path, content: "agent" }])));
    const entry = await say(runtime, agent, sessionId);
    // Each link leads to a file with the content that the agent wrote.
    for (const folder of [join(root, "target"), elsewhere]) await writeFile(join(folder, "file"), "agent");
    for (const name of ["file", "new", "folder", "away", "absent"])
      await rm(join(root, name), { recursive: true });
    for (const name of ["file", "new"]) await symlink(join(root, "target/file"), join(root, name));
    await symlink("target", join(root, "folder"));
    await symlink(elsewhere, join(root, "away"));
    await symlink("target", join(root, "absent"));
    const { changes } = await runtime.sessions.fileChanges(sessionId, entry);
    const restored = await restoreFiles(changes, { folders: [root], apply: true });
    expect(states(restored, root)).toEqual(Object.fromEntries(names.map((name) => [name, "changed"])));
    expect(new Set(restored.map(({ reason }) => reason))).toEqual(
      new Set(["a link has taken the place of the file or of one of its folders"]),
    );
    expect(await readdir(join(root, "target"))).toEqual(["file"]);
    expect(await readdir(elsewhere)).toEqual(["file"]);
    expect(await readFile(join(root, "target/file"), "utf8")).toBe("agent");
  }));

test("restoreFiles() creates a deleted file again, with its deleted folders", () =>
  withRuntime(async (runtime) => {
    const root = await tempFolder();
    const sessionId = "chat" as SessionId;
    await mkdir(join(root, "a/b"), { recursive: true });
    await writeFile(join(root, "a/b/file"), "old");
    const agent = editor(root, turn(["write", { path: "a/b/file", content: "agent" }]));
    const entry = await say(runtime, agent, sessionId);
    await rm(join(root, "a"), { recursive: true });
    const { changes } = await runtime.sessions.fileChanges(sessionId, entry);
    await restoreFiles(changes, { folders: [root], apply: true });
    expect(await readFile(join(root, "a/b/file"), "utf8")).toBe("old");
  }));

test("removeFile() deletes a file only in the state in which it was read", async () => {
  const root = new FileRoot(await tempFolder());
  const path = join(await root.path(), "file");
  await writeFile(path, "as read");
  const place = await root.place("file");
  const read = await fileState(place);
  if (read === null) throw new Error("the file does not exist");
  await writeFile(path, "another text");
  await expect(removeFile(place, read)).rejects.toMatchObject({ code: "already_exists" });
  expect(await readFile(path, "utf8")).toBe("another text");
  const now = await fileState(place);
  if (now !== null) await removeFile(place, now);
  expect(await fileState(place)).toBeNull();
  await place.folder.close();
});

test("fileChanges() counts the changes whose contents retention has erased", async () => {
  const root = await tempFolder();
  await using runtime = await openRuntime({ store: "memory:", unknownPrice: "ignore" });
  const sessionId = "chat" as SessionId;
  const worker = new Agent({
    name: "worker",
    model: scriptedModel([...turn(["write", { path: "a", content: "secret" }])]),
    tools: fileTools({ root }),
  });
  const hire = tool({
    name: "hire",
    description: "Hires the worker",
    inputSchema: { type: "object" },
    execute: async (_input, { ctx }) => {
      const child = await ctx.spawn(worker.id, "Write.", { retention: HistoryRetention.NONE });
      if (child.kind !== "spawned") return "refused";
      return (await ctx.join(child.handle)).status;
    },
  });
  const lead = new Agent({ name: "lead", model: scriptedModel([...turn(["hire", {}])]), tools: [hire] });
  runtime.register(worker);
  const entry = await say(runtime, lead, sessionId);
  const { changes, erased } = await runtime.sessions.fileChanges(sessionId, entry);
  expect({ changes, erased }).toEqual({ changes: [], erased: 1 });
});

test("J6: a worker that dies at any write of an edit keeps the content from before the edit", async () => {
  const root = await tempFolder();
  const file = join(root, "a.txt");
  const [edit = "", done = ""] = turn(["edit", { path: "a.txt", oldText: "old", newText: "new" }]);
  const next: ScriptStep = ({ messages }) =>
    (messages.at(-1)?.role === "tool" ? done : edit) as ScriptedReply;
  const onError = (): void => undefined;
  let deaths = 0;
  for (let at = 1, isOver = false; !isOver; at++) {
    await writeFile(file, "old");
    const store = memoryStore({ hash: sha256 });
    const agent = editor(root, [next, next]);
    const { record, first } = newRun({ clock: systemClock, ids: sequentialIds("s") }, agent, "Work.", {});
    await store.journal.create(record, first);
    const dead = Promise.withResolvers<undefined>();
    const dying = dyingStore(store, {
      at,
      when: at % 2 === 0 ? "before" : "after",
      die: () => dead.resolve(undefined),
    });
    const common = { unknownPrice: "ignore", keepAlive: false, onError } as const;
    const opening = createRuntime({ ...common, store: dying, workerId: "one" });
    const one = await Promise.race([opening, dead.promise]);
    one?.register(agent);
    const ended = opening.then(async (runtime) => (await runtime.find(record.runId))?.result());
    isOver = await Promise.race([ended.then(() => true), dead.promise.then(() => false)]);
    if (!isOver) {
      deaths++;
      await store.leases.dismiss("one");
      const two = await createRuntime({ ...common, store, workerId: "two" });
      two.register(editor(root, [next, next]));
      await (await two.find(record.runId))?.result();
    }
    expect(await readFile(file, "utf8")).toBe("new");
    const [entry] = await store.sessions.read(record.sessionId);
    const changes = await fileChangesAfter(store, record.sessionId, { entryId: entry?.entry.id ?? "" });
    await restoreFiles(changes?.changes ?? [], { folders: [root], apply: true });
    expect([at, await readFile(file, "utf8")]).toEqual([at, "old"]);
  }
  expect(deaths).toBeGreaterThan(5);
});
