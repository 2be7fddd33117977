// A graph of operations on whole answers: drafts are scored, the best ones are merged, and the result is refined.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { graphOfThoughts } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const writer = new Agent({
  name: "writer",
  architecture: graphOfThoughts({
    operations: [
      { name: "drafts", do: "generate", count: 2 },
      { do: "score" },
      { name: "merged", do: "aggregate" },
      { name: "refined", do: "refine", maxRounds: 1, threshold: 0.9 },
      { do: "keep_best", from: ["drafts", "refined"] }, // a bad merger does not win
    ],
  }),
  model: scriptedModel([]),
  models: {
    thinker: scriptedModel(["The reeve kept the accounts.", "The reeve hired the hands."]),
    evaluator: scriptedModel([0.4, 0.5, 0.8, 0.95].map((score) => JSON.stringify({ score }))),
    aggregator: scriptedModel(["The reeve hired the hands and kept the accounts."]),
    refiner: scriptedModel(["The reeve hired the hands, kept the accounts and answered for both."]),
  },
});

const { output, metadata } = await writer.invoke("What did a reeve do?");
const { thoughts, best } = metadata["thoughts"] as {
  readonly best: string;
  readonly thoughts: readonly {
    readonly id: string;
    readonly from: readonly string[];
    readonly score: number;
  }[];
};
for (const { id, from, score } of thoughts) console.log(`${id} ${score} from [${from.join(", ")}]`);
console.log(output);

assert.equal(output, "The reeve hired the hands, kept the accounts and answered for both.");
assert.deepEqual(thoughts.find(({ id }) => id === "t3")?.from, ["t1", "t2"]);
assert.equal(best, "t4");
