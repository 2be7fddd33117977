// One agent is called in four ways: for an answer, for a stream, for a value of a schema, and again until a check accepts the answer.
// It needs no key and opens no runtime.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

const guide = new Agent({
  name: "guide",
  instructions: "You know the Loire.",
  model: scriptedModel([
    "Go to Tours.",
    { text: "Three days will do.", deltas: ["Three days", " will do."] },
    '{"town":"Tours","days":3}',
    "A list of bridges.",
    "A list of bridges, with their years.",
  ]),
  budget: { maxTokens: 20_000 },
});

const first = await guide.invoke("Where shall I go?");
console.log(`${first.status}: ${first.output}`);

let streamed = "";
for await (const event of guide.stream("For how long?", { sessionId: first.sessionId })) {
  if (event.type === "message_update") streamed += event.text;
}
console.log(`streamed: ${streamed}`);

const trip = await guide.invoke("As JSON, please", {
  sessionId: first.sessionId,
  output: z.object({ town: z.string(), days: z.number() }),
});
assert.equal(trip.status, "completed");
console.log(`a value: ${trip.output.days} days in ${trip.output.town}`);

const list = await guide.runUntil("List the bridges", {
  until: ({ result }) => result.output.includes("years") || "With their years, please.",
});
console.log(`in the end: ${list.output}`);

assert.equal(streamed, "Three days will do.");
assert.deepEqual(trip.output, { town: "Tours", days: 3 });
assert.equal(list.output, "A list of bridges, with their years.");
