import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { addCases } from "../../../src/experiments/recording/add-cases.ts";
import { recordRun } from "../../../src/experiments/recording/record-run.ts";
import { ReplayedAgents } from "../../../src/experiments/recording/replayed-agent.ts";
import { ReplayedCalls, type ReplayModes } from "../../../src/experiments/recording/replayed-calls.ts";
import { readRecording, writeRecording } from "../../../src/experiments/recording/run-recording.ts";
import { recordedInput } from "../../../src/experiments/recording/replays.ts";
import { HistoryRetention, type HostedAgent, type JsonValue, type Store } from "../../../src/kernel/index.ts";
import { memoryStore, openStore } from "../../../src/runtime/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";

let folder = "";
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-cases-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const caseFile = (): string => join(folder, `cases-${++files}.jsonl`);
const apiKey = "sk-ant-api03-0123456789abcdefghij";

/** A tool that counts its calls, so that equal calls have different results. */
function counter() {
  let calls = 0;
  return tool({
    name: "count",
    description: "Counts.",
    inputSchema: { type: "object", properties: { pin: { type: "string" } } } as const,
    secret: ["pin", "token"],
    execute: () => ({ calls: ++calls, token: "violet-horse-41" }),
  });
}

const call = (pin: string): ScriptStep => ({ toolCalls: [{ name: "count", input: { pin } }] });
const script = [call("4711-4712"), call("4711-4712"), "It counted violet-horse-41 twice."];

function clerk(model: readonly ScriptStep[], changes = {}): Agent {
  return new Agent({ name: "clerk", model: scriptedModel(model), tools: [counter()], ...changes });
}

async function storedRun(
  store: Store | `sqlite:${string}`,
  agent: Agent,
  input: string,
  options = {},
): Promise<string> {
  const runtime = await openRuntime({ store, retry: { maxRetries: 0 } });
  const run = await runtime.submit(agent, input, options);
  await run.result();
  await runtime.close();
  return run.runId;
}

async function replayed(agent: HostedAgent, file: string, modes: ReplayModes) {
  const recording = await readRecording(file);
  const calls = new ReplayedCalls(recording, modes);
  const runtime = await openRuntime({ store: memoryStore(), retry: { maxRetries: 0 } });
  const run = await runtime.submit(
    new ReplayedAgents(async () => calls).of(agent),
    recordedInput(recording.input as JsonValue, recording),
  );
  const result = await run.result();
  await runtime.close();
  return result;
}

test("addCases() writes a recorded case without secrets, and reports where it removed how many", async () => {
  const file = caseFile();
  const address = `sqlite:${join(folder, "runs.db")}` as const;
  const runId = await storedRun(address, clerk(script), `Count with ${apiKey}.`);
  const store = await openStore(address);
  const [added] = await addCases(store, [runId as never], file);
  await store.close();
  expect(added).toMatchObject({ id: runId, modelCalls: 3, toolCalls: 2 });
  expect(added?.redactions).toEqual({
    "the input": 1,
    "the output": 1,
    "user messages": 1,
    "replies of models": 3,
    "tool messages": 2,
    "calls of count": 4,
  });
  const [line = ""] = (await readFile(file, "utf8")).split("\n");
  expect(JSON.parse(line)).toEqual({
    id: runId,
    input: "Count with [secret].",
    expected: "It counted [secret] twice.",
    recording: `./cases-${files}.recordings/${runId}.json`,
  });
  const text = await readFile(added?.recording ?? "", "utf8");
  for (const secret of [apiKey, "4711", "violet"]) expect(text).not.toContain(secret);
  expect(await readdir(folder)).not.toContainEqual(expect.stringContaining(".tmp"));

  const offline = clerk([]);
  const result = await replayed(offline, added?.recording ?? "", { tools: "recorded", model: "recorded" });
  expect(result).toMatchObject({ status: "completed", output: "It counted [secret] twice." });
  expect(result.usage.costUsd).toBe(0);
});

