import { expect, test } from "vitest";
import { rootTaskId, type Event } from "../../../src/kernel/index.ts";
import type { Run } from "../../api/types.ts";
import { around, excerptWords, findInRun } from "./find-in-runs.ts";

const run = { runId: "run_1", agentId: "lead" } as unknown as Run;

function event(taskId: string, agentId: string, type: string, data: object = {}): Event {
  const parentId = taskId === rootTaskId ? null : rootTaskId;
  return { seq: 1, at: 5, taskId, agentId, parentId, type, data } as unknown as Event;
}

const events = [
  event(rootTaskId, "lead", "task_start"),
  event("t2", "licence", "task_start"),
  event(rootTaskId, "lead", "handoff", { target: "licence", task: "Read the files." }),
  event("t2", "licence", "task_end", { status: "completed", output: "Both packages have the MIT Licence." }),
];

test("the search of the page finds an agent that works in a run by a part of its name, in any case", () => {
  expect(findInRun(run, events, "LICEN").agents).toEqual([{ run, taskId: "t2", agentId: "licence" }]);
  expect(findInRun(run, events, "lead").agents).toEqual([]);
});

test("the search of the page finds a message between agents by its words, with sender and receiver", () => {
  expect(findInRun(run, events, "mit licence").messages).toMatchObject([{ from: "licence", to: "lead" }]);
  expect(findInRun(run, events, "read the").messages).toMatchObject([{ from: "lead", to: "licence" }]);
  expect(findInRun(run, events, " ")).toEqual({ agents: [], messages: [] });
});

test("the search of the page starts a long result at a word before the searched text, with an ellipsis", () => {
  const text = `${"many words ".repeat(20)}and then the licence of the package`;
  expect(around(text, "licence")).toMatch(/^…\w+ .*licence of the package$/u);
  expect(around("the licence", "licence")).toBe("the licence");
});

test("the search of the page cuts a message at words, with an ellipsis at each end where text is left out", () => {
  const [before, after] = [
    "x of the packages that were searched here ".slice(-40),
    " and of the others that were searched too",
  ];
  expect(excerptWords(`${before}licence${after.slice(0, 40)}`, "licence")).toMatch(
    /^…the packages .* licence and .*…$/u,
  );
  expect(excerptWords("the licence", "licence")).toBe("the licence");
});
