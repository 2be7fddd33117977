// Three agents answer at the same time, read each other's answers and answer again. The answer that most of them give is the result.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { debate } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const debater = (name: string, ...answers: readonly string[]): Agent =>
  new Agent({ name, model: scriptedModel(answers) });
const debaters = () => ({
  ada: debater("ada", "1778", "1778"),
  bob: debater("bob", "1765", "1778."),
  eve: debater("eve", "1801", "1801"),
});

const forum = new Agent({ name: "forum", architecture: debate({ debaters: debaters() }) });
const voted = await forum.invoke("When was the Pont Wilson finished?");
console.log(voted.output, JSON.stringify(voted.metadata));
assert.equal(voted.output, "1778");

// The same with a judge: the agent's own model in that role. The agent above needs none.
const court = new Agent({
  name: "court",
  architecture: debate({ debaters: debaters(), judge: "self" }),
  model: scriptedModel([]),
  models: { judge: scriptedModel(["In 1778, say two of three; 1801 is a later repair."]) },
});
const judged = await court.invoke("When was the Pont Wilson finished?");
console.log(judged.output);
assert.match(judged.output, /^In 1778/u);
