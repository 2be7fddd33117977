import { expect, test } from "vitest";
import { Agent, openRuntime, reviewer, tool } from "../../src/entries/index.ts";
import {
  contextMessages,
  findUnpaired,
  messageText,
  parseSessionId,
  type ModelRequest,
  type Store,
} from "../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { dyingStore, scriptedModel, type ScriptedReply } from "../../src/testing/index.ts";
import { runWorkload, type Workload } from "../runtime/simulated-crash.ts";
import { deathsAt } from "../effort.ts";

const prompt = "What did you learn?";
const sessionId = parseSessionId("chat");

/** Answers depend on the request alone, so that a restarted worker can continue. */
function answerTo({ messages }: ModelRequest): string | ScriptedReply {
  const own = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
  const isChild = messages.some((message) => messageText(message) === prompt);
  if (own.length > 1) return isChild ? "Learnt." : "Done.";
  return { toolCalls: [{ name: isChild ? "note" : "work", input: {}, callId: isChild ? "c2" : "c1" }] };
}

/** An agent whose children call `note`. Each model call is added to `calls`, each executed note to `notes`. */
function clerk(calls: string[], notes: string[], kind: "ctx.child()" | "a reviewer" | "spawnChild()"): Agent {
  const model = scriptedModel(
    Array.from({ length: 100 }, () => (request: ModelRequest) => {
      calls.push(JSON.stringify(request.messages));
      return answerTo(request);
    }),
  );
  const inputSchema = { type: "object", properties: {} } as const;
  const work = tool({
    name: "work",
    description: "Works",
    inputSchema,
    execute: async (_input, { ctx }) => {
      if (kind !== "ctx.child()") return "worked";
      const spawned = await ctx.child({ prompt, tools: ["note"] });
      return spawned.kind === "refused" ? spawned.reason : (await ctx.join(spawned.handle)).status;
    },
  });
  const note = tool({
    name: "note",
    description: "Notes",
    inputSchema,
    execute: (_input, { idempotencyKey }) => {
      notes.push(idempotencyKey);
      return "noted";
    },
  });
  const reviewers = kind === "a reviewer" ? [reviewer({ every: 1, tools: ["note"], prompt })] : [];
  return new Agent({ name: "clerk", model, tools: [work, note], reviewers });
}

/** Returns whether each call of the session has its result, and the texts of the session. */
async function seen(store: Store) {
  const path = await store.sessions.readPath(sessionId);
  const messages = contextMessages(path?.entries ?? []);
  expect(findUnpaired(messages)).toBeUndefined();
  const { runs } = await store.journal.list();
  return {
    said: messages.map((message) => [message.role, messageText(message)]),
    runs: runs.map(({ kind, status }) => `${kind} ${status}`).toSorted(),
  };
}

test.for(["ctx.child()", "a reviewer", "a reviewer of a resolved agent"] as const)(
  "J1, J6: an invocation with %s ends with one child wherever its worker dies, and repeats only the call in flight",
  async (child) => {
    const kind = child === "ctx.child()" ? child : "a reviewer";
    const workload = (calls: string[], notes: string[]): Workload => ({
      agents: () => [clerk(calls, notes, kind)],
      // As the command line does: a run without the settings of its agent is left to other workers.
      ...(child === "a reviewer of a resolved agent" && {
        resolver: () => ({
          name: "clerk",
          resolve: ({ metadata }) =>
            metadata["settings"] === undefined ? undefined : clerk(calls, notes, kind),
        }),
      }),
      input: "Work.",
      submit: { sessionId, metadata: { settings: "of the clerk" } },
      options: { unknownPrice: "ignore" },
    });
    const [calmCalls, calmNotes]: [string[], string[]] = [[], []];
    const calm = await runWorkload(workload(calmCalls, calmNotes));
    const expected = await seen(calm.store);
    expect(calmCalls).toHaveLength(4);
    expect(expected.runs).toEqual(
      kind === "a reviewer" ? ["child completed", "invocation completed"] : ["invocation completed"],
    );
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of deathsAt(at)) {
        const [calls, notes]: [string[], string[]] = [[], []];
        const { status, store } = await runWorkload(workload(calls, notes), { at, when });
        const repeated = calls.length - new Set(calls).size;
        expect({ at, when, status, ...(await seen(store)) }).toEqual({
          at,
          when,
          status: "completed",
          ...expected,
        });
        expect([repeated <= 1, new Set(calls).size, new Set(notes).size]).toEqual([true, 4, 1]);
        // Every request of the child contains the parent's last answer.
        const ofChild = calls.filter((call) => call.includes(prompt));
        const answer = kind === "a reviewer" ? "Done." : "[not executed: ";
        expect(ofChild.every((call) => call.includes(answer))).toBe(true);
      }
    }
  },
);

/** Spawns a child in a session on a worker whose store dies at a write. Returns the number of its writes. */
async function spawnAndDie(
  store: Store,
  agent: Agent,
  death: { readonly at: number; readonly when: "before" | "after" },
): Promise<number> {
  const dead = Promise.withResolvers<undefined>();
  const dying = dyingStore(store, { ...death, die: () => dead.resolve(undefined) });
  const options = { store: dying, workerId: "one", unknownPrice: "ignore", keepAlive: false } as const;
  const opening = openRuntime({ ...options, onError: () => undefined });
  const runtime = await Promise.race([opening, dead.promise]);
  const spawning =
    runtime && agent.spawnChild({ sessionId, prompt, tools: ["note"], runId: "run_child", runtime });
  const run = await Promise.race([spawning, dead.promise]);
  if (run !== undefined) await Promise.race([run.result(), dead.promise]);
  return dying.writes;
}

test("J1, J6: agent.spawnChild() starts one child wherever its process dies, and repeats only the call in flight", async () => {
  const prepared = async (): Promise<Store> => {
    const store = memoryStore({ hash: sha256 });
    const kept = { ...store, close: async () => undefined };
    const runtime = await openRuntime({ store: kept, unknownPrice: "ignore" });
    await clerk([], [], "spawnChild()").invoke("Work.", { sessionId, runtime });
    await runtime.close();
    return kept;
  };
  const calmStore = await prepared();
  const calmCalls: string[] = [];
  const writes = await spawnAndDie(calmStore, clerk(calmCalls, [], "spawnChild()"), {
    at: Infinity,
    when: "after",
  });
  const expected = await seen(calmStore);
  expect(expected.runs).toEqual(["child completed", "invocation completed"]);
  expect(calmCalls).toHaveLength(2);
  for (let at = 1; at <= writes; at++)
    for (const when of ["before", "after"] as const) {
      const store = await prepared();
      const [calls, notes]: [string[], string[]] = [[], []];
      const agent = clerk(calls, notes, "spawnChild()");
      await spawnAndDie(store, agent, { at, when });
      await store.leases.dismiss("one");
      const runtime = await openRuntime({ store, unknownPrice: "ignore" });
      const run = await agent.spawnChild({ sessionId, prompt, tools: ["note"], runId: "run_child", runtime });
      expect(await run.result()).toMatchObject({ status: "completed", output: "Learnt." });
      expect({ at, when, ...(await seen(store)) }).toEqual({ at, when, ...expected });
      expect(calls.length - new Set(calls).size).toBeLessThanOrEqual(1);
      expect([new Set(calls).size, new Set(notes).size]).toEqual([2, 1]);
      await runtime.close();
    }
});
