import { expect, test, vi } from "vitest";
import { approvals, hidden, looping } from "../../api/runs-feed.ts";
import type { Approval, Run } from "../../api/types.ts";
import {
  headlineOf,
  inbox,
  putAway,
  sectionsOf,
  snoozeTimes,
  waitsForYou,
  type InboxItem,
} from "../../model/inbox-items.ts";
import { runWord } from "../../model/status.ts";
import { nextChoice, noChoice, type Choice } from "./inbox-choice.ts";

// The clock of the page follows the visibility of a document.
vi.mock("../../base/now.ts", async () => ({ now: (await import("@preact/signals")).signal(10) }));

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

test("a hidden item is off the list until it changes or its time has come, and a stopped run waits for no decision", () => {
  const run = { runId: "run_1", agentId: "poison", title: "Go", updatedAt: 5, status: "paused" } as Run;
  approvals.value = [];
  looping.value = [{ ...run, waitsFor: ["crash_loop"] }];
  const item = { id: "run_1", change: "5", until: null, at: 1 };
  hidden.value = [item];
  expect([inbox.value, putAway.value.length]).toEqual([[], 1]);
  hidden.value = [{ ...item, change: "4" }];
  expect([inbox.value?.length, putAway.value]).toEqual([1, []]);
  hidden.value = [{ ...item, until: 11 }];
  expect(inbox.value).toEqual([]);
  hidden.value = [{ ...item, until: 10 }];
  expect(inbox.value).toHaveLength(1);
  expect(waitsForYou.value).toEqual([]);
  [looping.value, hidden.value] = [[], []];
});

test("sections have decisions first, or one section per agent", () => {
  const run = { runId: "run_1", agentId: "poison", title: "Go" } as Run;
  const stopped: InboxItem = { kind: "looping", id: "run_1", at: 1, run };
  const approval = { runId: "run_2", agentId: "clerk", kind: "tool_call", toolName: "erase" } as Approval;
  const asked: InboxItem = { kind: "question", id: "2", at: 2, approval };
  const titles = (isByAgent: boolean): string[] =>
    sectionsOf([stopped, asked], isByAgent).map(({ title }) => title);
  expect(titles(false)).toEqual(["Needs your decision", "Stopped"]);
  expect(titles(true)).toEqual(["poison", "clerk"]);
});

function names(hour: number): string[] {
  return snoozeTimes(new Date(2026, 10, 18, hour)).map(({ name }) => name);
}

test("an item can be put off by an hour, to this evening before six, and to tomorrow at nine", () => {
  expect(names(9)).toEqual(["1 hour", "This evening", "Tomorrow"]);
  expect(names(20)).toEqual(["1 hour", "Tomorrow"]);
  expect(snoozeTimes(new Date(2026, 10, 30, 20))[1]?.at).toBe(new Date(2026, 11, 1, 9).getTime());
});
