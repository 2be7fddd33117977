import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  tool,
  type AgentOptions,
} from "../../../../src/entries/index.ts";
import { assistantMessage, userMessage, type ChatMessage, type Store } from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";

removeStoresAfterEach();

const noInput = { type: "object", properties: {} } as const;
const look = tool({ name: "look", description: "Looks", inputSchema: noInput, execute: () => "rain" });
const write = tool({ name: "write", description: "Writes", inputSchema: noInput, execute: () => "written" });

const asks = (name: string, callId: string): ScriptStep => ({ toolCalls: [{ name, input: {}, callId }] });
const prompt = "What did you learn?";

function scout(script: readonly ScriptStep[], options: Partial<AgentOptions> = {}) {
  const model = scriptedModel(script);
  const agent = new Agent({
    name: "scout",
    model,
    instructions: "Be brief.",
    tools: [look, write],
    ...options,
  });
  return { model, agent };
}

async function openOn(open: () => Promise<Store>) {
  return openRuntime({ store: await open(), unknownPrice: "ignore" });
}

describe.each(twoStores)("agent.spawnChild() on the %s store", (_name, prepare) => {
  test("spawnChild() sends the request and answer of the session's last closed invocation and the prompt, also in another process", async () => {
    const open = await prepare();
    const first = await openOn(open);
    const before = scout([asks("look", "c1"), "It rains."]);
    const { sessionId } = await before.agent.invoke("Where?", {
      runtime: first,
      settings: { temperature: 0.5 },
    });
    await first.close();

    const runtime = await openOn(open);
    const { agent, model } = scout([asks("write", "c2"), "Rain."], { instructions: "Another prompt." });
    const run = await agent.spawnChild({ sessionId, tools: ["look"], prompt, runtime });
    expect(await run.result()).toMatchObject({ status: "completed", output: "Rain." });
    const parent = before.model.calls.at(-1);
    expect(model.calls[0]).toEqual({
      ...parent,
      messages: [...(parent?.messages ?? []), assistantMessage("It rains."), userMessage(prompt)],
    });
    expect(model.calls[1]?.messages.at(-1)).toMatchObject({
      content: [{ callId: "c2", isError: true, output: { text: expect.stringContaining("may call: look") } }],
    });
    await runtime.close();
  });

  test("spawnChild() leaves its session idle, without new entries and without the child's messages", async () => {
    const open = await prepare();
    const runtime = await openOn(open);
    const store = await open();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const wait = tool({
      name: "wait",
      description: "Waits",
      inputSchema: noInput,
      execute: async () => {
        await held;
        return "waited";
      },
    });
    const { agent } = scout(["It rains.", asks("wait", "c1"), "Secret.", "Again."], { tools: [wait] });
    const { sessionId } = await agent.invoke("Where?", { runtime });
    const entries = await runtime.sessions.path(sessionId);
    const child = await agent.spawnChild({ sessionId, prompt, runtime });
    expect(await agent.phase(sessionId, { runtime })).toBe("idle");
    release();
    expect(await child.result()).toMatchObject({ status: "completed", output: "Secret." });
    expect(await runtime.sessions.path(sessionId)).toEqual(entries);
    const { runs } = await runtime.list({ kind: "child" });
    expect(runs).toMatchObject([{ runId: child.runId, kind: "child", status: "completed" }]);
    const stored: unknown[] = [];
    for await (const commit of store.journal.read(child.runId)) stored.push(commit);
    expect(JSON.stringify(stored)).not.toMatch(/What did you learn|Be brief|waited/);
    expect(await agent.invoke("And now?", { sessionId, runtime })).toMatchObject({ output: "Again." });
    await runtime.close();
    await store.close();
  });

  test("spawnChild() starts from the shortened transcript if the invocation was compacted", async () => {
    const runtime = await openOn(await prepare());
    const keepLast = (messages: readonly ChatMessage[]): readonly ChatMessage[] =>
      messages.length > 4 ? [userMessage("[summary]"), ...messages.slice(-2)] : messages;
    const { agent, model } = scout(
      [asks("look", "c1"), asks("look", "c2"), asks("look", "c3"), "Rain.", "Learnt."],
      {
        compaction: { strategy: () => ({ compact: async (messages) => keepLast(messages) }) },
      },
    );
    const { sessionId } = await agent.invoke("Where?", { runtime });
    const sent = model.calls.at(-1)?.messages ?? [];
    expect(sent[1]).toEqual(userMessage("[summary]"));
    await (await agent.spawnChild({ sessionId, prompt, runtime })).result();
    expect(model.calls.at(-1)?.messages).toEqual([...sent, assistantMessage("Rain."), userMessage(prompt)]);
    await runtime.close();
  });

  test("S1: agent.spawnChild() sends the results of a stopped invocation, in which open calls are not executed", async () => {
    const runtime = await openRuntime({
      store: await (await prepare())(),
      unknownPrice: "ignore",
      stopGraceMs: 10,
    });
    const never = new Promise<string>(() => undefined);
    const stuck = tool({ name: "look", description: "Looks", inputSchema: noInput, execute: () => never });
    const { agent, model } = scout([asks("look", "c1"), "Learnt."], { tools: [stuck] });
    const parent = await agent.submit("Where?", { runtime });
    for await (const { type } of parent.events()) if (type === "tool_execution_start") break;
    await parent.cancel("enough");
    await parent.result();
    await (await agent.spawnChild({ sessionId: parent.sessionId, prompt, runtime })).result();
    const [sent, child] = model.calls;
    expect(child?.messages.slice(0, sent?.messages.length)).toEqual(sent?.messages);
    expect(child?.messages.slice(sent?.messages.length)).toMatchObject([
      { role: "assistant", content: [{ callId: "c1" }] },
      {
        role: "tool",
        content: [{ callId: "c1", output: { text: expect.stringMatching(/^\[not executed: /u) } }],
      },
      { role: "assistant", content: [{ text: "[interrupted: cancelled]" }] },
      { role: "user", content: [{ text: prompt }] },
    ]);
    await runtime.close();
  });

  test("spawnChild() starts from the last request to a model if an extension has handled the input since", async () => {
    const runtime = await openOn(await prepare());
    const { agent, model } = scout(["It rains.", "Rain."], {
      extensions: [
        {
          name: "help",
          setup: (api) =>
            api.on("input", ({ text }) =>
              text === "/help" ? { action: "handled", reply: "Ask." } : undefined,
            ),
        },
      ],
    });
    const { sessionId } = await agent.invoke("Where?", { runtime });
    await agent.invoke("/help", { runtime, sessionId });
    expect(await (await agent.spawnChild({ sessionId, prompt, runtime })).result()).toMatchObject({
      output: "Rain.",
    });
    const parent = model.calls[0];
    expect(model.calls[1]).toEqual({
      ...parent,
      messages: [...(parent?.messages ?? []), assistantMessage("It rains."), userMessage(prompt)],
    });
    const helped = await agent.invoke("/help", { runtime });
    await expect(agent.spawnChild({ sessionId: helped.sessionId, prompt, runtime })).rejects.toMatchObject({
      code: "not_found",
    });
    await runtime.close();
  });

  test("spawnChild() refuses an unknown tool with the valid names, and a session without a closed invocation", async () => {
    const runtime = await openOn(await prepare());
    const { agent } = scout(["It rains."]);
    const { sessionId } = await agent.invoke("Where?", { runtime });
    await expect(agent.spawnChild({ sessionId, tools: ["lok"], prompt, runtime })).rejects.toMatchObject({
      code: "invalid_argument",
      message:
        'invalid tools of spawnChild(): there is no tool "lok"; expected some of look, write; use "look"',
    });
    for (const options of [{ prompt: "" }, { prompt, sessionid: "x" }, { prompt, tools: "look" }])
      await expect(agent.spawnChild({ sessionId, runtime, ...options } as never)).rejects.toMatchObject({
        code: "invalid_argument",
      });
    await expect(agent.spawnChild({ sessionId: "other", prompt, runtime })).rejects.toMatchObject({
      code: "not_found",
    });
    const stranger = scout([], {}).agent.with({ name: "stranger" });
    await expect(stranger.spawnChild({ sessionId, prompt, runtime })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("no closed invocation of stranger"),
    });
    await runtime.close();
  });

  test("spawnChild() does not find the session of another tenant, and its run belongs to the user of the invocation", async () => {
    const runtime = await openOn(await prepare());
    const { agent } = scout(["It rains.", "Learnt."]);
    const ann = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const { sessionId } = await agent.invoke("Where?", { runtime: ann });
    const other = runtime.forTenant({ tenantId: "other" });
    await expect(agent.spawnChild({ sessionId, prompt, runtime: other })).rejects.toMatchObject({
      code: "not_found",
    });
    const run = await agent.spawnChild({ sessionId, prompt, runtime });
    await run.result();
    expect((await ann.list({ kind: "child" })).runs).toMatchObject([{ runId: run.runId, userId: "ann" }]);
    await runtime.close();
  });
});

