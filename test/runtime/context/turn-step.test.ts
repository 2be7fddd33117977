import { describe, expect, it } from "vitest";
import {
  formatRunId,
  HistoryRetention,
  messageText,
  userMessage,
  type HostedAgent,
  type ChatMessage,
  type RunContext,
  type SessionId,
  type Store,
  type StepRecord,
  type SubmitOptions,
  type RunId,
  type Turn,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { agent, setUp, settle, typesOf } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const spec = (name: string) => ({ name, description: name, inputSchema: { type: "object" } });
const sessionId = "trip" as SessionId;

async function say(
  store: Store,
  worker: HostedAgent,
  id: string,
  parentId: string | null,
  runId: RunId | null = null,
): Promise<void> {
  const entry = {
    type: "message",
    id,
    parentId,
    at: 0,
    runId,
    taskId: null,
    message: userMessage(id),
  } as const;
  await store.sessions.apply([
    { type: "append", sessionId, agentId: worker.id, entry, visibility: "visible" },
  ]);
}

const other = formatRunId("other");

async function stepsOf(store: Store, runId: RunId): Promise<StepRecord[]> {
  const steps: StepRecord[] = [];
  for await (const commit of store.journal.read(runId)) steps.push(...(commit.steps ?? []));
  return steps;
}

function shown({ input, instructions, tools, leafId, history }: Turn) {
  const said = [...history].map((message: ChatMessage) => messageText(message));
  return { input, instructions, tools: tools.map(({ name }) => name), leafId, said };
}

describe("J4: the step `turn`", () => {
  it("J4: the step `turn` freezes input, instructions, tools and current entry, and a replay uses them after changes", async () => {
    const { runtime, clock, store, events } = await setUp({ suspendAfterMs: 100 });
    let prompt = "Be brief.";
    const tools = [spec("look")];
    let plans = 0;
    const turns: Turn[] = [];
    const worker = agent("worker", async (ctx) => {
      const turn = await ctx.turn(async ({ input, path }) => {
        plans++;
        return { input: [input, path.length], instructions: prompt, tools: [...tools] };
      });
      turns.push(turn);
      await ctx.waitForSignal("go");
    });
    await say(store, worker, "a", null);
    await say(store, worker, "b", "a");
    const run = await runtime.submit(worker, "hi", { sessionId });
    await settle();
    await clock.advance(101);
    prompt = "Be long.";
    tools.push(spec("touch"));
    await say(store, worker, "c", "b");
    await run.signal("go");
    await run.result();
    const frozen = {
      input: ["hi", 2],
      instructions: "Be brief.",
      tools: ["look"],
      leafId: "b",
      said: ["a", "b"],
    };
    expect(turns.map(shown)).toEqual([frozen, frozen]);
    expect(plans).toBe(1);
    const told = typesOf(await events(run.runId)).filter((type) =>
      ["input", "before_agent_start", "context"].includes(type),
    );
    expect(told).toEqual(["input", "before_agent_start", "context"]);
  });

  it("the step `turn` stores contents that several tasks of a run share once, also on replay", async () => {
    const { runtime, store, clock } = await setUp({ suspendAfterMs: 100 });
    const seen: string[] = [];
    const start = async (ctx: RunContext): Promise<void> => {
      const { instructions } = await ctx.turn(async () => ({
        input: null,
        instructions: "A long prompt.",
        tools: [],
      }));
      seen.push(instructions);
    };
    const child = agent("child", async (ctx) => {
      await start(ctx);
      await ctx.waitForSignal("go");
    });
    const parent = agent(
      "parent",
      async (ctx) => {
        await start(ctx);
        const spawned = await ctx.spawn(child.id, null);
        if (spawned.kind === "spawned") await ctx.join(spawned.handle);
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null);
    await settle();
    await clock.advance(101);
    await run.signal("go", null, "t1");
    await run.result();
    expect(seen).toEqual(Array(4).fill("A long prompt."));
    const held = (await stepsOf(store, run.runId))
      .filter(({ kind }) => kind === "turn")
      .map(({ outcome }) => JSON.stringify(outcome).includes("A long prompt."));
    expect(held).toEqual([true, false]);
  });

  it("the step `turn` stores a history that differs from the session path", async () => {
    const { runtime, clock, store } = await setUp({ suspendAfterMs: 100 });
    const turns: Turn[] = [];
    const worker = agent("worker", async (ctx) => {
      turns.push(
        await ctx.turn(async ({ input, path }) => ({
          input,
          instructions: "",
          tools: [],
          history: [userMessage(`${path.length} things were said`)],
        })),
      );
      await ctx.waitForSignal("go");
    });
    await say(store, worker, "a", null);
    const run = await runtime.submit(worker, null, { sessionId });
    await settle();
    await clock.advance(101);
    await run.signal("go");
    await run.result();
    expect(turns.map((turn) => shown(turn).said)).toEqual([["1 things were said"], ["1 things were said"]]);
  });

  it("the step `turn` fails with journal_mismatch when the history is no longer that with which it began", async () => {
    const { runtime, clock, store } = await setUp({ suspendAfterMs: 100 });
    const worker = agent("worker", async (ctx) => {
      await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      await ctx.waitForSignal("go");
    });
    await say(store, worker, "a", null, other);
    const run = await runtime.submit(worker, null, { sessionId });
    await settle();
    await clock.advance(101);
    await store.sessions.apply([{ type: "remove", sessionId, runId: other }]);
    await run.signal("go");
    const { status, error: failure } = await run.result();
    expect(status).toBe("failed");
    expect(failure).toMatchObject({
      code: "not_found",
      message: expect.stringContaining("entry a of session trip"),
    });
  });

  it("the step `turn` detects changed session entries before any step depends on them", async () => {
    const { runtime, clock, store } = await setUp({ suspendAfterMs: 100 });
    const worker = agent("worker", async (ctx) => {
      await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      await ctx.waitForSignal("go");
    });
    await say(store, worker, "a", null, other);
    const run = await runtime.submit(worker, null, { sessionId });
    await settle();
    await clock.advance(101);
    await store.sessions.apply([{ type: "remove", sessionId, runId: other }]);
    const message = userMessage("something else");
    const entry = {
      type: "message",
      id: "a",
      parentId: null,
      at: 0,
      runId: null,
      taskId: null,
      message,
    } as const;
    await store.sessions.apply([
      { type: "append", sessionId, agentId: worker.id, entry, visibility: "visible" },
    ]);
    await run.signal("go");
    expect((await run.result()).error).toMatchObject({
      code: "journal_mismatch",
      message: expect.stringContaining("step 0 does not match its record in arguments of turn"),
    });
  });

  it("the step `turn` gives a child no history of others, and the child's own history only if it is kept", async () => {
    const { runtime, store } = await setUp();
    const child = agent("child", async (ctx) => {
      const { sessionId: session, leafId } = await ctx.turn(async ({ input }) => ({
        input,
        instructions: "",
        tools: [],
      }));
      return [session, leafId];
    });
    const parent = agent(
      "parent",
      async (ctx) => {
        const seen = [];
        for (const retention of [HistoryRetention.RUN, HistoryRetention.PERMANENT]) {
          const spawned = await ctx.spawn(child.id, null, { retention });
          if (spawned.kind === "spawned") seen.push((await ctx.join(spawned.handle)).output);
        }
        return seen;
      },
      { subAgents: [child] },
    );
    await say(store, parent, "a", null);
    const run = await runtime.submit(parent, null, { sessionId });
    expect((await run.result()).output).toEqual([
      [null, null],
      [expect.stringMatching(/^trip#[\w-]{22}$/u), null],
    ]);
  });

  it("the step `turn` gives a child with a history what it said earlier in the same run", async () => {
    const { runtime } = await setUp();
    const child = agent("child", async (ctx) => {
      const turn = await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      const entry = {
        type: "message",
        id: `e-${ctx.taskId}`,
        parentId: turn.leafId,
        at: turn.at,
        runId: ctx.facts.runId,
        taskId: ctx.taskId,
        message: userMessage(`said by ${ctx.taskId}`),
      } as const;
      const to = {
        sessionId: turn.sessionId as SessionId,
        agentId: ctx.agentId,
        visibility: "visible",
      } as const;
      ctx.report({ sessions: [{ type: "append", entry, ...to }] });
      return [...turn.history].map(messageText);
    });
    const parent = agent(
      "parent",
      async (ctx) => {
        const seen = [];
        for (let time = 0; time < 3; time++) {
          const spawned = await ctx.spawn(child.id, null, { retention: HistoryRetention.PERMANENT });
          if (spawned.kind === "spawned") seen.push((await ctx.join(spawned.handle)).output);
        }
        return seen;
      },
      { subAgents: [child] },
    );
    expect((await (await runtime.submit(parent, null)).result()).output).toEqual([
      [],
      ["said by t1"],
      ["said by t1", "said by t2"],
    ]);
  });

  it("the step `turn` separates the histories of a child by parent, role, user and tenant", async () => {
    const { runtime } = await setUp();
    const child = agent("child", async (ctx) => {
      const { sessionId: session } = await ctx.turn(async ({ input }) => ({
        input,
        instructions: "",
        tools: [],
      }));
      return session;
    });
    const parent = agent(
      "parent",
      async (ctx) => {
        const seen = [];
        for (const role of ["reader", "writer"]) {
          const spawned = await ctx.spawn(child.id, null, { retention: HistoryRetention.PERMANENT, role });
          if (spawned.kind === "spawned") seen.push((await ctx.join(spawned.handle)).output);
        }
        return seen;
      },
      { subAgents: [child] },
    );
    const sessionsOf = async (whose: SubmitOptions = {}) =>
      (await (await runtime.submit(parent, null, { sessionId, ...whose })).result()).output;
    const callers: readonly SubmitOptions[] = [
      {},
      { userId: "ada lovelace" },
      { userId: "null" },
      { tenantId: "ada lovelace" },
      { userId: "ada lovelace", tenantId: "north" },
      { userId: "north", tenantId: "ada lovelace" },
    ];
    const seen = [];
    for (const whose of callers) seen.push(await sessionsOf(whose));
    expect(new Set(seen.flat()).size).toBe(12);
    for (const [index, whose] of callers.entries()) expect(await sessionsOf(whose)).toEqual(seen[index]);
  });

  it("the step `turn` supports a child's history in a session whose id has the maximum length", async () => {
    const { runtime } = await setUp();
    const child = agent("c".repeat(128), async (ctx) => {
      const turn = await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
      return turn.sessionId;
    });
    const parent = agent(
      "p".repeat(128),
      async (ctx) => {
        const options = { retention: HistoryRetention.PERMANENT, role: "r".repeat(300) };
        const spawned = await ctx.spawn(child.id, null, options);
        return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : null;
      },
      { subAgents: [child] },
    );
    const long = "s".repeat(256);
    const run = await runtime.submit(parent, null, { sessionId: long, userId: "ada", tenantId: "north" });
    expect((await run.result()).output).toMatch(new RegExp(`^${long}#`, "u"));
  });
});

it.each(twoStores)(
  "%s: a conversation continues from its last message, whatever the ids of its runs are (N2)",
  async (_name, prepare) => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open() });
    const echo = agent(
      "echo",
      async (ctx) => {
        const turn = await ctx.turn(async ({ input }) => ({ input, instructions: "", tools: [] }));
        return [...turn.history].map(messageText);
      },
      { messageOf: (input) => userMessage(input as string) },
    );
    const heard = [];
    for (const name of ["d", "c", "e", "b", "a"]) {
      const run = await runtime.submit(echo, name, { sessionId, runId: formatRunId(name) });
      heard.push((await run.result()).output);
    }
    expect(heard).toEqual([[], ["d"], ["d", "c"], ["d", "c", "e"], ["d", "c", "e", "b"]]);
    await runtime.close();
  },
);
