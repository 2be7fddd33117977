import { expect, test } from "vitest";
import type { StepAddress, StepRecord } from "../../../src/kernel/index.ts";
import { ReplayProgress } from "../../../src/runtime/journal/replay-progress.ts";

function progressOf(...addresses: string[]): ReplayProgress {
  const steps = new Map(addresses.map((address) => [address as StepAddress, {} as StepRecord]));
  return new ReplayProgress({ steps, opened: new Map() }, () => true);
}

test("J1: records inside a step that the replay has passed are not counted again if a branch reaches them later", () => {
  const progress = progressOf("0", "0/left/0", "0/left/0/b/1", "0/right/0", "1", "2");
  progress.visit("0/left/0" as StepAddress, "race");
  progress.visit("0" as StepAddress, "step");
  for (const late of ["0/left/0/b/1", "0/right/0"]) progress.visit(late as StepAddress, "step");
  expect(progress.remain).toBe(true);
  progress.visit("1" as StepAddress, "step");
  expect(progress.remain).toBe(true);
  progress.visit("2" as StepAddress, "step");
  expect(progress.remain).toBe(false);
});

test("the progress of a replay counts the records below a model call after that call", () => {
  const progress = progressOf("0", "0/0", "0/1");
  progress.visit("0" as StepAddress, "llm");
  progress.visit("0/0" as StepAddress, "tool");
  expect(progress.remain).toBe(true);
  progress.visit("0/1" as StepAddress, "tool");
  expect(progress.remain).toBe(false);
});
