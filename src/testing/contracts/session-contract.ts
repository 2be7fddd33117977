import {
  assistantMessage,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  leafOf,
  messageText,
  parseSessionId,
  pathTo,
  rootLeafOf,
  stoppedStem,
  sessionWithin,
  toolMessage,
  toolResultPart,
  userMessage,
  type ChatMessage,
  type RunId,
  type SessionChange,
  type SessionEntry,
  type SessionQuery,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { forgottenSessionContract } from "./forgotten-session-contract.ts";
import { idleSessionContract } from "./idle-session-contract.ts";
import { sessionListContract } from "./session-list-contract.ts";
import { sessionCopyContract } from "./session-copy-contract.ts";
import { sessionPathContract } from "./session-path-contract.ts";
import {
  agentId,
  ownRun,
  rootTask,
  runEnd,
  runRecord,
  sessionId,
  sessionEntry as entry,
} from "./store-fixtures.ts";

/** Tests of the rules that every implementation of `Sessions` must keep. */
export function sessionContract(harness: ContractHarness): void {
  const { test, expect, open } = harness;
  forgottenSessionContract(harness);
  sessionPathContract(harness);
  sessionCopyContract(harness);
  sessionListContract(harness);
  idleSessionContract(harness);
  const runId = formatRunId("a");
  const append = (
    which: SessionEntry,
    visibility: "pending" | "hidden" | "visible" = "visible",
    session = sessionId,
  ): SessionChange => ({ type: "append", sessionId: session, agentId, entry: which, visibility });

  test("N1: entries are read back unchanged in the order in which they were appended", async () => {
    const { sessions } = await open();
    const tree = [entry("a", null), entry("b", "a"), entry("c", "a")];
    await sessions.apply(tree.map((each) => append(each)));
    expect((await sessions.read(sessionId)).map((each) => each.entry)).toEqual(tree);
  });

  test("N1: the order of entries is the order of appending and does not depend on ids or times", async () => {
    const { sessions } = await open();
    const tree = [entry("z", null, 9), entry("10", "z", 1), entry("a", "10", 5), entry("9", "a", 0)];
    for (const each of tree) await sessions.apply([append(each)]);
    expect((await sessions.read(sessionId)).map((each) => each.entry)).toEqual(tree);
  });

  test("N1: an entry whose parent does not exist is refused together with all changes of the same call", async () => {
    const { sessions } = await open();
    const changes = [append(entry("a", null)), append(entry("b", "nowhere"))];
    await expect(sessions.apply(changes)).rejects.toMatchObject({ code: "not_found" });
    expect(await sessions.read(sessionId)).toEqual([]);
  });

  test("S2: appending an entry again changes nothing", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null), "pending")]);
    await sessions.apply([append({ ...entry("a", null), at: 9 }, "visible")]);
    expect(await sessions.read(sessionId, { includeHidden: true })).toEqual([
      { entry: entry("a", null), visibility: "pending" },
    ]);
  });

  test("S1: entries of a run stay hidden until they are revealed, and then become visible together", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null), "pending"), append(entry("b", "a"), "hidden")]);
    expect(await sessions.read(sessionId)).toEqual([]);
    expect((await sessions.read(sessionId, { includeHidden: true })).length).toBe(2);
    await sessions.apply([{ type: "reveal", sessionId, runId: formatRunId("other") }]);
    expect(await sessions.read(sessionId)).toEqual([]);
    await sessions.apply([{ type: "reveal", sessionId, runId }]);
    expect((await sessions.read(sessionId)).map((each) => each.entry.id)).toEqual(["a", "b"]);
  });

  test("a batch of messages becomes one session entry per message; applied again, it adds only the new messages", async () => {
    const { sessions } = await open();
    const stem = `${runId}/${rootTask}`;
    const spoken = ["one", "two", "three", "four"].map((text) => userMessage(text));
    const say = (count: number, parentId: string | null, from = 1): SessionChange => {
      const said = { runId, taskId: rootTask, at: 1, parentId, stem, from, messages: spoken.slice(0, count) };
      return { type: "say", sessionId, agentId, batch: said, visibility: "hidden" };
    };
    const entries = spoken.map((message, index) => ({
      ...entry(`${stem}/${index + 1}`, index === 0 ? "a" : `${stem}/${index}`),
      message,
    }));
    const written = async (): Promise<readonly SessionEntry[]> =>
      (await sessions.read(sessionId, { includeHidden: true })).map((each) => each.entry);
    await expect(sessions.apply([say(2, "a")])).rejects.toMatchObject({ code: "not_found" });
    await sessions.apply([append(entry("a", null)), say(2, "a"), say(0, "a", 9)]);
    expect(await written()).toEqual([entry("a", null), ...entries.slice(0, 2)]);
    await sessions.apply([say(4, "a"), append(entry("b", `${stem}/4`))]);
    expect(await written()).toEqual([entry("a", null), ...entries, entry("b", `${stem}/4`)]);
    expect((await sessions.list()).sessions[0]?.entries).toBe(6);
    expect((await sessions.read(sessionId)).map((each) => each.entry.id)).toEqual(["a", "b"]);
    await sessions.apply([{ type: "reveal", sessionId, runId }]);
    expect((await sessions.read(sessionId)).length).toBe(6);
    await expect(sessions.apply([append(entry("c", `${stem}/5`))])).rejects.toMatchObject({
      code: "not_found",
    });
    await sessions.apply([{ type: "remove", sessionId, runId }]);
    expect(await written()).toEqual([]);
    expect((await sessions.list()).sessions[0]?.entries ?? 0).toBe(0);
  });

  test("removing the entries of a run keeps all other entries", async () => {
    const { sessions } = await open();
    const kept = { ...entry("a", null), runId: null };
    await sessions.apply([append(kept), append(entry("b", "a"))]);
    await sessions.apply([{ type: "remove", sessionId, runId }]);
    expect((await sessions.read(sessionId)).map((each) => each.entry)).toEqual([kept]);
  });

  test("revealing or removing the entries of one task does not affect other tasks of the run", async () => {
    const { sessions } = await open();
    const child = { ...entry("b", null), taskId: formatTaskId(1) };
    const grown = { ...entry("c", null), taskId: formatTaskId(10) };
    await sessions.apply([
      append(entry("a", null), "hidden"),
      append(child, "hidden"),
      append(grown, "hidden"),
    ]);
    const shown = async (): Promise<string[]> =>
      (await sessions.read(sessionId)).map((each) => each.entry.id);
    await sessions.apply([{ type: "reveal", sessionId, runId, taskId: child.taskId }]);
    expect(await shown()).toEqual(["b"]);
    await sessions.apply([{ type: "reveal", sessionId, runId }]);
    await sessions.apply([{ type: "remove", sessionId, runId, taskId: child.taskId }]);
    expect(await shown()).toEqual(["a", "c"]);
    expect((await sessions.read(sessionId)).map((each) => each.entry.taskId)).toEqual([rootTask, "t10"]);
  });

  test("N2: a session entry with atLeaf gets as its parent the entry that is current when the change is applied", async () => {
    const { sessions } = await open();
    const atLeaf = (id: string): SessionChange =>
      ({ ...append(entry(id, "nowhere"), "visible"), atLeaf: true }) as SessionChange;
    const parentOf = async (id: string): Promise<string | null | undefined> =>
      (await sessions.read(sessionId)).find((each) => each.entry.id === id)?.entry.parentId;
    await sessions.apply([atLeaf("z"), atLeaf("a"), atLeaf("b")]);
    // The current entry is determined by the order of appending and not by the ids.
    expect([await parentOf("a"), await parentOf("b")]).toEqual(["z", "a"]);
    const child = { ...entry("c", null), taskId: formatTaskId(1) };
    await sessions.apply([append(child), append(entry("d", "b"), "pending"), atLeaf("e")]);
    expect(await parentOf("e")).toBe("b");
    const label = { type: "label", id: "l", parentId: "e", at: 1, runId: null, taskId: null } as const;
    await sessions.apply([append({ ...label, targetId: "a", label: "start" }), atLeaf("m")]);
    expect(await parentOf("m")).toBe("e");
    const back = { type: "leaf", id: "f", parentId: "e", at: 1, runId: null, taskId: null } as const;
    await sessions.apply([append({ ...back, targetId: "a" }), atLeaf("g"), atLeaf("g")]);
    expect(await parentOf("g")).toBe("a");
  });

  test("N3: a batch of entries continues from the current entry, so that entries of another run stay in the conversation", async () => {
    const { sessions } = await open();
    const other = formatRunId("b");
    const stem = `${runId}/${rootTask}`;
    const call = { type: "tool_call", callId: "call_z", toolName: "look", input: {} } as const;
    const outcome = { output: { type: "text", text: "rain" }, isError: false } as const;
    const calls = assistantMessage([{ type: "text", text: "Let me look." }, call]);
    const results = toolMessage([toolResultPart(call, outcome)]);
    const say = (...messages: readonly ChatMessage[]): SessionChange => {
      const said = { runId, taskId: rootTask, at: 1, parentId: runId, stem, from: 1, messages };
      return { type: "say", sessionId, agentId, batch: said, visibility: "visible" };
    };
    const stopped = { ...entry(`${stem}/2/stopped`, `${stem}/1`), message: results };
    const theirs = { ...entry(other, stopped.id), runId: other };
    await sessions.apply([append(entry("a", null)), append(entry(runId, "a")), say(calls), append(stopped)]);
    await sessions.apply([append(theirs)]);
    await sessions.apply([say(calls, results, assistantMessage("It rains."))]);
    const read = async (): Promise<readonly SessionEntry[]> => {
      const entries = (await sessions.read(sessionId)).map((each) => each.entry);
      return pathTo(entries, rootLeafOf(entries)) ?? [];
    };
    const path = await read();
    expect(path.map(({ id }) => id)).toEqual([
      "a",
      runId,
      `${stem}/1`,
      stopped.id,
      other,
      `${stem}/again-2/0`,
      `${stem}/again-2/1`,
      `${stem}/2`,
      `${stem}/3`,
    ]);
    expect(path.slice(5, 8).map((each) => (each.type === "message" ? each.message : each))).toEqual([
      userMessage(runId),
      assistantMessage([
        { type: "text", text: "Let me look." },
        { ...call, callId: "calm_0" },
      ]),
      toolMessage([toolResultPart({ ...call, callId: "calm_0" }, outcome)]),
    ]);
    // Applying the same batch again adds nothing; a message after it is added.
    await sessions.apply([say(calls, results, assistantMessage("It rains."))]);
    expect(await read()).toEqual(path);
    await sessions.apply([say(calls, results, assistantMessage("It rains."), userMessage("And now?"))]);
    expect((await read()).map(({ id }) => id)).toEqual([...path.map(({ id }) => id), `${stem}/4`]);
    await sessions.apply([{ type: "remove", sessionId, runId }]);
    expect((await sessions.read(sessionId)).map((each) => each.entry.id)).toEqual([other]);
  });

  test("S1: a complete batch of entries replaces those of a stopped batch, unless another run has continued from them", async () => {
    const { sessions } = await open();
    const other = formatRunId("b");
    const stem = `${runId}/${rootTask}`;
    const say = (at: string, ...messages: readonly ChatMessage[]): SessionChange => {
      const said = { runId, taskId: rootTask, at: 1, parentId: runId, stem: at, from: 1, messages };
      return { type: "say", sessionId, agentId, batch: said, visibility: "visible" };
    };
    const path = async (): Promise<readonly string[]> => {
      const entries = (await sessions.read(sessionId)).map((each) => each.entry);
      return (pathTo(entries, rootLeafOf(entries)) ?? []).map(({ id }) => id);
    };
    const [first, second] = [stoppedStem(stem, 0), stoppedStem(stem, 1)];
    const [dry, rain] = [assistantMessage("It is dry."), assistantMessage("It rains.")];
    await sessions.apply([append(entry("a", null)), append(entry(runId, "a")), say(first, dry)]);
    expect(await path()).toEqual(["a", runId, `${first}/1`]);
    await sessions.apply([say(second, dry, rain)]);
    expect(await path()).toEqual(["a", runId, `${second}/1`, `${second}/2`]);
    await sessions.apply([append({ ...entry(other, `${second}/2`), runId: other })]);
    const whole = say(stem, dry, rain, assistantMessage("It pours."));
    await sessions.apply([whole]);
    const after = ["a", runId, `${second}/1`, `${second}/2`, other, `${stem}/again-3/0`, `${stem}/3`];
    expect(await path()).toEqual(after);
    await sessions.apply([whole]);
    expect(await path()).toEqual(after);
  });

  test("N3: a batch of entries is written whole when the session was moved to another branch", async () => {
    const { sessions } = await open();
    const stem = `${runId}/${rootTask}`;
    const say = (...messages: readonly ChatMessage[]): SessionChange => {
      const said = { runId, taskId: rootTask, at: 1, parentId: runId, stem, from: 1, messages };
      return { type: "say", sessionId, agentId, batch: said, visibility: "visible" };
    };
    const one = assistantMessage("one");
    await sessions.apply([append(entry("a", null)), append(entry(runId, "a")), say(one)]);
    const back = { type: "leaf", id: "f", parentId: "a", at: 1, runId: null, taskId: null } as const;
    const mine = { ...entry("b", "a"), runId: null, taskId: null };
    await sessions.apply([append({ ...back, targetId: "a" }), append(mine)]);
    await sessions.apply([say(one, assistantMessage("two"))]);
    const entries = (await sessions.read(sessionId)).map((each) => each.entry);
    const path = pathTo(entries, rootLeafOf(entries)) ?? [];
    expect(path.map((each) => each.type === "message" && messageText(each.message))).toEqual([
      "a",
      "b",
      runId,
      "one",
      "two",
    ]);
  });

  test("N3: a pending entry gets the current entry as its parent when it becomes visible", async () => {
    const { sessions } = await open();
    const pending = { ...append(entry(runId, null), "pending"), atLeaf: true } as SessionChange;
    const child = { ...entry("c", null), taskId: formatTaskId(1) };
    await sessions.apply([append({ ...entry("a", null), runId: null }), pending, append(child)]);
    const shown = async (): Promise<readonly (readonly [string, string | null])[]> =>
      (await sessions.read(sessionId)).map(({ entry: { id, parentId } }) => [id, parentId]);
    await sessions.apply([append({ ...entry("b", "a"), runId: null })]);
    await sessions.apply([{ type: "reveal", sessionId, runId, taskId: rootTask }]);
    expect(await shown()).toEqual([
      ["a", null],
      ["c", null],
      ["b", "a"],
      [runId, "b"],
    ]);
    expect((await sessions.list()).sessions[0]?.entries).toBe(4);
  });

  test("N3: the batches of children that are applied together follow one another on one path", async () => {
    const { sessions } = await open();
    const say = (ordinal: number): SessionChange => {
      const taskId = formatTaskId(ordinal);
      const messages = [userMessage("work"), assistantMessage(taskId)];
      const said = { runId, taskId, at: 1, parentId: null, stem: `${runId}/${taskId}`, from: 0, messages };
      return { type: "say", sessionId, agentId, batch: said, visibility: "visible" };
    };
    await sessions.apply([say(1), say(2)]);
    const entries = (await sessions.read(sessionId)).map((each) => each.entry);
    expect(pathTo(entries, leafOf(entries))).toEqual(entries);
    expect(entries.length).toBe(4);
  });

  test("S5: delete() keeps a session with an unfinished run and returns that run", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const worker = sessionWithin(sessionId, "worker");
    await store.sessions.apply([append(entry("a", null)), append(entry("a", null), "visible", worker)]);
    const other = { ...runRecord("b"), sessionId: parseSessionId(`${sessionId}/b`) };
    await store.journal.create(other, { number: 0, at: 1 });
    const inTheWay = async (): Promise<unknown> => {
      const run = await store.sessions.delete(sessionId);
      return run && [run.runId, run.sessionId, run.status];
    };
    expect(await inTheWay()).toEqual([lease.runId, sessionId, "running"]);
    expect((await store.sessions.list()).sessions.length).toBe(2);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    expect(await inTheWay()).toBeUndefined();
    expect((await store.sessions.list()).sessions).toEqual([]);
  });

  test("S5: delete() keeps a session whose ended run has an unread order to resume", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.sessions.apply([append(entry("a", null))]);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    await store.leases.release(lease, { kind: "ended" });
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "user", at: 3, body: { type: "resume" } });
    const run = await store.sessions.delete(sessionId);
    expect([run?.runId, run?.endedAt]).toEqual([lease.runId, 2]);
    expect((await store.sessions.read(sessionId)).length).toBe(1);
    const [again] = await store.leases.claim({ workerId: lease.workerId, limit: 1, now: 4 });
    if (again === undefined) throw new Error("the run could not be claimed");
    await store.journal.append(again, { number: 2, at: 5, mailThrough: 0 });
    expect(await store.sessions.delete(sessionId)).toBeUndefined();
    expect(await store.sessions.read(sessionId)).toEqual([]);
  });

  test("S5: create() and delete() of a session at the same time keep the new run's entries, in either order", async () => {
    const store = await open();
    const record = runRecord("b");
    for (const first of ["delete", "create"]) {
      await store.sessions.apply([append(entry("a", null))]);
      const create = async (): Promise<unknown> =>
        store.journal.create(record, { number: 0, at: 1, sessions: [append(entry("b", null), "pending")] });
      const remove = (): Promise<unknown> => store.sessions.delete(sessionId);
      const [one, other] = first === "delete" ? [remove(), create()] : [create(), remove()];
      await Promise.all([one, other]);
      const run = (await (first === "delete" ? one : other)) as { readonly runId: RunId } | undefined;
      const left = (await store.sessions.read(sessionId, { includeHidden: true })).map(
        ({ entry: { id } }) => id,
      );
      // A run never exists without the entries of its session.
      expect(left).toEqual(run === undefined ? ["b"] : ["a", "b"]);
      await store.journal.delete(record.runId);
      await store.sessions.delete(sessionId);
    }
  });

  test("sessions are listed newest first, and a deleted session is not listed", async () => {
    const { sessions } = await open();
    const older = formatSessionId("older");
    const newer = formatSessionId("newer");
    await sessions.apply([append(entry("a", null, 1), "visible", older)]);
    await sessions.apply([append(entry("a", null, 5), "visible", newer)]);
    expect((await sessions.list({ agentId })).sessions.map((each) => each.sessionId)).toEqual([newer, older]);
    expect((await sessions.list({ limit: 1 })).sessions.length).toBe(1);
    await sessions.delete(newer);
    expect(await sessions.read(newer)).toEqual([]);
    expect((await sessions.list()).sessions.map((each) => each.sessionId)).toEqual([older]);
  });

  test("deleting a session deletes the sessions within it and no other session with the same prefix", async () => {
    const { sessions } = await open();
    const whole = formatSessionId("whole");
    const children = ["child", "-", "~"].map((name) => sessionWithin(whole, name));
    const others = [`${whole}/child`, `${whole}0`, `${whole}-`, `${whole}:a`].map(parseSessionId);
    const all = [whole, ...children, ...others];
    for (const each of all) await sessions.apply([append(entry("a", null, 3), "visible", each)]);
    const listed = async (query: SessionQuery) =>
      (await sessions.list(query)).sessions.map((each) => each.sessionId).toSorted();
    expect(await listed({ under: whole })).toEqual(children.toSorted());
    expect(await listed({ under: whole, agentId: formatAgentId({ name: "else" }) })).toEqual([]);
    await sessions.delete(whole);
    expect(await listed({})).toEqual(others.toSorted());
  });
}
