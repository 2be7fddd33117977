import {
  formatRunId,
  formatSessionId,
  sessionWithin,
  userMessage,
  type SessionEntry,
  type SessionId,
  type SessionQuery,
  type Sessions,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  agentId,
  appendEntry as append,
  runRecord,
  sessionEntry as entry,
  sessionId,
} from "./store-fixtures.ts";

function info(id: string, name: string, parentId: string | null = null): SessionEntry {
  return { type: "session_info", id, parentId, name, at: 1, runId: null, taskId: null };
}

/** Tests of `find` and `list`: owners, names, titles, filters and pages. */
export function sessionListContract({ test, expect, open }: ContractHarness): void {
  const create = (sessions: Sessions, id: string, owner = {}, at = 1): Promise<unknown> =>
    sessions.apply([append(entry("a", null, at), "visible", formatSessionId(id))], {
      owner: { tenantId: null, userId: null, ...owner },
    });
  const listed = async (sessions: Sessions, query?: SessionQuery): Promise<readonly SessionId[]> =>
    (await sessions.list(query)).sessions.map((each) => each.sessionId);

  const ownerOf = async (sessions: Sessions): Promise<unknown> => {
    const found = await sessions.find(sessionId);
    return found && [found.tenantId, found.userId];
  };

  test("N6: a session belongs to the owner that created it, also when others write to it later", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null))], { owner: { tenantId: "acme", userId: "ann" } });
    await sessions.apply([append(entry("b", "a"))], { owner: { tenantId: "other", userId: "bob" } });
    expect(await sessions.find(sessionId)).toEqual({
      sessionId,
      agentId,
      tenantId: "acme",
      userId: "ann",
      name: null,
      title: "a",
      leafId: "b",
      entries: 2,
      updatedAt: 1,
    });
  });

  test("N6: the session that a run creates belongs to the user and the tenant of the run", async () => {
    const store = await open();
    const record = { ...runRecord("a"), tenantId: "acme", userId: "ann" };
    await store.journal.create(record, { number: 0, at: 1, sessions: [append(entry("a", null), "pending")] });
    expect(await ownerOf(store.sessions)).toEqual(["acme", "ann"]);
  });

  test("N6: a session without an owner has no tenant and no user", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null))]);
    expect(await ownerOf(sessions)).toEqual([null, null]);
    expect(await sessions.find(formatSessionId("none"))).toBeUndefined();
  });

  test("list() returns only the sessions of a tenant, of a user, or without one", async () => {
    const { sessions } = await open();
    await create(sessions, "1", { tenantId: "acme", userId: "ann" });
    await create(sessions, "2", { tenantId: "acme", userId: "bob" });
    await create(sessions, "3", { tenantId: "other", userId: "ann" });
    await create(sessions, "4", { userId: "ann" });
    await create(sessions, "5");
    const of = async (query: SessionQuery): Promise<string> =>
      (await listed(sessions, query))
        .map((each) => each.slice(4))
        .toSorted()
        .join("");
    expect(await of({})).toBe("12345");
    expect(await of({ tenantId: "acme" })).toBe("12");
    expect(await of({ tenantId: null })).toBe("45");
    expect(await of({ userId: "ann" })).toBe("134");
    expect(await of({ userId: null })).toBe("5");
    expect(await of({ tenantId: "acme", userId: "ann" })).toBe("1");
    expect(await of({ tenantId: null, userId: null })).toBe("5");
    expect(await of({ tenantId: "nobody" })).toBe("");
    expect(await of({ tenantId: "acme", agentId })).toBe("12");
  });

  test("list() with withWorkers false leaves out the sessions of workers", async () => {
    const { sessions } = await open();
    await sessions.apply([
      append(entry("a", null)),
      append(entry("a", null), "visible", sessionWithin(sessionId, "worker")),
    ]);
    expect((await listed(sessions)).length).toBe(2);
    expect(await listed(sessions, { withWorkers: false })).toEqual([sessionId]);
  });

  test("the name of a session is that of its last session_info entry", async () => {
    const { sessions } = await open();
    const name = async (): Promise<unknown> => (await sessions.find(sessionId))?.name;
    await sessions.apply([append(entry("a", null)), append(info("i", "Weather"))]);
    expect(await name()).toBe("Weather");
    await sessions.apply([append(info("j", "Rain")), append(info("i", "Again"))]);
    expect(await name()).toBe("Rain");
    const named = { ...info("k", "Snow"), runId: formatRunId("a") };
    await sessions.apply([append(named)]);
    expect(await name()).toBe("Snow");
    await sessions.apply([{ type: "remove", sessionId, runId: formatRunId("a") }]);
    expect(await name()).toBe("Rain");
  });

  test("the title of a session is the start of the first user's text, and is removed with it", async () => {
    const { sessions } = await open();
    const title = async (): Promise<unknown> => (await sessions.find(sessionId))?.title;
    const long = `How  is\nthe weather ${"🌧".repeat(100)}`;
    const first = { ...entry("a", null), message: userMessage(long) };
    const second = { ...entry("b", null), runId: null, message: userMessage("And now?") };
    await sessions.apply([append(info("i", "x")), append(first), append(second)]);
    expect(await title()).toBe(`How is the weather ${"🌧".repeat(61)}`);
    await sessions.apply([{ type: "remove", sessionId, runId: formatRunId("a") }]);
    expect(await title()).toBe("And now?");
  });

  test("list() with a text returns the sessions whose name or title contains it, in any case of ASCII letters", async () => {
    const { sessions } = await open();
    const create2 = async (id: string, text: string, name?: string): Promise<void> => {
      const session = formatSessionId(id);
      const message = { ...entry("a", null), message: userMessage(text) };
      await sessions.apply([append(message, "visible", session)]);
      if (name !== undefined) await sessions.apply([append(info("i", name), "visible", session)]);
    };
    await create2("1", "Plan the TRIP");
    await create2("2", "hello", "Trip 100%_done");
    await create2("3", "hello");
    const of = async (text: string): Promise<readonly string[]> =>
      (await listed(sessions, { text })).toSorted();
    expect(await of("trip")).toEqual([formatSessionId("1"), formatSessionId("2")]);
    expect(await of("100%_")).toEqual([formatSessionId("2")]);
    expect(await of("%")).toEqual([formatSessionId("2")]);
    expect(await of("nowhere")).toEqual([]);
  });

  test("list() returns each session once over several pages, newest first, also while sessions are added and deleted", async () => {
    const { sessions } = await open();
    for (let number = 0; number < 9; number++) await create(sessions, `${number}`, {}, 10 + (number % 3));
    const whole = await listed(sessions);
    expect(whole.length).toBe(9);
    const first = await sessions.list({ limit: 4 });
    expect(first.sessions.map((each) => each.sessionId)).toEqual(whole.slice(0, 4));
    await create(sessions, "newer", {}, 99);
    await sessions.delete(whole[5] as SessionId);
    const second = await sessions.list({ limit: 4, after: first.next as string });
    expect(second.sessions.map((each) => each.sessionId)).toEqual(
      whole.slice(4).filter((_, index) => index !== 1),
    );
    expect(second.next).toBe(null);
  });

  test("list() refuses an invalid cursor and a limit that is not a positive integer", async () => {
    const { sessions } = await open();
    for (const after of ["", "x", "1", "1_", "1_2_3"])
      await expect(sessions.list({ after })).rejects.toMatchObject({ code: "invalid_argument" });
    for (const limit of [0, -1, 1.5, NaN])
      await expect(sessions.list({ limit })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("a session whose last entry is removed no longer exists", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null))], { owner: { tenantId: "acme", userId: "ann" } });
    await sessions.apply([{ type: "remove", sessionId, runId: formatRunId("a") }]);
    expect(await sessions.find(sessionId)).toBeUndefined();
    await sessions.apply([append(entry("a", null))], { owner: { tenantId: "other", userId: "bob" } });
    expect(await ownerOf(sessions)).toEqual(["other", "bob"]);
  });
}
