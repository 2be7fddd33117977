import { expect, test } from "vitest";
import { rootTaskId, type TaskId } from "../../../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import { budgetUseOfTeam, spendOfTeam, teamsOf } from "./org-tree.ts";

const nothing = { tokens: 0, calls: 0, lost: { tokens: 0, calls: 0, costUsd: 0 } };

function task(taskId: string, parentId: string | null, children: number, costUsd: number): TaskView {
  const own = { ...nothing, costUsd, lost: { ...nothing.lost, costUsd: costUsd / 4 } };
  const facts = { status: "running", questions: 0, waitsFor: [], endedAt: null, budget: { maxCostUsd: 1 } };
  return { taskId, parentId, agentId: taskId, children, own, total: own, ...facts } as unknown as TaskView;
}

function viewOf(tasks: readonly TaskView[]): RunView {
  return { tasks } as unknown as RunView;
}

const root = task(rootTaskId, null, 2, 0.04);

test("a child without children has a box with its name in the page's chart, and so has the root", () => {
  const [build, research, size] = [
    task("build", rootTaskId, 0, 0.1),
    task("research", rootTaskId, 1, 0.3),
    task("size", "research", 0, 0.1),
  ];
  const teams = teamsOf(viewOf([root, build, research, size]), root);
  expect(teams.map(({ head, members }) => [head.agentId, members.length])).toEqual([
    ["research", 2],
    ["build", 1],
    [rootTaskId, 1],
  ]);
  expect(spendOfTeam(teams[2]!)).toBe(0.04);
});

test("many children without children are one team in the page's chart, whose budget meter adds up their amounts", () => {
  const reports = Array.from({ length: 20 }, (_each, at) => task(`r${at}`, rootTaskId, 0, 0.2));
  const [team] = teamsOf(viewOf([root, ...reports]), root);
  expect([team?.isRest, team?.members.length]).toEqual([true, 20]);
  const use = budgetUseOfTeam(team!, (taskId: TaskId) => (taskId === reports[0]?.taskId ? 0.5 : 0));
  expect(use.held).toBe(0.5);
  expect(use.lost).toBeCloseTo(1);
  expect(use.own + use.team + use.lost).toBeCloseTo(4);
  expect(use.cap).toBe(20);
});