test("recordRun() reads the journal of a run as often for many model calls as for a few", async () => {
  const readsOf = async (calls: number): Promise<number> => {
    const store = memoryStore();
    const long = [...Array.from({ length: calls }, () => call("1")), "Done."];
    const runId = await storedRun(store, clerk(long), "Count.");
    let reads = 0;
    const journal = new Proxy(store.journal, {
      get: (target, name) => {
        if (name === "read") reads++;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    const counted = new Proxy(store, {
      get: (target, name) => (name === "journal" ? journal : (Reflect.get(target, name, target) as unknown)),
    });
    const { recording } = await recordRun(counted, runId as never);
    expect(recording.calls.filter(({ kind }) => kind === "model")).toHaveLength(calls + 1);
    return reads;
  };
  expect(await readsOf(12)).toBe(await readsOf(2));
});

test("a replay gives the k-th equal model call the k-th recorded result, also if the model is live", async () => {
  const file = caseFile();
  const store = memoryStore();
  const [added] = await addCases(store, [(await storedRun(store, clerk(script), "Count.")) as never], file);
  const model = scriptedModel(["", "", ""].map((_, index) => script[index] as ScriptStep));
  const live = new Agent({ name: "clerk", model, tools: [counter()] });
  const result = await replayed(live, added?.recording ?? "", { tools: "recorded", model: "live" });
  expect(result.status).toBe("completed");
  const seen = JSON.stringify(model.calls[2]?.messages);
  expect(seen).toMatch(/"calls":1,.*"calls":2,/u);
  expect(seen).toContain('"token":"[secret]"');
});

test("a tool call that was not recorded ends the replay, or is made live", async () => {
  const store = memoryStore();
  const runId = await storedRun(store, clerk(script), "Count.");
  const [added] = await addCases(store, [runId as never], caseFile());
  const more = [call("4711-4712"), call("4711-4712"), call("4711-4712"), "Thrice."];
  const modes = { tools: "recorded", model: "live" } as const;
  const strict = await replayed(clerk(more), added?.recording ?? "", modes);
  expect(strict.status).toBe("failed");
  expect(strict.error?.message).toContain(
    `the replay of ${runId} differs after its last step: the call of the tool count by clerk`,
  );
  const lenient = { tools: "recorded-or-live", model: "live" } as const;
  expect((await replayed(clerk(more), added?.recording ?? "", lenient)).output).toBe("Thrice.");
});

test("a replay reports changed instructions, tools and arguments with what was recorded and what was asked", async () => {
  const store = memoryStore();
  const runId = await storedRun(store, clerk(script, { instructions: "Count." }), "Go.");
  const [added] = await addCases(store, [runId as never], caseFile());
  const file = added?.recording ?? "";
  const modes = { tools: "recorded", model: "recorded" } as const;
  const changed = await replayed(clerk([], { instructions: "Count well." }), file, modes);
  expect(changed.error?.message).toMatch(
    /at step 1 \(event \d+\): the model call of clerk differs at request\.messages\[0\]\.content: recorded "Count\.", asked "Count well\."/u,
  );
  const without = await replayed(clerk([], { instructions: "Count.", tools: [] }), file, modes);
  expect(without.error?.message).toContain("request.tools: recorded [");
  expect(without.error?.message).toContain("asked nothing");
  const other = [call("1"), "Done."];
  const argued = await replayed(clerk(other, { instructions: "Count." }), file, { ...modes, model: "live" });
  expect(argued.status).toBe("completed");
});

test("a recorded case has the session before its run and the schema of its answer", async () => {
  const store = memoryStore();
  const agent = clerk(["Noted.", '{"name":"Ann"}']);
  const schema = { type: "object", properties: { name: { type: "string" } } } as const;
  await storedRun(store, agent, "I am Ann.", { sessionId: "s" });
  const runtime = await openRuntime({ store });
  const run = await agent.submit("Who am I?", { runtime, sessionId: "s", output: schema });
  await run.result();
  await runtime.close();
  const { recording } = await recordRun(store, run.runId);
  expect(recording.session.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(recordedInput("Who am I?", recording)).toMatchObject({
    prompt: "Who am I?",
    history: [{ role: "user" }, { role: "assistant" }],
    output: schema,
  });
});

test("a recorded case has the images and files of its input, and replays with them", async () => {
  const store = memoryStore();
  const runtime = await openRuntime({ store });
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk";
  const input = [
    { type: "text", text: "What is this?" },
    { type: "image", mediaType: "image/png", source: { kind: "base64", data } },
  ] as const;
  const run = await clerk(["A dot."]).submit(input, { runtime });
  await run.result();
  await runtime.close();
  const [added] = await addCases(store, [run.runId], caseFile());
  expect((await readRecording(added?.recording ?? "")).input).toEqual(input);
  const result = await replayed(clerk([]), added?.recording ?? "", { tools: "recorded", model: "recorded" });
  expect(result.output).toBe("A dot.");
});

test("addCases() refuses a run that cannot be repeated by its id, and writes nothing", async () => {
  const store = memoryStore();
  const file = caseFile();
  const kept = await storedRun(store, clerk(["Yes."]), "Ready?");
  const erased = await storedRun(store, clerk(["Yes."]), "Ready?", { retention: HistoryRetention.NONE });
  const refusal = addCases(store, [kept as never, erased as never], file);
  await expect(refusal).rejects.toThrow(`run ${erased} cannot become a case: its contents were erased`);
  await expect(readFile(file)).rejects.toThrow("ENOENT");
  await addCases(store, [kept as never], file);
  await expect(addCases(store, [kept as never], file)).rejects.toThrow(`has a case ${kept}`);
  await expect(addCases(store, ["run_none" as never], file)).rejects.toThrow("run_none");
});

test("readRecording() names the file and the place of the damage", async () => {
  const store = memoryStore();
  const { recording } = await recordRun(store, (await storedRun(store, clerk(script), "Count.")) as never);
  const file = join(folder, "damaged.json");
  const damage = async (change: (stored: Record<string, JsonValue>) => unknown): Promise<void> => {
    await writeRecording(file, recording);
    const stored = JSON.parse(await readFile(file, "utf8")) as Record<string, JsonValue>;
    change(stored);
    await writeFile(file, JSON.stringify(stored));
  };
  const cases: readonly [(stored: Record<string, JsonValue>) => unknown, string][] = [
    [(stored) => (stored["format"] = "other"), 'it does not say "format"'],
    [(stored) => (stored["version"] = 2), "its version is 2, and this build reads version 1"],
    [(stored) => (stored["input"] = 7), "input is 7"],
    [(stored) => Reflect.set(stored["calls"] as object, "0", { kind: "other" }), "calls[0].kind"],
    [
      (stored) => Reflect.set((stored["calls"] as JsonValue[])[1] as object, "result", "x"),
      "calls[1].result is",
    ],
    [(stored) => (stored["contents"] = []), "calls[0].request.messages has an entry"],
  ];
  for (const [change, problem] of cases) {
    await damage(change);
    await expect(readRecording(file)).rejects.toThrow(`invalid recording ${file}: ${problem}`);
  }
  await writeFile(file, "{");
  await expect(readRecording(file)).rejects.toThrow("it is not JSON");
  await expect(readRecording(join(folder, "none.json"))).rejects.toThrow("it cannot be read");
});
