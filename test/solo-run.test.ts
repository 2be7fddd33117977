import { describe, expect, test } from "vitest";
import { SoloRun, memoryStore, sha256, tool, type SoloRunOptions } from "../src/index.ts";
import type { Event, ModelRequest, Store } from "../src/kernel/index.ts";
import { FakeClock, scriptedModel, sequentialIds, type ScriptedReply } from "../src/testing/index.ts";

interface Setup {
  readonly options: SoloRunOptions & { readonly store: Store };
  /** How often the world was touched, by what was done. */
  readonly counts: Record<string, number>;
}

/** Three model calls, three lookups, and the close. */
const writesOfARun = 7;

/** Two towns looked up at once, then a third, then an answer. What the model says depends only on what it is sent. */
function reply({ messages }: ModelRequest): ScriptedReply {
  const asked = messages.filter(({ role }) => role === "tool").length;
  if (asked === 0)
    return { toolCalls: ["Tours", "Blois"].map((town) => ({ name: "look", input: { town } })) };
  if (asked === 1) return { toolCalls: [{ name: "look", input: { town: "Sens" } }] };
  return { text: "Go to Blois." };
}

function setup(overrides: Partial<SoloRunOptions> = {}): Setup {
  const counts: Record<string, number> = {};
  const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);
  const look = tool({
    name: "look",
    description: "The weather in a town",
    input: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
    execute: ({ town }) => {
      count(town);
      return { town, weather: "rain" };
    },
  });
  const script = Array.from({ length: 12 }, () => (request: ModelRequest) => {
    count(`model ${request.messages.length}`);
    return reply(request);
  });
  const options = {
    name: "scout",
    instructions: "Compare the towns.",
    input: "Where shall I go?",
    model: scriptedModel(script),
    tools: [look],
    store: memoryStore({ hash: sha256 }),
    clock: new FakeClock(),
    ids: sequentialIds("id"),
    ...overrides,
  };
  return { options, counts };
}

/** The same store, whose process dies in its n-th write: it arrives or not, and nothing is heard of it or after it. */
function dyingStore(store: Store, write: number, arrives: boolean, die: () => void): Store {
  let writes = 0;
  const append: Store["journal"]["append"] = async (lease, commit) => {
    writes++;
    if (writes < write) return store.journal.append(lease, commit);
    if (writes === write && arrives) await store.journal.append(lease, commit);
    die();
    return new Promise(() => {});
  };
  const journal = Object.assign(Object.create(store.journal) as Store["journal"], {
    create: store.journal.create.bind(store.journal),
    find: store.journal.find.bind(store.journal),
    read: store.journal.read.bind(store.journal),
    append,
  });
  return { ...store, journal };
}

async function eventsOf(run: SoloRun): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  return events;
}

async function uncrashed(): Promise<{ types: string[]; output: string; counts: Record<string, number> }> {
  const { options, counts } = setup();
  const run = await SoloRun.start(options);
  const { output } = await run.result();
  return { types: (await eventsOf(run)).map(({ type }) => type), output, counts };
}

