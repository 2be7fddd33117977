import { describe, expect, test } from "vitest";
import { openRuntime } from "../../../src/entries/index.ts";
import {
  formatAgentId,
  parseSessionId,
  type SessionChange,
  type SessionId,
  type Store,
} from "../../../src/kernel/index.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";
import { converse, textsOf } from "./conversation.ts";

removeStoresAfterEach();

const echo = ({ messages }: { readonly messages: readonly unknown[] }): string => `answer ${messages.length}`;
const refused = Object.assign(new Error("bad key"), { status: 401 });
const chat = parseSessionId("chat");

describe.each(twoStores)("unusual use of runtime.sessions in a %s store", (_name, prepare) => {
  test("sessions.resend() works however often an input fails, and unsent() lists the last attempt", async () => {
    const attempts = 8;
    const { runtime, scout, say } = await converse(await (await prepare())(), [
      "Hello.",
      ...Array.from({ length: attempts + 1 }, () => ({ error: refused })),
      "Rain.",
    ]);
    await say("Hi", chat);
    let runId: string = `run_${"x".repeat(64)}`;
    await scout.invoke("Weather?", { runtime, sessionId: chat, runId });
    for (let attempt = 0; attempt < attempts; attempt++) {
      const again = await runtime.sessions.resend(runId);
      expect((await again.result()).status).toBe("failed");
      ({ runId } = again);
      expect((await runtime.sessions.unsent(chat)).map(({ run }) => run.runId)).toEqual([runId]);
    }
    expect((await (await runtime.sessions.resend(runId)).result()).output).toBe("Rain.");
    expect(await runtime.sessions.unsent(chat)).toEqual([]);
    await runtime.close();
  });

  test("sessions.append() refuses a message that no model could read, and the conversation continues", async () => {
    const { runtime, say } = await converse(await (await prepare())(), Array(2).fill(echo));
    await say("one", chat);
    const call = { type: "tool_call", callId: "c", toolName: "look", input: {} };
    const output = { type: "text", text: "rain" };
    for (const message of [
      { role: "user", content: [{ type: "poem" }] },
      { role: "user", content: [{ type: "image", mediaType: "image/png" }] },
      { role: "user", content: [call] },
      { role: "assistant", content: [{ type: "reasoning" }] },
      { role: "assistant", content: [call] },
      {
        role: "tool",
        content: [{ type: "tool_result", callId: "c", toolName: "look", output, isError: false }],
      },
      { role: "constructor", content: [] },
    ])
      await expect(
        runtime.sessions.append(chat, { customType: "x", message: message as never }),
      ).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await say("two", chat)).status).toBe("completed");
    await runtime.close();
  });

  test("a session change that another process overtakes neither restores a deleted session nor hides new messages", async () => {
    const open = await prepare();
    const store = await open();
    const { runtime, say } = await converse(store, Array(3).fill(echo));
    await say("one", chat);
    const [first] = await runtime.sessions.path(chat);
    const overtaken = overtake(store);
    const late = await openRuntime({ store: overtaken.store });
    const compaction = { summary: "so far", firstKeptEntryId: first?.id as string };
    overtaken.before(() => say("two", chat));
    await expect(late.sessions.compact(chat, compaction)).rejects.toMatchObject({ code: "not_found" });
    expect(textsOf(await runtime.sessions.path(chat))).toEqual(["one", "answer 1", "two", "answer 3"]);
    for (const change of [
      () => late.sessions.name(chat, "Late"),
      () => late.sessions.append(chat, { customType: "x", data: 1 }),
      () => late.sessions.move(chat, null),
      () => late.sessions.fork(chat, { sessionId: "copy" }),
    ]) {
      await store.sessions.apply([noteOf(chat)]);
      overtaken.before(() => runtime.sessions.delete(chat));
      await expect(change()).rejects.toMatchObject({ code: "not_found" });
      expect((await runtime.sessions.list()).sessions).toEqual([]);
    }
    await late.close();
    await runtime.close();
  });

  test("sessions.search() in one session applies the filters for agent, tenant and user", async () => {
    const { runtime, scout } = await converse(await (await prepare())(), [echo]);
    await scout.invoke("Plan the trip", { runtime, sessionId: chat, userId: "ann", tenantId: "acme" });
    const hits = async (options: object): Promise<number> =>
      (await runtime.sessions.search("trip", { sessionId: chat, ...options })).hits.length;
    expect(await hits({ userId: "ann", tenantId: "acme", agentId: "scout" })).toBe(1);
    expect(await hits({ userId: "bob" })).toBe(0);
    expect(await hits({ tenantId: null })).toBe(0);
    expect(await hits({ agentId: "poet" })).toBe(0);
    await runtime.close();
  });
});

/** A store in which an action of another process happens right before the next change of a session. */
function overtake(store: Store): { store: Store; before: (action: () => Promise<unknown>) => void } {
  let action: (() => Promise<unknown>) | undefined;
  const sessions = new Proxy(store.sessions, {
    get: (target, name) => {
      if (name !== "apply") {
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? (member.bind(target) as unknown) : member;
      }
      return async (...input: Parameters<Store["sessions"]["apply"]>) => {
        const act = action;
        action = undefined;
        await act?.();
        return target.apply(...input);
      };
    },
  });
  return { store: { ...store, sessions, close: async () => undefined }, before: (next) => (action = next) };
}

function noteOf(sessionId: SessionId): SessionChange {
  const common = { id: "note", parentId: null, at: 1, runId: null, taskId: null } as const;
  const entry = { ...common, type: "custom", customType: "x", data: 1 } as const;
  return {
    type: "append",
    sessionId,
    agentId: formatAgentId({ name: "scout" }),
    entry,
    visibility: "visible",
  };
}
