// An experiment: two variants of an agent answer the same cases, and scorers tell which one is better. The experiment is a run with one
// budget. Here the budget ends it early; after a top-up the run continues with the missing trials, and no answer is paid twice.
import assert from "node:assert/strict";
import { Agent, openRuntime } from "reeve";
import { exactMatch, experiment, readExperiment, reportOf, textReport } from "reeve/experiments";
import type { Model } from "reeve/kernel";
import { scriptedModel } from "reeve/testing";

const capitals: Readonly<Record<string, string>> = { France: "Paris", Italy: "Rome", Austria: "Vienna" };
const asked: string[] = [];

/** Plays a model that knows some capitals. Use "anthropic/claude-sonnet-5" in its place. */
function knowing(countries: readonly string[]): Model {
  const once = () =>
    scriptedModel([
      ({ messages }) => {
        const question = JSON.stringify(messages.at(-1));
        asked.push(question);
        const country = countries.find((each) => question.includes(each));
        return country === undefined ? "I do not know." : (capitals[country] ?? "");
      },
    ]);
  return {
    provider: "scripted",
    modelId: "geographer",
    generate: (request, options) => once().generate(request, options),
    stream: (request, options) => once().stream(request, options),
  };
}

const geographer = new Agent({ name: "geographer", model: knowing(["France", "Italy", "Austria"]) });

const evaluation = experiment({
  name: "capitals",
  variants: { base: geographer, cheap: geographer.with({ model: knowing(["France"]) }) },
  cases: Object.entries(capitals).map(([country, expected]) => ({
    id: country.toLowerCase(),
    input: `What is the capital of ${country}?`,
    expected,
  })),
  scorers: [exactMatch()],
  budget: { maxTurns: 4 },
  gates: { exactMatch: { mean: 0.9 } },
});

const runtime = await openRuntime({ store: "memory:" });
const run = await runtime.start(evaluation, {});
await run.result();
const stopped = await readExperiment(run);
console.log(`${stopped.status}: ${stopped.results.length} of ${stopped.expectedTrials} trials`);
assert.equal(stopped.results.length, 4);

await run.topUp({ maxTurns: 10 });
await run.result();
const whole = await readExperiment(run);
console.log(textReport(reportOf(whole)).join("\n"));
assert.equal(whole.results.length, 6);
assert.equal(asked.length, 6); // no question was asked twice
await runtime.close();
