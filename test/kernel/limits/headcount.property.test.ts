import fc from "fast-check";
import { expect, test } from "vitest";
import {
  deepFreeze,
  formatTaskId,
  type HeadcountCommand,
  openHeadcount,
  Priority,
  stepHeadcount,
} from "../../../src/kernel/index.ts";
import { isFull, propertyRuns } from "../../effort.ts";
import { describeHeadcount, describeReply, HeadcountOracle } from "./headcount-oracle.ts";
import { allCommands, brokenPromises, commandOf, type SeatRun, seatRuns } from "./seat-promises.ts";

test("H1-H5, H8: after every random command the headcount equals a simple model of it and keeps every promise", () => {
  const met = new Map<string, number>();
  fc.assert(
    fc.property(seatRuns(allCommands), (run) => {
      for (const what of compareWithOracle(run)) met.set(what, (met.get(what) ?? 0) + 1);
    }),
    { numRuns: propertyRuns(20_000) },
  );
  const due = isFull ? situations : [];
  expect(due.filter((what) => (met.get(what) ?? 0) < 5)).toEqual([]);
});

/** Situations that the random commands must have reached at least five times for the comparison to be meaningful. */
const situations = Object.entries({
  acquire: ["already_hired", "unknown_parent", "full", "preemption_off", "nobody_below", "nobody_leaves"],
  "acquire with": ["granted", "pausing", "paused"],
  "settle with": ["paused", "granted", "recalled"],
  "suspend with": ["paused", "granted"],
  "release with": ["granted", "recalled", "kept"],
  "reprioritize with": ["pausing", "paused", "recalled"],
  "crash with": ["paused", "granted", "recalled"],
}).flatMap(([command, met]) => met.map((what) => `${command} ${what}`));

/**
 * Compares the headcount with the oracle after each command, throws at the first difference, and returns the situations
 * that occurred.
 */
function compareWithOracle({ budget, wishes }: SeatRun): readonly string[] {
  const oracle = new HeadcountOracle(budget, formatTaskId(0), Priority.NORMAL);
  let state = deepFreeze(openHeadcount(budget, formatTaskId(0), Priority.NORMAL));
  const commands: HeadcountCommand[] = [];
  const met: string[] = [];
  for (const wish of wishes) {
    const command = commandOf(wish, state);
    commands.push(command);
    const { state: next, outcome } = stepHeadcount(state, command);
    const reply = oracle.apply(command);
    const broken = brokenPromises({ before: state, after: deepFreeze(next), command, outcome });
    const actual = [describeHeadcount(next), describeReply(outcome), ...broken].join("; ");
    const expected = [oracle.describe(), describeReply(reply)].join("; ");
    if (actual !== expected) {
      throw new Error(`after ${JSON.stringify(commands)}\n     got ${actual}\nexpected ${expected}`);
    }
    if (outcome.kind === "refused") met.push(`acquire ${outcome.reason}`);
    if ("changes" in outcome)
      met.push(...outcome.changes.map((each) => `${command.type} with ${each.change}`));
    state = next;
  }
  return met;
}
