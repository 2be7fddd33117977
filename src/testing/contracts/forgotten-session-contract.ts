import {
  formatRunId,
  formatSessionId,
  parseSessionId,
  sessionWithin,
  unnamedSessionId,
  type SessionChange,
  type SessionEntry,
  type SessionId,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { agentId, runRecord, sessionId, sessionEntry as entry } from "./store-fixtures.ts";

/** Tests which sessions `Sessions.collect` deletes. */
export function forgottenSessionContract({ test, expect, open }: ContractHarness): void {
  const runId = formatRunId("a");
  const append = (which: SessionEntry, session: SessionId): SessionChange => ({
    type: "append",
    sessionId: session,
    agentId,
    entry: which,
    visibility: "visible",
  });

  test("collect() deletes exactly the old unnamed sessions that no second run used and whose run is deleted", async () => {
    const store = await open();
    const { sessions } = store;
    const unnamed = (name: string): SessionId => unnamedSessionId(formatRunId(name));
    const of = (name: string, by: string | null, at = 1): SessionEntry => ({
      ...entry(`${name} ${by}`, null, at),
      runId: by === null ? null : formatRunId(by),
    });
    const say = (session: SessionId, ...entries: SessionEntry[]): Promise<unknown> =>
      sessions.apply(entries.map((each) => append(each, session)));
    const worker = sessionWithin(unnamed("gone"), "worker");
    await say(unnamed("gone"), of("a", "gone"));
    await say(worker, of("a", "gone"));
    await say(unnamedSessionId(formatRunId("gone"), "7f-3a_"), of("a", "gone"));
    const kept: readonly [SessionId, ...SessionEntry[]][] = [
      [sessionId, of("a", "gone")],
      [unnamed("late"), of("a", "late", 5)],
      [unnamed("returned"), of("a", "returned"), of("b", "other")],
      [unnamed("labelled"), of("a", "labelled"), of("b", null)],
      [unnamed("other"), of("a", "gone")],
      [unnamed("here"), of("a", "here")],
      [sessionWithin(unnamed("here"), "worker"), of("a", "here")],
      [parseSessionId(`${unnamed("gone")}/mine`), of("a", "gone")],
    ];
    for (const [session, ...entries] of kept) await say(session, ...entries);
    await store.journal.create({ ...runRecord("here"), sessionId: unnamed("here") }, { number: 0, at: 1 });
    expect(await sessions.collect({ unnamedBefore: 1 })).toBe(0);
    expect(await sessions.collect({ unnamedBefore: 5 })).toBe(3);
    expect(await sessions.read(worker)).toEqual([]);
    const left = (await sessions.list()).sessions.map((each) => each.sessionId);
    expect(left.toSorted()).toEqual(kept.map(([session]) => session).toSorted());
  });

  test("collect() deletes a session within an unnamed session together with it, and not before", async () => {
    const { sessions } = await open();
    const say = (session: SessionId, by: string, at = 1): Promise<unknown> =>
      sessions.apply([append({ ...entry(by, null, at), runId: formatRunId(by) }, session)]);
    const of = (name: string): [SessionId, SessionId] => {
      const whole = unnamedSessionId(formatRunId(name));
      return [whole, sessionWithin(whole, "worker")];
    };
    // A second run used the session `returned`, not its worker session; of `silent`, a second run used only the worker
    // session.
    const [returned, idle] = of("returned");
    for (const session of [returned, idle]) await say(session, "returned");
    await say(returned, "other");
    const [silent, busy] = of("silent");
    for (const session of [silent, busy]) await say(session, "silent");
    await say(busy, "other");
    const [early, late] = of("early");
    await say(early, "early");
    await say(late, "early", 5);
    // The outer session of `lone` has no entries: only its worker session exists.
    const [, lone] = of("lone");
    await say(lone, "lone");
    const left = async (): Promise<readonly SessionId[]> =>
      (await sessions.list()).sessions.map((each) => each.sessionId).toSorted();
    expect(await sessions.collect({ unnamedBefore: 5 })).toBe(1);
    expect(await left()).toEqual([returned, idle, silent, busy, early, late].toSorted());
    expect(await sessions.collect({ unnamedBefore: 6 })).toBe(2);
    expect(await left()).toEqual([returned, idle, silent, busy].toSorted());
  });

  test("a session that a commit creates is as new as the commit, even if its entries are older", async () => {
    const store = await open();
    const begun = unnamedSessionId(runId);
    const apart = formatSessionId("apart");
    await store.sessions.apply([append(entry("a", null, 40), apart)]);
    await store.journal.create(
      { ...runRecord("a"), sessionId: begun },
      { number: 0, at: 50, sessions: [append(entry("a", null), begun)] },
    );
    const listed = async (): Promise<readonly unknown[]> =>
      (await store.sessions.list()).sessions.map((each) => [each.sessionId, each.updatedAt]);
    expect(await listed()).toEqual([
      [begun, 50],
      [apart, 40],
    ]);
    await store.sessions.apply([append(entry("b", "a", 45), begun)]);
    expect((await listed())[0]).toEqual([begun, 50]);
    await store.journal.delete(runId);
    expect(await store.sessions.collect({ unnamedBefore: 50 })).toBe(0);
    expect(await store.sessions.collect({ unnamedBefore: 51 })).toBe(1);
  });

  test("collect() deletes all forgotten sessions in one call, also 150 of them", async () => {
    const { sessions } = await open();
    for (let count = 0; count < 200; count++) {
      const by = formatRunId(`r${count}`);
      // Every fourth session has a name.
      const session = count % 4 === 0 ? formatSessionId(`s${count}`) : unnamedSessionId(by);
      await sessions.apply([append({ ...entry("a", null), runId: by }, session)]);
    }
    expect(await sessions.collect({ unnamedBefore: 2 })).toBe(150);
    expect((await sessions.list({ limit: 500 })).sessions.length).toBe(50);
  });
}
