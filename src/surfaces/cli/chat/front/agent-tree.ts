import { visibleLine, type TaskId } from "../../../../kernel/index.ts";
import type { RunView, TaskView } from "../../../view/run-view.ts";
import { causeWords, isAsking, taskWord } from "../../../view/status-words.ts";
import { childrenOf, doingOrResult, hasEndedTask } from "../../../view/task-words.ts";
import { duration } from "../../terminal/format.ts";
import type { TextMeasure } from "../screen/board.ts";
import type { Role, Theme } from "../screen/theme.ts";

/** The place in which a tree is drawn, and its look. */
export interface ChartPlace {
  readonly columns: number;
  /** Number of lines, including the line with the titles. */
  readonly rows: number;
  readonly theme: Theme;
  readonly measure: TextMeasure;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Whether the marked agent is highlighted. Default: `true`. */
  readonly hasFocus?: boolean;
}

interface ChartRow {
  readonly task: TaskView;
  /** The branch lines of the tree that stand before the agent. */
  readonly branches: string;
}

/** A cell of a line: a text and its role, which decides about its colour. */
interface Cell {
  readonly text: string;
  readonly role?: Role;
}

interface Column {
  readonly title: string;
  readonly width: number;
  readonly isRight?: boolean;
  readonly cell: (row: ChartRow) => Cell;
}

/** Widths from which further columns are shown. */
const [wide, widest] = [110, 150];
const gap = 2;

/**
 * The agents of a run as a tree: status, seat, current activity, cost and budget, and model calls of each agent.
 * The tree remembers the marked agent and the visible part. Only visible lines are created, so that a run with
 * thousands of agents takes no more time.
 */
export class AgentTree {
  #view: RunView | undefined;
  #rows: readonly ChartRow[] = [];
  #marked: TaskId | undefined;
  #first = 0;
  #isFolded = false;

