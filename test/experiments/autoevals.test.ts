import { JSONDiff, Levenshtein, NumericDiff } from "autoevals";
import { expect, test } from "vitest";
import { Agent } from "../../src/entries/index.ts";
import { experiment } from "../../src/entries/experiments.ts";
import { withRuntime } from "../assembly/with-runtime.ts";
import { answering, askedIn } from "./answering-model.ts";

test("Levenshtein, JSONDiff and NumericDiff of the package autoevals are used as scorers without changes, also under a budget", () =>
  withRuntime(async (runtime) => {
    const answers: Readonly<Record<string, string>> = { word: "kitten", json: '{"a":1,"b":2}', number: "8" };
    const { results } = await experiment({
      name: "autoevals",
      agent: new Agent({ name: "clerk", model: answering((request) => answers[askedIn(request)] ?? "") }),
      cases: [
        { id: "word", input: "word", expected: "sitting" },
        { id: "json", input: "json", expected: '{"a":1,"b":3}' },
        { id: "number", input: "number", expected: "10" },
      ],
      scorers: [Levenshtein, JSONDiff, NumericDiff],
      budget: { maxTurns: 10 },
    }).run({ runtime });
    const scores = new Map(results.map((each) => [each.caseId, each.scores]));
    expect(scores.get("word")?.["Levenshtein"]).toEqual({
      score: 1 - 3 / 7,
      reason: null,
      metadata: null,
      error: null,
    });
    const json = scores.get("json")?.["JSONDiff"];
    expect(json?.error).toBeNull();
    expect(json?.score).toBeGreaterThan(0.5);
    expect(json?.score).toBeLessThan(1);
    expect(scores.get("number")?.["NumericDiff"]?.score).toBeCloseTo(1 - 2 / 18);
  }));
