import { describe, expect, test } from "vitest";
import { Agent, tool } from "../../src/entries/index.ts";
import { experiment, type DurableScorer, type ExperimentOptions } from "../../src/entries/experiments.ts";
import { withRuntime } from "../assembly/with-runtime.ts";
import { answering, askedIn } from "./answering-model.ts";

const clerk = new Agent({ name: "clerk", model: answering((request) => `Answer to ${askedIn(request)}`) });

function exact({ output, expected }: { readonly output: unknown; readonly expected: unknown }): boolean {
  return output === expected;
}

const france = { id: "france", input: "Which city?", expected: "Paris" };
const options: ExperimentOptions = { name: "capitals", agent: clerk, cases: [france], scorers: [exact] };

describe("wrong options of an experiment", () => {
  test.each([
    [{ trials: 0 }, "invalid trials 0 of experiment capitals: expected an integer from 1 to 1000"],
    [{ seat: 3 }, 'unknown option "seat" of experiment capitals: use "seats"'],
    [{ agent: undefined }, "experiment capitals needs either agent or variants"],
    [{ variants: { base: clerk } }, "experiment capitals needs either agent or variants"],
    [{ scorers: [] }, "experiment capitals has no scorers"],
    [{ scorers: [exact, exact] }, 'duplicate scorer "exact" of experiment capitals'],
    [{ scorers: [() => 1] }, "entry 1 of scorers of experiment capitals has no name"],
    [
      { gates: { judge: { mean: 1 } } },
      'gate "judge" of experiment capitals names no scorer: expected one of exact',
    ],
    [{ gates: { exact: { mean: 2 } } }, "invalid mean 2 of gate exact of experiment capitals"],
    [{ gates: { exact: {} } }, "gate exact of experiment capitals is empty"],
    [{ cases: [] }, "experiment capitals has no cases"],
    [
      { cases: [france, france] },
      'duplicate case id "france" of experiment capitals: entry 1 of cases of experiment capitals and entry 2',
    ],
    [
      { cases: [{ id: "a", input: 5 }] },
      "invalid input of the case at entry 1 of cases of experiment capitals",
    ],
    [{ cases: [{ ...france, expect: 1 }] }, 'unknown option "expect" of the case at entry 1 of cases'],
  ])("the declaration of an experiment refuses %j and says why", (wrong, message) => {
    expect(() => experiment({ ...options, ...(wrong as object) })).toThrow(message);
  });
});

describe("a run of an experiment", () => {
  test("each variant of an experiment answers each case in each trial alone, and scorers see its tool calls, turns and time", () =>
    withRuntime(async (runtime) => {
      const add = tool({
        name: "add",
        description: "Adds one",
        inputSchema: { type: "object", properties: { to: { type: "number" } }, required: ["to"] } as const,
        execute: async ({ to }) => `${to + 1}`,
      });
      const calling = answering(({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? `${messages.length} messages`
          : { toolCalls: [{ name: "add", input: { to: 1 } }] },
      );
      const base = new Agent({ name: "adder", tools: [add], model: calling });
      const seen: unknown[] = [];
      const given = experiment({
        name: "adders",
        variants: { base, plain: base.with({ model: answering(askedIn) }) },
        cases: [
          { id: "two", input: "1 + 1?" },
          { id: "three", input: "1 + 2?" },
        ],
        trials: 2,
        scorers: [
          function calls({ caseId, run }) {
            if (caseId === "two") seen.push(run.toolCalls);
            return run.toolCalls.length;
          },
        ],
      });
      const { results, expectedTrials, status, variants } = await given.run({ runtime });
      expect([status, expectedTrials, variants]).toEqual(["completed", 8, ["base", "plain"]]);
      const rows = results.map(({ caseId, variant, trial, output, turns, scores }) =>
        [caseId, variant, trial, output, turns, scores["calls"]?.score].map(String).join(" "),
      );
      expect(rows.toSorted()).toEqual([
        "three base 1 3 messages 2 1",
        "three base 2 3 messages 2 1",
        "three plain 1 1 + 2? 1 0",
        "three plain 2 1 + 2? 1 0",
        "two base 1 3 messages 2 1",
        "two base 2 3 messages 2 1",
        "two plain 1 1 + 1? 1 0",
        "two plain 2 1 + 1? 1 0",
      ]);
      const call = { name: "add", arguments: { to: 1 }, result: "2", isError: false };
      expect(seen).toEqual(expect.arrayContaining([[call], [call], [], []]));
    }));

  test("an agent without an answer is a result of the experiment with status and error, and its scorers are called", () =>
    withRuntime(async (runtime) => {
      const broken = new Agent({
        name: "broken",
        model: answering(() => ({ error: new Error("no route") })),
        retry: false,
      });
      const { results } = await experiment({ ...options, agent: broken }).run({ runtime });
      expect(results).toEqual([
        expect.objectContaining({
          caseId: "france",
          status: "failed",
          output: null,
          error: expect.stringContaining("no route"),
          scores: { exact: { score: 0, reason: null, metadata: null, error: null } },
        }),
      ]);
    }));

  test("a scorer that throws, or returns no score from 0 to 1, gives an error and no score; null skips the case", () =>
    withRuntime(async (runtime) => {
      const failing: DurableScorer = {
        name: "durable",
        score: async (_given, ctx) =>
          ctx.step("ask", () => Promise.reject(new Error("no judge")), { retry: false }),
      };
      const { results } = await experiment({
        ...options,
        scorers: [
          failing,
          function throwing() {
            throw new Error("broken");
          },
          function high() {
            return 1.5;
          },
          function text() {
            return "good" as never;
          },
          function skipping() {
            return { name: "Other", score: null, metadata: { at: new Date(0) } };
          },
          function sure() {
            return { score: true, reason: "It is right." };
          },
        ],
      }).run({ runtime });
      const none = { score: null, reason: null, metadata: null };
      expect(results[0]?.scores).toEqual({
        durable: { ...none, error: "scorer durable failed: no judge" },
        throwing: {
          ...none,
          error: expect.stringMatching(/^scorer throwing failed: broken \(.*experiment\.test\.ts:\d+\)$/u),
        },
        high: {
          ...none,
          error: expect.stringMatching(/^invalid score 1.5 of scorer high: expected a number from 0 to 1/u),
        },
        text: { ...none, error: expect.stringMatching(/^invalid score "good" of scorer text/u) },
        skipping: { ...none, metadata: { at: "1970-01-01T00:00:00.000Z" }, error: null },
        sure: { score: 1, reason: "It is right.", metadata: null, error: null },
      });
    }));

  test("the input of an experiment selects cases, variants and trials, and refuses a selection that does not exist", () =>
    withRuntime(async (runtime) => {
      const cases = ["a1", "a2", "b1"].map((id) => ({ id, input: id, tags: [id.slice(1)] }));
      const given = experiment({ ...options, cases: async () => cases });
      const ids = async (input: object) =>
        (await given.run({ runtime, ...input })).results.map(({ caseId }) => caseId).toSorted();
      expect(await ids({ tags: ["1"] })).toEqual(["a1", "b1"]);
      expect(await ids({ filter: "a", trials: 2 })).toEqual(["a1", "a1", "a2", "a2"]);
      expect(await ids({ cases: ["b1"] })).toEqual(["b1"]);
      await expect(ids({ variants: ["clark"] })).rejects.toThrow('unknown variant "clark"');
      const run = await runtime.start(given, { cases: ["b2"] });
      expect(await run.result()).toMatchObject({
        status: "failed",
        error: { message: 'experiment capitals has no case "b2": check cases of the input' },
      });
    }));
});