describe("a run in one process", () => {
  test("thinks, acts and answers, and its events tell so in order", async () => {
    const { types, output } = await uncrashed();
    expect(output).toBe("Go to Blois.");
    expect(types.slice(0, 5)).toEqual([
      "run_start",
      "task_start",
      "agent_start",
      "turn_start",
      "message_start",
    ]);
    expect(types.slice(-5)).toEqual(["agent_end", "save_point", "settled", "task_end", "run_end"]);
  });

  test("J1, J6: dropped at any write and resumed, it answers the same and repeats only what was in flight", async () => {
    const whole = await uncrashed();
    for (const arrives of [true, false]) {
      for (let write = 1; write <= writesOfARun; write++) {
        const { options, counts } = setup();
        const died = Promise.withResolvers<void>();
        const store = dyingStore(options.store, write, arrives, died.resolve);
        const first = await SoloRun.start({ ...options, store });
        await died.promise;
        first.drop();
        const resumed = await SoloRun.resume(options, first.runId);
        expect((await resumed.result()).output).toBe(whole.output);
        const events = await eventsOf(resumed);
        expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index));
        expect(events.map(({ type }) => type).toSorted()).toEqual(whole.types.toSorted());
        const repeats = Object.keys(whole.counts).filter((what) => (counts[what] ?? 0) > 1);
        // Both lookups of the first batch may be in flight at once; nothing recorded runs again.
        expect(repeats.length).toBeLessThanOrEqual(arrives ? 1 : 2);
      }
    }
  });

  test("J4: code that asks for something else than was recorded is a mismatch that names the step, and nothing runs", async () => {
    const { options, counts } = setup();
    const died = Promise.withResolvers<void>();
    const run = await SoloRun.start({ ...options, store: dyingStore(options.store, 3, true, died.resolve) });
    await died.promise;
    run.drop();
    const before = { ...counts };
    const other = await SoloRun.resume({ ...options, input: "Where shall I stay?" }, run.runId);
    await expect(other.result()).rejects.toMatchObject({
      code: "journal_mismatch",
      message: expect.stringContaining("step 0"),
      details: { address: "0", field: "arguments of llm main" },
    });
    expect(counts).toEqual(before);
  });

  test("J3: whoever lost the run writes nothing and starts nothing", async () => {
    const { options, counts } = setup();
    const { store } = options;
    const gate = Promise.withResolvers<void>();
    const slow = scriptedModel([reply]);
    const model = {
      provider: "slow",
      modelId: "slow",
      stream: slow.stream.bind(slow),
      generate: async (request: ModelRequest) => {
        await gate.promise;
        return slow.generate(request);
      },
    };
    const loser = await SoloRun.start({ ...options, model });
    const winner = await SoloRun.resume(options, loser.runId);
    const { output } = await winner.result();
    const before = { ...counts };
    const last = await store.events.lastSeq(loser.runId);
    gate.resolve();
    await expect(loser.result()).rejects.toMatchObject({ code: "lease_lost" });
    expect(output).toBe("Go to Blois.");
    expect(counts).toEqual(before);
    expect(await store.events.lastSeq(loser.runId)).toBe(last);
  });

  test("S1: what was said becomes history at the end, in order, and not before", async () => {
    const { options } = setup();
    const run = await SoloRun.start(options);
    const { sessionId } = await run.result();
    const entries = await options.store.sessions.read(sessionId);
    expect(entries.map(({ entry }) => (entry.type === "message" ? entry.message.role : entry.type))).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(entries.map(({ entry }) => entry.parentId)).toEqual([
      null,
      ...entries.slice(0, -1).map(({ entry }) => entry.id),
    ]);
  });

  test("a model that fails ends the run as failed, and says why", async () => {
    const { options } = setup({ model: scriptedModel([{ error: new Error("the model is on fire") }]) });
    const run = await SoloRun.start(options);
    expect(await run.result()).toMatchObject({
      status: "failed",
      failure: { code: "internal", message: "the model is on fire" },
    });
    expect((await eventsOf(run)).map(({ type }) => type)).toContain("agent_error");
  });

  test("a tool that throws, is unknown or gets wrong arguments is a result the model sees", async () => {
    const broken = tool({
      name: "broken",
      description: "Fails",
      input: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
      execute: () => {
        throw new Error("no such luck");
      },
    });
    const calls = [
      { name: "broken", input: { n: 1 } },
      { name: "broken", input: { n: "one" } },
      { name: "missing", input: {} },
    ];
    const { options } = setup({
      tools: [broken],
      model: scriptedModel([{ toolCalls: calls }, "I give up."]),
    });
    const run = await SoloRun.start(options);
    expect((await run.result()).output).toBe("I give up.");
    const ends = (await eventsOf(run)).flatMap((event) =>
      event.type === "tool_execution_end" ? [event.data] : [],
    );
    const results = ends
      .toSorted((one, other) => (one.callId < other.callId ? -1 : 1))
      .map(({ result }) => result);
    expect(results.map(({ isError }) => isError)).toEqual([true, true, true]);
    const texts = results.map(({ output }) => (output.type === "text" ? output.text : ""));
    expect(texts[0]).toContain("no such luck");
    expect(texts[1]).toContain("n must be integer");
    expect(texts[2]).toContain("there is no tool missing; there are: broken");
  });

  test("the turns are bounded, and a run that uses them up says so", async () => {
    const again: ScriptedReply = { toolCalls: [{ name: "look", input: { town: "Sens" } }] };
    const { options } = setup({ model: scriptedModel([again, again, again]), maxTurns: 2 });
    const run = await SoloRun.start(options);
    expect(await run.result()).toMatchObject({
      status: "max_turns",
      turns: 2,
      interruptionReason: "max_turns_exceeded",
    });
  });

  test("C2: cancelled during a call, it records the answer, pays for nothing more and ends as cancelled", async () => {
    const clock = new FakeClock();
    const model = scriptedModel([(request) => ({ ...reply(request), delayMs: 100 }), "never"], { clock });
    const stubborn = {
      provider: "x",
      modelId: "x",
      stream: (request: ModelRequest) => model.stream(request),
      generate: (request: ModelRequest) => model.generate(request),
    };
    const { options, counts } = setup({ clock, model: stubborn });
    const run = await SoloRun.start(options);
    await clock.advance(50);
    run.cancel("changed my mind");
    await clock.advance(100);
    expect(await run.result()).toMatchObject({
      status: "cancelled",
      failure: { code: "cancelled", message: "changed my mind" },
    });
    const types = (await eventsOf(run)).map(({ type }) => type);
    expect(types).toContain("message_end");
    expect(types).not.toContain("agent_error");
    expect(counts).toEqual({});
    const entries = await options.store.sessions.read((await run.result()).sessionId);
    expect(JSON.stringify(entries.at(-1))).toContain("[not executed: the run stopped]");
  });
});
