// A search through thoughts: the agent proposes several continuations of each thought, scores all at once and follows the best ones.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { treeOfThoughts } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const solver = new Agent({
  name: "solver",
  architecture: treeOfThoughts({ branches: 2, depth: 2, beam: 1, solvedScore: 0.95 }),
  model: scriptedModel([]),
  models: {
    proposer: scriptedModel([
      '["Take the goat over first", "Take the wolf over first"]',
      '["Come back alone, then take the wolf over and the goat back", "Come back with the goat"]',
    ]),
    evaluator: scriptedModel(['{"score": 0.6}', '{"score": 0}', '{"score": 0.97}', '{"score": 0.1}']),
    synthesizer: scriptedModel(["Goat over; wolf over, goat back; cabbage over; goat over."]),
  },
});

const { output, metadata } = await solver.invoke("A wolf, a goat and a cabbage, one boat. How?");
const tree = metadata["tree"] as {
  readonly best: string;
  readonly thoughts: readonly { readonly id: string; readonly text: string; readonly score: number }[];
};
for (const { id, text, score } of tree.thoughts) console.log(`${id.padEnd(4)} ${score.toFixed(2)}  ${text}`);
console.log(output);

assert.equal(tree.best, "1.1");
assert.equal(output, "Goat over; wolf over, goat back; cabbage over; goat over.");