test("a child of an invocation with a history of 1 MB adds less than 16 KB to the SQLite file", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-child-"));
  const path = join(folder, "store.db");
  const sizeOf = async (): Promise<number> => {
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
    return statSync(path).size;
  };
  const history = Array.from({ length: 1_000 }, (_, index) =>
    index % 2 === 0
      ? userMessage(`${index} ${"q".repeat(1_000)}`)
      : assistantMessage(`${index} ${"a".repeat(1_000)}`),
  );
  const delegate = tool({
    name: "delegate",
    description: "Delegates",
    inputSchema: noInput,
    execute: async (_input, { ctx }) => {
      const spawned = await ctx.child({ prompt });
      return spawned.kind === "refused" ? spawned.reason : (await ctx.join(spawned.handle)).status;
    },
  });
  const script = [
    "Ok.",
    "Learnt.",
    asks("delegate", "c1"),
    "Learnt.",
    "Done.",
    asks("delegate", "c2"),
    "Learnt.",
    "Done.",
  ];
  const { agent, model } = scout(script, { tools: [delegate] });
  const runtime = await openRuntime({ store: `sqlite:${path}`, unknownPrice: "ignore" });
  const { sessionId } = await agent.invoke([...history, userMessage("Go.")], { runtime });
  const before = await sizeOf();
  await (await agent.spawnChild({ sessionId, prompt, runtime })).result();
  const outside = (await sizeOf()) - before;
  expect(model.calls.at(-1)?.messages).toHaveLength(1_004);
  await agent.invoke("Delegate.", { sessionId, runtime });
  const inside = (await sizeOf()) - before - outside;
  expect(model.calls.at(-2)?.messages).toHaveLength(1_007);
  await runtime.close();
  await rm(folder, { recursive: true, force: true });
  expect({ outside, inside }).toEqual({
    outside: expect.toSatisfy((size: number) => size < 16_384),
    inside: expect.toSatisfy((size: number) => size < 16_384),
  });
});

test("spawnChild() without a runtime uses the default runtime", async () => {
  const { agent } = scout(["It rains.", "Learnt."]);
  const { sessionId } = await agent.invoke("Where?");
  expect(await (await agent.spawnChild({ sessionId, prompt })).result()).toMatchObject({ output: "Learnt." });
});

test("a child that spawnChild() starts sends the prompt cache key of its parent", async () => {
  const keys: (string | undefined)[] = [];
  const inner = scriptedModel(["It rains.", "Learnt."]);
  const model = {
    provider: "scripted",
    modelId: "script",
    generate: (...[request, options]: Parameters<typeof inner.generate>) => {
      keys.push(options?.promptCacheKey);
      return inner.generate(request, options);
    },
    stream: inner.stream.bind(inner),
  };
  const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
  const agent = new Agent({ name: "scout", model });
  const { sessionId } = await agent.invoke("Where?", { runtime });
  await (await agent.spawnChild({ sessionId, prompt, runtime })).result();
  expect(keys).toEqual([keys[0], keys[0]]);
  expect(keys[0]).toHaveLength(32);
  await runtime.close();
});
