import type { BudgetUse } from "../../../model/money.ts";
import type { Held } from "../../../model/held.ts";
import { budgetUseOf } from "../../../model/money.ts";
import type { TaskId } from "../../../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import { lookOfTask } from "../../../model/status.ts";
import { childrenOf } from "../../../../src/surfaces/view/task-words.ts";

/** Number of reports of one manager that are shown before the rest is one line. */
const mostReports = 24;

/** One agent in the chart, with the reports that are shown. */
export interface OrgNode {
  readonly task: TaskView;
  readonly reports: readonly OrgNode[];
  /** Reports that are not shown. */
  readonly rest: readonly TaskView[];
}

/** Builds the tree below a task. Reports are in the order of hiring, so that nothing jumps. */
export function orgTree(view: RunView, rootTask: TaskView): OrgNode {
  const children = childrenOf(view);
  const build = (task: TaskView): OrgNode => {
    const all = children.get(task.taskId) ?? [];
    if (all.length <= mostReports) return { task, reports: all.map(build), rest: [] };
    const chosen = new Set(byNeed(all).slice(0, mostReports));
    return {
      task,
      reports: all.filter((each) => chosen.has(each)).map(build),
      rest: all.filter((each) => !chosen.has(each)),
    };
  };
  return build(rootTask);
}

/** All nodes, each before its reports. */
export function nodesOf(node: OrgNode): readonly OrgNode[] {
  return [node, ...node.reports.flatMap(nodesOf)];
}

const needs = [
  "failed",
  "waits",
  "running",
  "suspended",
  "paused",
  "pending",
  "cancelled",
  "completed",
] as const;

/** What needs a person first, then by spend. */
export function byNeed(tasks: readonly TaskView[]): readonly TaskView[] {
  return tasks.toSorted((one, other) => needOf(one) - needOf(other) || spend(other) - spend(one));
}

function needOf(task: TaskView): number {
  return needs.indexOf(lookOfTask(task));
}

function spend({ total }: TaskView): number {
  return total.costUsd ?? 0;
}

/** The tasks of each report of a task, with all below it. */
export interface Team {
  readonly head: TaskView;
  readonly members: readonly TaskView[];
  /** Whether the team is made of reports that have none of their own. */
  readonly isRest: boolean;
  /** Whether the team is the task itself, without those below it. */
  readonly isRoot: boolean;
}

/** So many reports without reports have a box each. */
const mostSingle = 8;

/**
 * The task itself and the teams below it, what needs a person first. Many reports without a team of their own are one
 * team; a few have a box each, with their names.
 */
export function teamsOf(view: RunView, rootTask: TaskView): readonly Team[] {
  const children = childrenOf(view);
  const below = (taskId: TaskId): TaskView[] =>
    (children.get(taskId) ?? []).flatMap((task) => [task, ...below(task.taskId)]);
  const reports = children.get(rootTask.taskId) ?? [];
  const teams = reports
    .filter(({ children: count }) => count > 0)
    .map((head): Team => teamOf(head, [head, ...below(head.taskId)]));
  const single = reports.filter(({ children: count }) => count === 0);
  if (single.length > mostSingle) teams.push({ ...teamOf(rootTask, single), isRest: true });
  else teams.push(...single.map((head) => teamOf(head, [head])));
  if (reports.length > 0) teams.push({ ...teamOf(rootTask, [rootTask]), isRoot: true });
  return teams.toSorted(
    (one, other) => urgencyOf(one) - urgencyOf(other) || spendOfTeam(other) - spendOfTeam(one),
  );
}

function teamOf(head: TaskView, members: readonly TaskView[]): Team {
  return { head, members, isRest: false, isRoot: false };
}

/** 0 if an agent of the team failed, 1 if one waits for a person, 2 otherwise. */
export function urgencyOf({ members }: Team): number {
  return members.reduce((most, member) => Math.min(most, needOf(member)), 2);
}

export function spendOfTeam({ head, members, isRest, isRoot }: Team): number {
  if (isRoot) return head.own.costUsd ?? 0;
  return isRest ? members.reduce((sum, member) => sum + spend(member), 0) : spend(head);
}

/** What a team spent, lost and holds. */
export function budgetUseOfTeam(team: Team, held: Held): BudgetUse {
  const { head, members, isRest, isRoot } = team;
  const cap = capOfTeam(team);
  if (isRoot) {
    const lost = head.own.lost.costUsd ?? 0;
    return { own: spendOfTeam(team) - lost, team: 0, lost, held: 0, cap };
  }
  if (!isRest) return { ...budgetUseOf(head, held), cap };
  const uses = members.map((member) => budgetUseOf(member, held));
  const sum = (part: "lost" | "held"): number => uses.reduce((total, use) => total + use[part], 0);
  return { own: 0, team: spendOfTeam(team) - sum("lost"), lost: sum("lost"), held: sum("held"), cap };
}

export function capOfTeam({ head, members, isRest, isRoot }: Team): number | null {
  // The budget of the task is that of all teams together.
  if (isRoot) return null;
  if (!isRest) return head.budget?.maxCostUsd ?? null;
  const caps = members.map(({ budget }) => budget?.maxCostUsd ?? 0);
  return caps.reduce((sum, cap) => sum + cap, 0) || null;
}
