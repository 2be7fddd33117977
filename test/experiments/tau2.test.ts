import { expect, test } from "vitest";
import { Agent, tool } from "../../src/entries/index.ts";
import {
  experiment,
  jsonLines,
  reportOf,
  toolCalls,
  type ExpectedToolCall,
  type ExperimentReport,
} from "../../src/entries/experiments.ts";
import { withRuntime } from "../assembly/with-runtime.ts";
import { answering } from "./answering-model.ts";

/** 50 tasks of tau2-bench's retail domain with their expected calls. `tau2/LICENSE` is the licence of the data. */
const tasks = jsonLines("./tau2/retail.jsonl");

type Calls = readonly ExpectedToolCall[];

/** Runs the tasks with an agent that makes these calls for each of them. */
async function retail(callsOf: (expected: Calls, at: number) => Calls): Promise<ExperimentReport> {
  const cases = await tasks();
  const scripts = new Map(
    cases.map(({ input, expected }, at) => [input as string, callsOf(expected as unknown as Calls, at)]),
  );
  const names = new Set([...scripts.values()].flatMap((calls) => calls.map(({ name }) => name)));
  const tools = [...names].map((name) =>
    tool({
      name,
      description: `The tool ${name} of a shop.`,
      inputSchema: { type: "object", properties: {} } as const,
      execute: () => "done",
    }),
  );
  const model = answering(({ messages }) => {
    const [first, ...later] = messages.filter(({ role }) => role !== "system");
    const parts = first?.content as readonly { readonly text?: string }[] | undefined;
    const asked = parts?.[0]?.text ?? "";
    const made = later.filter(({ role }) => role === "tool").length;
    const next = scripts.get(asked)?.[made];
    return next === undefined ? "Done." : { toolCalls: [{ name: next.name, input: next.arguments ?? {} }] };
  });
  const agent = new Agent({ name: "clerk", model, tools, maxTurns: 60 });
  let report: ExperimentReport | undefined;
  await withRuntime(async (runtime) => {
    const given = experiment({
      name: "retail",
      agent,
      cases: tasks,
      scorers: [toolCalls()],
      gates: { toolCalls: { mean: 1 } },
    });
    report = reportOf(await given.run({ runtime }));
  });
  return report as ExperimentReport;
}

test("50 tasks of tau2-bench pass if the agent makes exactly the expected calls", async () => {
  const { rows, failed, problems, gates, isUnreliable } = await retail((expected) => expected);
  expect(rows).toMatchObject([{ estimate: { mean: 1, count: 50 }, scored: 50 }]);
  expect([failed, problems, isUnreliable]).toEqual([[], [], false]);
  expect(gates).toMatchObject([{ isPassed: true }]);
});

test("each of 50 tasks of tau2-bench reports the difference if one of its calls is changed", async () => {
  const { failed, gates, problems } = await retail((expected, at) => {
    const place = at % expected.length;
    const changed = { ...expected[place], arguments: { wrong: at } } as ExpectedToolCall;
    return expected.toSpliced(place, 1, changed);
  });
  expect(problems).toEqual([]);
  expect(new Set(failed.map(({ caseId }) => caseId)).size).toBe(50);
  for (const { reason } of failed) expect(reason).toMatch(/wrong: expected nothing, got \d+/u);
  expect(gates).toMatchObject([{ isPassed: false }]);
});
