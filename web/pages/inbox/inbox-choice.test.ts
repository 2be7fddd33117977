import { expect, test } from "vitest";
import { approvals, looping } from "../../api/runs-feed.ts";
import type { Run } from "../../api/types.ts";
import { headlineOf, inbox } from "../../model/inbox-items.ts";
import { runWord } from "../../model/status.ts";
import { nextChoice, noChoice, type Choice } from "./inbox-choice.ts";

const [one, two, three] = [{ id: "1" }, { id: "2" }, { id: "3" }];
const start: Choice<{ readonly id: string }> = noChoice;

test("the inbox starts with its oldest item, and the one that the person wants precedes", () => {
  expect(nextChoice(start, [one, two], null)).toMatchObject({ chosen: one, answered: null });
  expect(nextChoice(start, [one, two], "2")).toMatchObject({ chosen: two, at: 1 });
});

test("the item after an answered one comes up in its place, and the answered one stays above it", () => {
  const second = nextChoice(start, [one, two, three], "2");
  const answered = nextChoice(second, [one, three], "2");
  expect(answered).toEqual({ chosen: three, at: 1, answered: two });
  expect(nextChoice(answered, [one, three], "2")).toEqual(answered);
  expect(nextChoice(answered, [one], "2")).toEqual({ chosen: one, at: 0, answered: three });
  expect(nextChoice(answered, [one, three], "1")).toEqual({ chosen: one, at: 0, answered: null });
});

test("the last item that was answered stays when nothing else waits", () => {
  expect(nextChoice(nextChoice(start, [one], null), [], null)).toEqual({
    chosen: undefined,
    at: 0,
    answered: one,
  });
});

test("a run that is paused as a crash loop is an item of the inbox, and its status in lists says so", () => {
  const run = { runId: "run_1", agentId: "poison", title: "Go", updatedAt: 5, status: "paused" } as Run;
  const loop: Run = { ...run, waitsFor: ["crash_loop"] };
  approvals.value = [];
  looping.value = [loop];
  const [item] = inbox.value ?? [];
  expect(item).toMatchObject({ kind: "looping", id: "run_1", at: 5 });
  expect(item && headlineOf(item)).toBe("Paused: it ends the processes that execute it");
  expect(runWord(loop, new Set())).toBe("Paused: it ends its processes");
  expect(runWord({ ...run, waitsFor: [] }, new Set())).toBe("Paused");
  looping.value = [];
});
