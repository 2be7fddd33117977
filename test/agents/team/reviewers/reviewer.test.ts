import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { Agent, openRuntime, reviewer, tool, type AgentOptions } from "../../../../src/entries/index.ts";
import type { Runtime, Store } from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";

removeStoresAfterEach();

const noInput = { type: "object", properties: {} } as const;
const look = tool({ name: "look", description: "Looks", inputSchema: noInput, execute: () => "rain" });
const note = tool({ name: "note", description: "Notes", inputSchema: noInput, execute: () => "noted" });
const prompt = "Note what was learnt.";
const looks: ScriptStep = { toolCalls: [{ name: "look", input: {} }] };
const notes: ScriptStep = { toolCalls: [{ name: "note", input: {} }] };

function scout(script: readonly ScriptStep[], options: Partial<AgentOptions> = {}) {
  const model = scriptedModel(script);
  const reviewers = [reviewer({ every: 2, tools: ["note"], prompt, budget: { maxTurns: 2 } })];
  const agent = new Agent({ name: "scout", model, tools: [look, note], reviewers, ...options });
  return { agent, model };
}

async function openOn(open: () => Promise<Store>): Promise<Runtime> {
  return openRuntime({ store: await open(), unknownPrice: "ignore" });
}

/** Waits for the reviews that have started and returns their runs, oldest first. */
async function reviewsOf(runtime: Runtime) {
  const { runs } = await runtime.list({ kind: "child" });
  for (const { runId } of runs) await (await runtime.find(runId))?.result();
  return (await runtime.list({ kind: "child" })).runs.toReversed();
}

