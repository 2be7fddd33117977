import { formatPriority, rootTaskId, visibleLine } from "../../../kernel/index.ts";
import type { MoneyLine, RunView, TaskView } from "../../view/run-view.ts";
import { counted } from "../../view/short-words.ts";
import {
  causeWords,
  endWordAt,
  hasQuestion,
  limitOf,
  statusWords,
  taskWord,
} from "../../view/status-words.ts";
import { doingInDetail, hasEndedTask } from "../../view/task-words.ts";
import { amountWords, topUpNames } from "../../view/top-up-offer.ts";
import { shortUsd, turnsOf, type AgentTree } from "../chat/front/agent-tree.ts";
import { counted as grouped, duration } from "../terminal/format.ts";
import {
  boardLines,
  endsLine,
  inboxPanel,
  ruleLine,
  type BoardFoot,
  type BoardPanel,
  type BoardPlace,
} from "./board-lines.ts";
import type { RunState } from "./run-feed.ts";
import { itemsOfRun, runWord } from "./watch-items.ts";

/** What the part below the chart shows. */
export type RunPanel = "inbox" | "money" | "agent";

export interface RunBoard {
  readonly feed: RunState;
  readonly chart: AgentTree;
  readonly panel: RunPanel;
  /** Position of the marked item of the inbox. `undefined` if the inbox does not have the focus. */
  readonly marked: number | undefined;
  readonly foot: BoardFoot;
}

/** Number of rows from which both the inbox and the costs are shown. */
const tall = 40;

/** One run on the whole terminal. */
export function runBoardLines(
  { feed, chart, panel, marked, foot }: RunBoard,
  place: BoardPlace,
): readonly string[] {
  const { view, run } = feed;
  chart.show(view);
  const { theme, now } = place;
  const inbox = inboxPanel(itemsOfRun(feed), marked, place);
  const money = moneyPanel(feed, place);
  const isTall = place.rows >= tall;
  const chosen =
    panel === "money" ? [money] : panel === "agent" ? agentPanel(feed, chart.marked, place) : [inbox];
  const panels = isTall ? [...(panel === "agent" ? chosen : []), money, inbox] : chosen;
  const title = `${theme.paint("strong", visibleLine(run.title ?? run.agentId))} ${theme.paint("dim", run.runId)}`;
  const time = view.startedAt === 0 ? "" : ` · ${duration((view.endedAt ?? now) - view.startedAt)}`;
  const head = [
    endsLine(title, `${theme.paint(roleOf(view), standing(feed))}${theme.paint("dim", time)}`, place),
    place.measure.cut(moneyLine(feed), place.columns),
    ruleLine(teamWords(view, chart.folded), place),
  ];
  return boardLines(
    head,
    (rows) => chart.lines({ ...place, rows, hasFocus: marked === undefined }),
    panels,
    foot,
    place,
  );
}

function roleOf({ status, questions, endedAt }: RunView): "good" | "bad" | "hold" | "accent" {
  if (status === "completed") return "good";
  if (endedAt === null) return questions > 0 || status === "paused" ? "hold" : "accent";
  return status === "cancelled" ? "hold" : "bad";
}

/** How a run stands, in words. */
export function standing({ run, view }: RunState): string {
  if (view.endedAt !== null)
    return endWordAt(view.status, view.failure === null ? null : limitOf(view.failure));
  if (view.seq < 0 || view.status === "pending" || view.crashLoop !== null) return runWord(run);
  const words = hasQuestion(view.status, view.questions) ? causeWords.person : statusWords[view.status];
  const lacks = run.waitsFor.includes("worker") || run.waitsFor.includes("host");
  return lacks ? `${words}; no worker executes it` : words;
}

/** Describes the budget: the amount spent, the amount reserved for calls in progress, and the rest. */
export function moneyLine(feed: RunState): string {
  const root = feed.view.tasks.get(rootTaskId);
  if (root === undefined) return "nothing spent";
  const spent = root.total.costUsd;
  const held = feed.heldBy(rootTaskId);
  const cap = root.budget?.maxCostUsd ?? null;
  const left = cap === null || spent === null ? null : Math.max(0, cap - spent - held);
  return [
    `${shortUsd(spent)} spent`,
    `${shortUsd(held)} reserved`,
    cap === null ? "no limit" : `budget ${shortUsd(cap)}${left === null ? "" : `, ${shortUsd(left)} left`}`,
    `${grouped(root.total.tokens)} tokens`,
  ].join(" · ");
}

function teamWords({ seats, maxSeats, live, active, tasks }: RunView, folded: number): string {
  return [
    counted(tasks.size, "agent"),
    ...(folded === 0 ? [] : [`${folded} folded, f shows them`]),
    `${active} at work`,
    ...(live > active ? [`${live - active} waiting`] : []),
    `seats ${seats}${maxSeats === null ? "" : ` of ${maxSeats}`}`,
  ].join(" · ");
}

/** Returns a panel with the cost of each agent for each model, the most expensive first. */
function moneyPanel({ view }: RunState, place: BoardPlace): BoardPanel {
  const lines = [...view.money]
    .filter(({ calls }) => calls > 0)
    .toSorted((one, other) => (other.usage.costUsd ?? 0) - (one.usage.costUsd ?? 0));
  return {
    title: "Money by agent",
    height: Math.max(1, lines.length),
    lines: (rows) =>
      lines.length === 0
        ? [place.theme.paint("dim", "  No model call has ended.")]
        : lines.slice(0, rows).map((line) => moneyRow(line, place)),
  };
}

function moneyRow({ agentId, model, calls, usage }: MoneyLine, place: BoardPlace): string {
  const amounts = [
    counted(calls, "call"),
    `${grouped(usage.inputTokens)} in`,
    `${grouped(usage.outputTokens)} out`,
    shortUsd(usage.costUsd),
  ].join("  ");
  return `  ${endsLine(`${visibleLine(agentId)}  ${visibleLine(model)}`, amounts, { ...place, columns: place.columns - 2 })}`;
}

/** What is known about the marked agent. */
function agentPanel(feed: RunState, task: TaskView | undefined, place: BoardPlace): readonly BoardPanel[] {
  if (task === undefined) return [];
  const { view } = feed;
  const { budget, own, total } = task;
  const limits = topUpNames.flatMap((name) => {
    const limit = budget?.[name] ?? null;
    return limit === null ? [] : [amountWords(name, limit)];
  });
  const facts = [
    `status    ${taskWord(task)}: ${visibleLine(doingInDetail(task, view))}`,
    `spent     ${shortUsd(total.costUsd)} with its reports, ${shortUsd(own.costUsd)} itself; ${shortUsd(feed.heldBy(task.taskId))} reserved`,
    `budget    ${limits.length === 0 ? "no limit" : limits.join(", ")}`,
    `calls     ${turnsOf(task)} turns, ${grouped(own.tokens)} tokens, ${visibleLine(task.model ?? "no model yet")}`,
    `seat      ${task.hasSeat ? "has one" : hasEndedTask(task) ? "left" : "has none"}; priority ${formatPriority(task.priority)}; task ${task.taskId}`,
    ...(task.result === null ? [] : [`result    ${visibleLine(task.result)}`]),
  ];
  return [
    {
      title: visibleLine(task.agentId),
      height: facts.length,
      lines: (rows) => facts.slice(0, rows).map((fact) => place.measure.cut(`  ${fact}`, place.columns)),
    },
  ];
}
