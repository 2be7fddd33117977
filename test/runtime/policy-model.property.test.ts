import fc from "fast-check";
import { expect, test } from "vitest";
import { priorities, type Priority } from "../../src/kernel/index.ts";
import { propertyRuns } from "../effort.ts";
import { nanoPerToken, SimulatedRun } from "./simulated-run.ts";

/** Picks values by the digits of one number. One number per action is cheap to generate and shrinks well. */
function pickerOf(seed: number): <Value>(values: readonly Value[]) => Value {
  let remaining = seed;
  return (values) => {
    const value = values[remaining % values.length] as (typeof values)[number];
    remaining = Math.floor(remaining / values.length);
    return value;
  };
}

const actions = [
  "call",
  "call",
  "call",
  "endCall",
  "endCall",
  "flush",
  "flush",
  "spawn",
  "spawn",
  "end",
  "end",
  "resume",
  "reprioritize",
  "suspend",
  "wake",
  "topUp",
  "crash",
] as const;
const tenths = [0, 1, 3, 5, 8, 10];

function act(run: SimulatedRun, seed: number): void {
  const pick = pickerOf(seed);
  const action = pick(actions);
  const taskId = pick(run.tasks);
  const priority: Priority = pick(priorities);
  const share = pick(tenths);
  switch (action) {
    case "call":
      run.call(taskId, pick([0, 1, 4, 9]), pick([1, 5, 12, 30]));
      break;
    case "endCall": {
      const inFlight = [...run.calls.keys()];
      if (inFlight.length > 0)
        run.endCall(pick(inFlight), pick(["settle", "settle", "settle", "lose", "refund"]), share);
      break;
    }
    case "flush":
      run.flush();
      break;
    case "spawn":
      run.spawn(taskId, priority, { maxTokens: pick([null, null, 40, 10, 0]) });
      break;
    case "end":
      run.end(taskId, share);
      break;
    case "resume":
      run.resume(taskId, priority);
      break;
    case "reprioritize":
      run.reprioritize(taskId, priority);
      break;
    case "suspend":
      run.suspend(taskId);
      break;
    case "wake":
      run.wake(taskId);
      break;
    case "topUp":
      run.topUp(taskId, pick([0, 5, 20]));
      break;
    case "crash":
      run.crash(share);
      break;
  }
}

test("H1-H8, B1-B6: a random run with priorities, calls, crashes and resumes breaks no promise and ends", () => {
  const seeds = fc.array(fc.noBias(fc.nat(2 ** 31 - 1)), { minLength: 10, maxLength: 32, size: "max" });
  const property = fc.property(
    fc.constantFrom(3, 2, 4, 1, 5),
    fc.constantFrom(true, true, true, false),
    fc.constantFrom(60, 25, 120, null),
    seeds,
    (maxAgents, allowPreempt, tokens, all) => {
      const maxCostUsd = tokens === null ? null : (tokens * nanoPerToken) / 1e9;
      const run = new SimulatedRun({ maxTokens: tokens, maxCostUsd }, { maxAgents, allowPreempt });
      for (const seed of all) {
        act(run, seed);
        if (run.problems.length > 0) break;
      }
      if (run.problems.length === 0) run.finish();
      expect(run.problems).toEqual([]);
    },
  );
  fc.assert(property, { numRuns: propertyRuns(20_000) });
});