describe.each(twoStores)("a reviewer on the %s store", (_name, prepare) => {
  test("a reviewer starts after the invocation in which the session has made its tool calls, also in another process", async () => {
    const open = await prepare();
    const first = await openOn(open);
    const { sessionId } = await scout([looks, "Rain."]).agent.invoke("Where?", { runtime: first });
    expect(await reviewsOf(first)).toEqual([]);
    await first.close();

    const runtime = await openOn(open);
    const { agent, model } = scout([looks, "Rain again.", looks, notes, "Reviewed.", "Bye."]);
    expect(await agent.invoke("And now?", { sessionId, runtime })).toMatchObject({ output: "Rain again." });
    const [review, ...more] = await reviewsOf(runtime);
    expect(more).toEqual([]);
    expect(review).toMatchObject({
      kind: "child",
      status: "budget_exhausted",
      turns: 2,
    });
    const [, parent, child, refused] = model.calls;
    expect(child?.messages.slice(0, -2)).toEqual(parent?.messages);
    expect(child?.messages.at(-2)).toMatchObject({ role: "assistant", content: [{ text: "Rain again." }] });
    expect(child?.messages.at(-1)).toMatchObject({ role: "user", content: [{ text: prompt }] });
    expect(refused?.messages.at(-1)).toMatchObject({
      content: [
        { toolName: "look", isError: true, output: { text: expect.stringContaining("may call: note") } },
      ],
    });
    await runtime.close();
  });

  test("a reviewer counts the tool calls of each session from 0 again after a review", async () => {
    const runtime = await openOn(await prepare());
    const { agent } = scout([looks, looks, "Rain.", "Reviewed.", looks, "Rain.", looks, "Rain."]);
    const { sessionId } = await agent.invoke("Where?", { runtime });
    expect(await reviewsOf(runtime)).toHaveLength(1);
    await agent.invoke("And now?", { sessionId, runtime });
    await agent.invoke("Another session", { runtime });
    expect(await reviewsOf(runtime)).toHaveLength(1);
    await runtime.close();
  });

  test("a reviewer starts no second review of a session while one is unfinished", async () => {
    const runtime = await openOn(await prepare());
    let release = (): void => undefined;
    const held = new Promise<string>((resolve) => (release = () => resolve("noted")));
    const slow = tool({ name: "note", description: "Notes", inputSchema: noInput, execute: () => held });
    const script: ScriptStep[] = [
      looks,
      looks,
      "Rain.",
      ({ messages }) => (JSON.stringify(messages.at(-1)).includes(prompt) ? notes : looks),
      ({ messages }) => (JSON.stringify(messages.at(-1)).includes(prompt) ? notes : looks),
      looks,
      "Done.",
      "Done.",
      "Done.",
    ];
    const { agent } = scout(script, { tools: [look, slow] });
    const { sessionId } = await agent.invoke("Where?", { runtime });
    await agent.invoke("And now?", { sessionId, runtime });
    expect((await runtime.list({ kind: "child" })).runs).toMatchObject([{ endedAt: null }]);
    release();
    expect(await reviewsOf(runtime)).toHaveLength(1);
    await runtime.close();
  });

  test("a reviewer clears the cached system prompt only after a review that has executed a tool", async () => {
    const runtime = await openOn(await prepare());
    let builds = 0;
    let cached: string | undefined;
    const instructions = {
      async build() {
        const fromCache = cached !== undefined;
        cached ??= `Prompt ${++builds}.`;
        return { text: cached, fromCache };
      },
      reload: async () => {
        cached = undefined;
      },
    };
    const { agent } = scout(
      [looks, looks, "Rain.", "Nothing new.", looks, looks, "Rain.", notes, "Noted.", "Bye."],
      {
        instructions,
        reviewers: [reviewer({ every: 2, tools: ["note"], prompt })],
      },
    );
    const { sessionId } = await agent.invoke("Where?", { runtime });
    await reviewsOf(runtime);
    await agent.invoke("And now?", { sessionId, runtime });
    expect(builds).toBe(1);
    await reviewsOf(runtime);
    await agent.invoke("Bye.", { sessionId, runtime });
    expect(builds).toBe(2);
    await runtime.close();
  });

  test("a reviewer does not start after an invocation that was cancelled, nor without a kept history", async () => {
    const runtime = await openOn(await prepare());
    const abort = new AbortController();
    const stop = tool({
      name: "look",
      description: "Looks",
      inputSchema: noInput,
      execute: async (_input, { signal }) => {
        abort.abort();
        if (!signal.aborted) await once(signal, "abort");
        return "rain";
      },
    });
    const every = { reviewers: [reviewer({ every: 1, tools: ["note"], prompt })] };
    const stopped = scout([looks], { ...every, tools: [stop, note] }).agent;
    expect(await stopped.invoke("Where?", { runtime, signal: abort.signal })).toMatchObject({
      status: "cancelled",
    });
    const { agent } = scout([looks, "Rain."], { ...every, key: "other" });
    await agent.invoke("Where?", { runtime, retention: "none" });
    expect(await reviewsOf(runtime)).toEqual([]);
    await runtime.close();
  });
});

test("a reviewer may call a tool that an extension registers", async () => {
  const { agent, model } = scout([looks, "Rain.", notes, "Reviewed."], {
    tools: [look],
    extensions: [{ name: "notes", setup: (api) => api.registerTool(note) }],
    reviewers: [reviewer({ every: 1, tools: ["note"], prompt })],
  });
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  await agent.invoke("Where?", { runtime });
  expect(await reviewsOf(runtime)).toMatchObject([{ status: "completed" }]);
  expect(model.calls.at(-1)?.messages.at(-1)).toMatchObject({
    content: [{ toolName: "note", isError: false, output: { text: "noted" } }],
  });
});

test("reviewer() refuses invalid options, and an agent refuses unknown tools and equal names of reviewers", () => {
  const valid = { every: 1, tools: ["note"], prompt };
  for (const change of [
    { every: Number.NaN },
    { every: 0 },
    { tools: "note" },
    { tools: [1] },
    { prompt: " " },
    { name: "a b" },
    { budget: { maxTurns: -1 } },
    { evry: 1 },
  ])
    expect(() => reviewer({ ...valid, ...change } as never)).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
  expect(() => scout([], { reviewers: [reviewer({ ...valid, tools: ["unknown"] })] })).toThrow(
    'there is no tool "unknown"; expected some of look, note',
  );
  expect(() => scout([], { reviewers: [reviewer(valid), reviewer(valid)] })).toThrow(
    "two reviewers have the name review",
  );
});
