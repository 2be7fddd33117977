// A schedule starts a report at nine o'clock in Berlin on each working day, and a heartbeat that reports only news.
import assert from "node:assert/strict";
import { Agent, openRuntime } from "reeve";
import { FakeClock, scriptedModel } from "reeve/testing";

const hour = 3_600_000;
const clock = new FakeClock(Date.parse("2026-03-27T06:00Z")); // a Friday, two days before the clocks change
const reporter = new Agent({ name: "reporter", model: scriptedModel(["All quiet.", "All quiet."]) });
const watcher = new Agent({
  name: "watcher",
  model: scriptedModel(["Nothing to report.", "The disk is full.", "nothing to report"]),
});

const runtime = await openRuntime({ store: "memory:", clock, pollMs: hour });
await runtime.schedules.create({
  name: "report",
  agent: reporter,
  input: "Summarise the night.",
  cron: "0 9 * * 1-5",
  timeZone: "Europe/Berlin",
});
await runtime.schedules.create({
  name: "pulse",
  agent: watcher,
  input: "Check the disk.",
  everyMs: 24 * hour,
  sessionId: "ops",
  heartbeat: true,
});
for (let passed = 0; passed < 75; passed++) await clock.advance(hour);

const { runs } = await runtime.list({ metadata: { schedule: "report" } });
const fires = runs.map(({ createdAt }) => new Date(createdAt).toISOString());
console.log("reports:", fires);
assert.deepEqual(fires, ["2026-03-30T07:00:00.000Z", "2026-03-27T08:00:00.000Z"]); // 09:00 in Berlin, both

const entries = await runtime.sessions.path("ops");
const said = entries.map((entry) => (entry.type === "message" ? entry.message : undefined));
console.log("messages of the watcher:", said.length);
assert.equal(said.length, 2); // three heartbeats, one of which had something to report
assert.match(JSON.stringify(said[1]), /The disk is full/);
await runtime.close();