  /** Shows a run as it is now. */
  show(view: RunView): void {
    if (this.#view === view) return;
    this.#view = view;
    this.#rows = rowsOf(view, this.#isFolded);
  }

  /** Hides the agents that have ended together with all of their reports, or shows them again. */
  fold(): void {
    this.#isFolded = !this.#isFolded;
    if (this.#view !== undefined) this.#rows = rowsOf(this.#view, this.#isFolded);
  }

  /** Number of agents that are left out. */
  get folded(): number {
    return (this.#view?.tasks.size ?? 0) - this.#rows.length;
  }

  /** The marked agent. `undefined` if the run has none. */
  get marked(): TaskView | undefined {
    return this.#rows[this.#markedAt()]?.task;
  }

  /** Number of lines of the whole chart. */
  get height(): number {
    return this.#rows.length + 1;
  }

  mark(taskId: TaskId): void {
    this.#marked = taskId;
  }

  /** Marks the agent that stands `by` lines below the marked agent, or above it if `by` is negative. */
  move(by: number): void {
    const at = Math.max(0, Math.min(this.#rows.length - 1, this.#markedAt() + by));
    this.#marked = this.#rows[at]?.task.taskId;
  }

  lines(place: ChartPlace): readonly string[] {
    const view = this.#view;
    if (view === undefined || place.rows < 1) return [];
    const at = this.#markedAt();
    const room = Math.max(1, place.rows - 1);
    this.#first = Math.max(at - room + 1, Math.min(this.#first, at));
    this.#first = Math.max(0, Math.min(this.#first, this.#rows.length - room));
    const inView = this.#rows.slice(this.#first, this.#first + room);
    const columns = columnsOf(inView, view, place);
    const { paint } = place.theme;
    const titles = columns.map(({ title }) => ({ text: title }));
    const lines = inView.map((row, index) => {
      const isMarked = this.#first + index === at && place.hasFocus !== false;
      const cells = columns.map(({ cell }) => cell(row));
      return `${isMarked ? paint("accent", "›") : " "} ${lineOf(columns, cells, place)}`;
    });
    const head = paint("dim", `  ${lineOf(columns, titles, place)}`);
    const all = place.rows === 1 ? lines : [head, ...lines];
    return all.map((line) => place.measure.cut(line, place.columns));
  }

  #markedAt(): number {
    return Math.max(
      0,
      this.#rows.findIndex(({ task }) => task.taskId === this.#marked),
    );
  }
}

/** Returns the ids of the tasks that have not ended, and of the tasks above them in the tree. */
function liveTasks({ tasks }: RunView): ReadonlySet<TaskId> {
  const live = new Set<TaskId>();
  for (const task of tasks) {
    let above: TaskView | undefined = hasEndedTask(task) ? undefined : task;
    while (above !== undefined && !live.has(above.taskId)) {
      live.add(above.taskId);
      above = above.parentId === null ? undefined : tasks.get(above.parentId);
    }
  }
  return live;
}

/**
 * Returns the tasks in the order of the tree, each before its reports, with the branch lines that lead to it. If
 * `isFolded` is `true`, returns only the root, the tasks that have not ended, and the tasks above them.
 */
function rowsOf(view: RunView, isFolded: boolean): readonly ChartRow[] {
  const children = childrenOf(view);
  const live = isFolded ? liveTasks(view) : undefined;
  const rows: ChartRow[] = [];
  // A list of what comes next instead of a recursion, because a chain of agents may be long.
  const next = [...(children.get(null) ?? [])]
    .map((task) => ({ task, branches: "", below: "" }))
    .toReversed();
  for (let each = next.pop(); each !== undefined; each = next.pop()) {
    const { task, branches, below } = each;
    rows.push({ task, branches });
    const all = children.get(task.taskId) ?? [];
    const reports = live === undefined ? all : all.filter(({ taskId }) => live.has(taskId));
    for (const [index, report] of reports.toReversed().entries()) {
      const isLast = index === 0;
      next.push({
        task: report,
        branches: `${below}${isLast ? "└─ " : "├─ "}`,
        below: `${below}${isLast ? "   " : "│  "}`,
      });
    }
  }
  return rows;
}

/**
 * Returns the sign for the status of a task, and its role. Each status has a different sign, so that the colour is
 * not necessary to understand it.
 */
function signOf(task: TaskView): Cell {
  const { status, questions } = task;
  if (isAsking(task) || (questions > 0 && !hasEndedTask(task))) return { text: "?", role: "hold" };
  switch (status) {
    case "running":
      return { text: "●", role: "accent" };
    case "waiting":
      return { text: "◌", role: "accent" };
    case "pausing":
    case "paused":
      return { text: "‖", role: "hold" };
    case "pending":
      return { text: "○", role: "dim" };
    case "completed":
      return { text: "✓", role: "good" };
    case "cancelled":
      return { text: "–", role: "dim" };
    default:
      return { text: "✗", role: "bad" };
  }
}

function standingOf(task: TaskView): string {
  return task.status === "pending" ? causeWords.seat : taskWord(task);
}

/** Explains the signs of the chart in words, for the help. */
export const chartSigns =
  "● works  ◌ waits  ? waits for you  ‖ paused  ○ waits for a seat  ✓ done  – cancelled  ✗ stopped or failed  ▪ has a seat";

/** Money in a column: two to four decimals. */
export function shortUsd(amount: number | null): string {
  if (amount === null) return "unpriced";
  if (amount > 0 && amount < 0.0001) return "<$0.0001";
  return `$${amount >= 100 ? amount.toFixed(2) : amount.toFixed(4)}`;
}

function costOfBudget({ total, budget }: TaskView): string {
  const cap = budget?.maxCostUsd ?? null;
  return cap === null ? shortUsd(total.costUsd) : `${shortUsd(total.costUsd)} of ${shortUsd(cap)}`;
}

/** Returns the number of answered model calls of a task, and the maximum that the task may make. */
export function turnsOf({ own, budget }: TaskView): string {
  const turns = own.calls - own.lost.calls;
  const most = budget?.maxTurns ?? null;
  return most === null ? String(turns) : `${turns}/${most}`;
}

function quiet(task: TaskView): Partial<Cell> {
  return hasEndedTask(task) ? { role: "dim" } : {};
}

function columnsOf(
  rows: readonly ChartRow[],
  view: RunView,
  { columns, now, measure }: ChartPlace,
): readonly Column[] {
  const widthOf = (title: string, texts: readonly string[]): number =>
    Math.max(measure.width(title), ...texts.map(measure.width));
  const name = ({ task, branches }: ChartRow): string =>
    `${branches}${signOf(task).text} ${visibleLine(task.agentId)}`;
  const end = ({ endedAt, createdAt }: TaskView): string =>
    duration((endedAt ?? Math.max(now, createdAt)) - createdAt);
  const isWide = columns >= wide;
  const money: Column = {
    title: "COST",
    width: widthOf(
      "COST",
      rows.map(({ task }) => costOfBudget(task)),
    ),
    isRight: true,
    cell: ({ task }) => ({ text: costOfBudget(task), ...quiet(task) }),
  };
  const turns: Column = {
    title: "TURNS",
    width: widthOf(
      "TURNS",
      rows.map(({ task }) => turnsOf(task)),
    ),
    isRight: true,
    cell: ({ task }) => ({ text: turnsOf(task), ...quiet(task) }),
  };
  const seat: Column = {
    title: "SEAT",
    width: 4,
    cell: ({ task }) => ({ text: task.hasSeat ? "▪" : "", role: "accent" }),
  };
  const time: Column = {
    title: "TIME",
    width: widthOf(
      "TIME",
      rows.map(({ task }) => end(task)),
    ),
    isRight: true,
    cell: ({ task }) => ({ text: end(task), role: "dim" }),
  };
  const status: Column = {
    title: "STATUS",
    width: widthOf(
      "STATUS",
      rows.map(({ task }) => standingOf(task)),
    ),
    cell: (row) => ({ text: standingOf(row.task), ...nameRole(row) }),
  };
  const model: Column = {
    title: "MODEL",
    width: Math.min(
      28,
      widthOf(
        "MODEL",
        rows.map(({ task }) => visibleLine(task.model ?? "")),
      ),
    ),
    cell: ({ task }) => ({ text: visibleLine(task.model ?? ""), role: "dim" }),
  };
  const agent = Math.min(
    widthOf("AGENT", rows.map(name)),
    Math.max(8, Math.floor(columns * (isWide ? 0.3 : 0.35))),
  );
  const before = [seat, ...(columns >= widest ? [status] : [])];
  const after =
    columns < 60 ? [money] : [...(columns >= widest ? [model] : []), ...(isWide ? [time] : []), turns, money];
  const fixed = [...before, ...after].reduce((sum, { width }) => sum + width + gap, 0);
  const doing = Math.max(0, columns - 2 - agent - gap - fixed);
  return [
    { title: "AGENT", width: agent, cell: (row) => ({ text: name(row), ...nameRole(row) }) },
    ...before,
    {
      title: "NOW",
      width: doing,
      cell: ({ task }) => ({
        text: visibleLine(doingOrResult(task, view)),
        ...(task.questions > 0 && !hasEndedTask(task) ? { role: "hold" as const } : quiet(task)),
      }),
    },
    ...after,
  ];
}

function nameRole({ task }: ChartRow): Partial<Cell> {
  const { role } = signOf(task);
  return role === undefined ? {} : { role };
}

/** Returns a line of cells, aligned with the titles of the columns. */
function lineOf(
  columns: readonly Column[],
  cells: readonly Cell[],
  { measure, theme }: Pick<ChartPlace, "measure" | "theme">,
): string {
  return columns
    .map(({ width, isRight = false }, index) => {
      const { text = "", role } = cells[index] ?? {};
      const shown = measure.cut(text, width);
      const space = " ".repeat(Math.max(0, width - measure.width(shown)));
      const painted = role === undefined ? shown : theme.paint(role, shown);
      return isRight ? space + painted : painted + space;
    })
    .join(" ".repeat(gap))
    .trimEnd();
}
