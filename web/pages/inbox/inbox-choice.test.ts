import { expect, test } from "vitest";
import { inbox } from "../../api/runs-feed.ts";
import type { Approval, Inbox, Run } from "../../api/types.ts";
import { headlineOf, itemsOf, sectionsOf, snoozeTimes, type InboxItem } from "../../model/inbox-items.ts";
import { lookOfRun, runWord, waitsForPerson } from "../../model/status.ts";
import { nextChoice, noChoice, type Choice } from "./inbox-choice.ts";

const none = { items: [], isMore: false };
const empty: Inbox = {
  questions: none,
  runs: none,
  letters: none,
  hidden: [],
  away: 0,
  waiting: 0,
  asking: [],
  setAside: [],
};

const [one, two, three] = [{ id: "1" }, { id: "2" }, { id: "3" }];
const start: Choice<{ readonly id: string }> = noChoice;

test("the inbox of the page starts with its oldest item, unless the person chooses another one", () => {
  expect(nextChoice(start, [one, two], null)).toMatchObject({ chosen: one, answered: null });
  expect(nextChoice(start, [one, two], "2")).toMatchObject({ chosen: two, at: 1 });
});

test("the inbox of the page chooses the next item after an answer, and shows the answered item above it", () => {
  const second = nextChoice(start, [one, two, three], "2");
  const answered = nextChoice(second, [one, three], "2");
  expect(answered).toEqual({ chosen: three, at: 1, answered: two });
  expect(nextChoice(answered, [one, three], "2")).toEqual(answered);
  expect(nextChoice(answered, [one], "2")).toEqual({ chosen: one, at: 0, answered: three });
  expect(nextChoice(answered, [one, three], "1")).toEqual({ chosen: one, at: 0, answered: null });
});

test("the inbox of the page keeps the last answered item when nothing else waits", () => {
  expect(nextChoice(nextChoice(start, [one], null), [], null)).toEqual({
    chosen: undefined,
    at: 0,
    answered: one,
  });
});

test("lists of the page name the machine to which a run is bound and for which it waits", () => {
  const run = { runId: "run_1", status: "pending", waitsFor: ["host"], host: "build-1" } as const;
  expect(runWord(run, asking([]))).toBe("Waits for machine build-1");
});

test("a run that is paused as a crash loop is an item of the page's inbox, and lists show this status", () => {
  const run = {
    runId: "run_1",
    agentId: "poison",
    title: "Go",
    updatedAt: 5,
    endedAt: null,
    status: "paused",
  };
  const loop = { ...run, waitsFor: ["crash_loop"] } as unknown as Run;
  inbox.value = { ...empty, runs: { items: [loop], isMore: false }, query: {} };
  const [item] = itemsOf({}) ?? [];
  expect(item).toMatchObject({ kind: "looping", id: "run_1", at: 5 });
  expect(item && headlineOf(item)).toBe("Paused: it ends the processes that execute it");
  const quiet = { runs: new Set<string>(), setAside: new Set<string>() };
  expect(runWord(loop, quiet)).toBe("Paused: it ends its processes");
  expect(runWord({ ...loop, waitsFor: [] }, quiet)).toBe("Paused");
  // Another part of the inbox has not been read yet.
  expect(itemsOf({ view: "away" })).toBeNull();
  inbox.value = null;
});

test("the inbox of the page has questions as the server sends them, then runs with the newest stop first, then messages", () => {
  const question = { runId: "run_1", approvalId: "a", requestedAt: 9 } as Approval;
  const letter = { message: { id: "m1", sentAt: 1 } } as never;
  inbox.value = {
    ...empty,
    questions: { items: [question], isMore: false },
    runs: { items: [stoppedRun("run_2", 3), stoppedRun("run_3", 5)], isMore: true },
    letters: { items: [letter], isMore: false },
    query: {},
  };
  expect(itemsOf({})?.map(({ id, at }) => [id, at])).toEqual([
    ["run_1:a", 9],
    ["run_3", 5],
    ["run_2", 3],
    ["m1", 1],
  ]);
  inbox.value = null;
});

test("a run waits for the person on the page until the person has hidden all its questions", () => {
  const run = { runId: "run_1", status: "waiting", waitsFor: ["person"] } as unknown as Run;
  // Its question is not read yet.
  expect(waitsForPerson(run, asking([]))).toBe(true);
  expect(waitsForPerson({ ...run, waitsFor: [] }, asking(["run_1"]))).toBe(true);
  const away = asking([], ["run_1"]);
  expect(waitsForPerson(run, away)).toBe(false);
  expect([runWord(run, away), lookOfRun(run, away)]).toEqual(["Waits for an answer", "suspended"]);
  expect(waitsForPerson({ ...run, status: "completed" }, asking(["run_1"]))).toBe(false);
});

test("the sections of the page's inbox have decisions first, or there is one section per agent", () => {
  const run = { runId: "run_1", agentId: "poison", title: "Go" } as Run;
  const stopped: InboxItem = { kind: "looping", id: "run_1", at: 1, run };
  const approval = { runId: "run_2", agentId: "clerk", kind: "tool_call", toolName: "erase" } as Approval;
  const asked: InboxItem = { kind: "question", id: "2", at: 2, approval };
  const titles = (isByAgent: boolean): string[] =>
    sectionsOf([stopped, asked], isByAgent).map(({ title }) => title);
  expect(titles(false)).toEqual(["Needs your decision", "Stopped"]);
  expect(titles(true)).toEqual(["poison", "clerk"]);
});

function stoppedRun(runId: string, endedAt: number): Run {
  return { runId, endedAt, status: "budget_exhausted" } as Run;
}

function asking(runs: readonly string[], setAside: readonly string[] = []) {
  return { runs: new Set(runs), setAside: new Set(setAside) };
}

function names(hour: number): string[] {
  return snoozeTimes(new Date(2026, 10, 18, hour)).map(({ name }) => name);
}

test("an item of the page's inbox can be snoozed by an hour, to this evening before six, and to tomorrow at nine", () => {
  expect(names(9)).toEqual(["1 hour", "This evening", "Tomorrow"]);
  expect(names(20)).toEqual(["1 hour", "Tomorrow"]);
  expect(snoozeTimes(new Date(2026, 10, 30, 20))[1]?.at).toBe(new Date(2026, 11, 1, 9).getTime());
});
