import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type Event } from "../../../src/entries/index.ts";
import {
  messageText,
  type ChatMessage,
  type RunContext,
  type RunHandle,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { actorCritic } from "../../../src/agents/architectures/index.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { settle } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const sessionId = "talk";
const busy = (): ScriptStep => ({ error: Object.assign(new Error("the servers are busy"), { status: 503 }) });
const retry = { maxRetries: 2, baseDelayMs: 0 };

const lineOf = (message: ChatMessage): string => `${message.role}: ${messageText(message)}`;

async function pathOf({ sessions }: Runtime): Promise<readonly string[]> {
  const path = await sessions.path(sessionId);
  return path.flatMap((entry) => (entry.type === "message" ? [lineOf(entry.message)] : []));
}

async function eventsOf(run: RunHandle): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  return events;
}

describe.each(twoStores)("an agent with a session (store: %s)", (_name, prepare) => {
  const open = async (clock?: FakeClock) =>
    openRuntime({ store: await (await prepare())(), unknownPrice: "ignore", ...(clock && { clock }) });

  test("each invocation of an agent with a session stores one pair, sees all earlier pairs and leaves the agent idle", async () => {
    const runtime = await open();
    const model = scriptedModel(["one", "two", "three"]);
    const agent = new Agent({ name: "scout", model, instructions: "Be brief." });
    for (const input of ["a", "b", "c"]) {
      expect((await agent.invoke(input, { runtime, sessionId })).status).toBe("completed");
      expect(await agent.phase(sessionId, { runtime })).toBe("idle");
    }
    const said = ["user: a", "assistant: one", "user: b", "assistant: two", "user: c"];
    expect(model.calls.map(({ messages }) => messages.length)).toEqual([2, 4, 6]);
    expect(model.calls[2]?.messages.map(lineOf)).toEqual(["system: Be brief.", ...said]);
    expect(await pathOf(runtime)).toEqual([...said, "assistant: three"]);
    await runtime.close();
  });

  test("a retried model call leaves exactly one pair in the session, and the failed attempts only in the log", async () => {
    const runtime = await open();
    const agent = new Agent({ name: "scout", model: scriptedModel([busy(), busy(), "one"]), retry });
    const run = await agent.submit("a", { runtime, sessionId });
    expect((await run.result()).status).toBe("completed");
    expect(await pathOf(runtime)).toEqual(["user: a", "assistant: one"]);
    const retries = (await eventsOf(run)).flatMap((each) => (each.type === "retry_start" ? [each.data] : []));
    expect(retries.map(({ attempt, message }) => [attempt, message])).toEqual([
      [1, "scripted/script failed with HTTP 503: the servers are busy"],
      [2, "scripted/script failed with HTTP 503: the servers are busy"],
    ]);
    await runtime.close();
  });

  test("O2: exhausted retries leave the session unchanged, and the result and the log contain the provider's error", async () => {
    const runtime = await open();
    const model = scriptedModel(["one", busy(), busy(), busy(), "two"]);
    const agent = new Agent({ name: "scout", model, retry });
    await agent.invoke("a", { runtime, sessionId });
    const run = await agent.submit("b", { runtime, sessionId });
    const message = "scripted/script failed with HTTP 503: the servers are busy";
    expect(await run.result()).toMatchObject({
      status: "failed",
      error: { code: "model_overloaded", message },
    });
    const failed = (await eventsOf(run)).find(({ type }) => type === "agent_error");
    expect(JSON.stringify(failed?.data)).toContain(message);
    expect(await pathOf(runtime)).toEqual(["user: a", "assistant: one"]);
    await agent.invoke("c", { runtime, sessionId });
    expect(model.calls.at(-1)?.messages.map(lineOf)).toEqual(["user: a", "assistant: one", "user: c"]);
    await runtime.close();
  });

  test("O8: a cancel during the delay of a retry ends the run without a further attempt and without agent_error", async () => {
    const clock = new FakeClock();
    const runtime = await open(clock);
    const model = scriptedModel([busy(), "late"]);
    const agent = new Agent({ name: "scout", model, retry: { baseDelayMs: 60_000 } });
    const run = await agent.submit("a", { runtime, sessionId });
    for await (const event of run.events()) if (event.type === "retry_start") break;
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    await clock.advance(120_000);
    await settle();
    expect(model.calls).toHaveLength(1);
    expect((await eventsOf(run)).map(({ type }) => type)).not.toContain("agent_error");
    expect(await pathOf(runtime)).toEqual(["user: a", "assistant: [interrupted: cancelled]"]);
    await runtime.close();
  });

  test("fifteen steering messages that arrive between turns are each read once, in order", async () => {
    const runtime = await open();
    let handle: RunHandle | undefined;
    let count = 0;
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" } as const,
      execute: async () => {
        await handle?.steer(`steer ${++count}`);
        return "rain";
      },
    });
    const looks: ScriptStep = { toolCalls: [{ name: "look", input: {} }] };
    const model = scriptedModel([...Array.from({ length: 15 }, () => looks), "done"]);
    const started = Promise.withResolvers<string>();
    const agent = new Agent({
      name: "scout",
      model,
      tools: [look],
      instructions: () => started.promise,
    });
    handle = await agent.submit("a", { runtime, sessionId });
    started.resolve("Be brief.");
    expect((await handle.result()).output).toBe("done");
    const steered = (await pathOf(runtime)).filter((line) => line.startsWith("user: steer"));
    expect(steered).toEqual(Array.from({ length: 15 }, (_, index) => `user: steer ${index + 1}`));
    await runtime.close();
  });

  test("S1: the session of a child that is stopped by the cancel of its parent ends with the interruption marker", async () => {
    const store = await (await prepare())();
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const held = tool({
      name: "held",
      description: "Asks first",
      inputSchema: { type: "object" } as const,
      needsApproval: true,
      execute: () => "done",
    });
    const asks = scriptedModel([{ toolCalls: [{ name: "held", input: {} }] }]);
    const actor = new Agent({ name: "actor", model: asks, tools: [held] });
    const critic = new Agent({ name: "critic", model: scriptedModel([]) });
    const team = new Agent({ name: "team", architecture: actorCritic({ actor, critic, remember: true }) });
    const run = await team.submit("a", { runtime, sessionId });
    for await (const event of run.events()) if (event.type === "approval_request") break;
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    const { sessions } = await store.sessions.list();
    const ends = await Promise.all(
      sessions.map(async (each) => {
        const entry = (await store.sessions.read(each.sessionId)).at(-1)?.entry;
        return entry?.type === "message" ? lineOf(entry.message) : undefined;
      }),
    );
    expect(ends).toEqual(["assistant: [interrupted: cancelled]", "assistant: [interrupted: cancelled]"]);
    await runtime.close();
  });

  test("a branch that loses a race interrupts neither its task nor the conversation of the session", async () => {
    const runtime = await open();
    const race = tool({
      name: "race",
      description: "Races",
      inputSchema: { type: "object" } as const,
      execute: async (_input, { ctx }) => {
        const slow = (inside: RunContext) => inside.waitForSignal("never");
        const { winner } = await ctx.race<unknown>({ slow, fast: (inside) => inside.now() });
        return winner;
      },
    });
    const model = scriptedModel([{ toolCalls: [{ name: "race", input: {} }] }, "done"]);
    const agent = new Agent({ name: "scout", model, tools: [race] });
    expect(await agent.invoke("a", { runtime, sessionId })).toMatchObject({
      status: "completed",
      output: "done",
    });
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain('"fast"');
    expect(await pathOf(runtime)).toEqual(["user: a", "assistant: ", "tool: ", "assistant: done"]);
    await runtime.close();
  });
});
