import { afterAll, expect, test } from "vitest";
import { Agent, OrchestratorAgent } from "../../../src/entries/index.ts";
import type { Event, RunHandle } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { isResult } from "../../../src/surfaces/view/recorded-calls.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { compareRuns, differingWords, readRun, type ComparedStep } from "./compare-runs.ts";

const runtime = await openRuntime({ store: "memory:", unknownPrice: "ignore" });
afterAll(() => runtime.close());

async function eventsOf(run: RunHandle): Promise<readonly Event[]> {
  const read: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) read.push(event);
  return read;
}

/** Hires once, and then has the answer. */
const answerOf: ScriptStep = ({ messages }) =>
  messages.length > 1 ? "She agrees." : { toolCalls: [{ name: "handoff_ann", input: { task: "Say it." } }] };

function step(words: string, answer: string): ComparedStep {
  return { words, answer } as ComparedStep;
}

test("a comparison on the page aligns a fork at any event with its origin, in the shared steps and after them", async () => {
  const ann = new Agent({ name: "ann", model: scriptedModel(Array.from({ length: 100 }, () => "Yes.")) });
  const lead = new OrchestratorAgent({
    name: "lead",
    model: scriptedModel(Array.from({ length: 200 }, () => answerOf)),
    subAgents: [ann],
  });
  const origin = await runtime.submit(lead, "Ask her.");
  await origin.result();
  const left = await eventsOf(origin);
  const results = left.filter(isResult).length;
  for (const { seq: at } of left.slice(2)) {
    const fork = await origin.fork({ at });
    await fork.result();
    const right = await eventsOf(fork);
    const start = right.findIndex(({ type }) => type === "run_fork");
    const [shared, ...rows] = compareRuns(readRun(left), readRun(right));
    const free = right.slice(0, start).filter(isResult).length;
    const own = free === 0 && shared !== undefined ? [shared, ...rows] : rows;
    expect([at, shared?.kind === "shared" ? shared.steps : 0]).toEqual([at, free]);
    expect([at, own.map(({ kind }) => kind)]).toEqual([
      at,
      Array.from({ length: results - free }, () => "same"),
    ]);
  }
});

test("a comparison on the page shows the part that differs if two answers begin with the same words", () => {
  const [a, b] = [
    step("read NOTES.md", "The release is ready now."),
    step("read NOTES.md", "The release is late."),
  ];
  expect(differingWords(a, b)).toEqual([
    "read NOTES.md: …release is ready now.",
    "read NOTES.md: …release is late.",
  ]);
  const long = "x".repeat(50);
  expect(differingWords(step("w", `${long}one`), step("w", long))).toEqual([
    "w: …xxxxxxxxxxxxone",
    "w: …xxxxxxxxxxxx",
  ]);
  expect(differingWords(step("one", "1"), step("two", "2"))).toEqual(["one", "two"]);
});
