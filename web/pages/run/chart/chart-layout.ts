import type { TaskId } from "../../../../src/kernel/index.ts";
import type { TaskView } from "../../../../src/surfaces/view/run-view.ts";
import type { OrgNode } from "./org-tree.ts";

const cardHeight = 88;
const rootHeight = 100;
const rootWidth = 320;
const gap = 16;
const columnGap = 24;
const indent = 32;
const narrowest = 180;
const widest = 236;
const top = 8;
const side = 24;
const stringSpace = 78;
const narrow = 760;
/** Room between two strings that turn, and between them and the cards above and below. */
const turnGap = 3;
const turnSpace = 10;
/** A string that would move sideways by less is straight. */
const straight = 48;

/** Number of hanging strings that fit beside each other, and the width of the line that takes the place of more. */
const mostSideBySide = 8;
const trunkWidth = 10;

/** Width of the string of the root's whole budget. */
const wholeString = 54;

export interface Placed {
  readonly node: OrgNode;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface BudgetString {
  readonly task: TaskView;
  readonly path: string;
  readonly width: number;
  /** Width of its core: what is spent of the budget. */
  readonly core: number;
}

/** One line for the strings of many reports, from which a short string leads to each of them. */
interface Trunk extends Omit<BudgetString, "task"> {
  readonly manager: TaskView;
}

/** The line "and 180 more" below the reports of a manager. */
export interface RestLine {
  readonly manager: TaskView;
  readonly rest: readonly TaskView[];
  readonly x: number;
  readonly y: number;
}

export interface ChartLayout {
  readonly cards: readonly Placed[];
  readonly strings: readonly BudgetString[];
  readonly trunks: readonly Trunk[];
  readonly rests: readonly RestLine[];
  readonly width: number;
  readonly height: number;
}

/** Places the cards: the root on top, its reports in a row while columns fit, everyone else below their manager. */
export function layoutOf(root: OrgNode, available: number): ChartLayout {
  return new Layout(root, Math.max(280, available)).result();
}

interface Slots {
  /** Number of columns, also of those that have no report yet. */
  readonly count: number;
  readonly column: number;
}

/** The columns of a row. Their number doubles as agents are hired, so that most of them keep their places. */
function slotsOf(columns: number, inner: number): Slots {
  const columnOf = (count: number): number => (inner - (count - 1) * columnGap) / Math.max(1, count);
  const doubled = 2 ** Math.ceil(Math.log2(Math.max(1, columns)));
  const count = columnOf(doubled) >= narrowest ? doubled : columns;
  return { count, column: Math.min(widest + indent, columnOf(count)) };
}

class Layout {
  readonly #cards: Placed[] = [];
  readonly #strings: BudgetString[] = [];
  readonly #trunks: Trunk[] = [];
  readonly #rests: RestLine[] = [];
  readonly #root: OrgNode;
  readonly #available: number;
  readonly #rootCap: number;

  constructor(root: OrgNode, available: number) {
    this.#root = root;
    this.#available = available;
    this.#rootCap = root.task.budget?.maxCostUsd ?? 0;
  }

  result(): ChartLayout {
    const { reports } = this.#root;
    const inner = this.#available - 2 * side;
    const columns = reports.length + (this.#root.rest.length > 0 ? 1 : 0);
    const column = (inner - (columns - 1) * columnGap) / Math.max(1, columns);
    const isRow = this.#available >= narrow && (columns === 0 || (reports.length > 0 && column >= narrowest));
    if (isRow) this.#placeRow(slotsOf(columns, inner));
    else this.#placeHanging();
    const cards = this.#cards.reduce((lowest, card) => Math.max(lowest, card.y + card.height), 0);
    const height = this.#rests.reduce((lowest, { y }) => Math.max(lowest, y + 24), cards);
    return {
      cards: this.#cards,
      strings: this.#strings,
      trunks: this.#trunks,
      rests: this.#rests,
      width: this.#available,
      height: height + gap,
    };
  }

  #placeRow({ count, column }: Slots): void {
    const { reports, rest, task } = this.#root;
    const width = count * column + (count - 1) * columnGap;
    const left = (this.#available - width) / 2;
    const root = this.#put(this.#root, (this.#available - rootWidth) / 2, top, rootWidth, rootHeight);
    const row = top + rootHeight + stringSpace;
    const heads = reports.map((report, at) => {
      const x = left + at * (column + columnGap);
      this.#hang(report, { x, y: row, width: column });
      return { report, center: x + column / 2 };
    });
    if (rest.length > 0)
      this.#rests.push({ manager: task, rest, x: left + reports.length * (column + columnGap), y: row + 32 });
    this.#drawRow(root, heads, row);
  }

  /** Strings leave the root side by side and never cross: outer ones turn first. */
  #drawRow(
    root: Placed,
    heads: readonly { readonly report: OrgNode; readonly center: number }[],
    row: number,
  ): void {
    const middle = root.x + root.width / 2;
    const lefts = heads.filter(({ center }) => center < middle).length;
    const wanted = this.#widths(
      heads.map(({ report }) => report.task),
      rootWidth - 120,
      wholeString,
    );
    // The strings of one side turn below each other, so that they must fit between the root and its reports.
    const sides = [wanted.slice(0, lefts), wanted.slice(lefts)];
    const most = Math.max(...sides.map((one) => one.reduce((sum, width) => sum + width + turnGap, 0)));
    const scale = Math.min(1, (stringSpace - 2 * turnSpace) / Math.max(1, most));
    const widths = wanted.map((width) => Math.max(1.5, width * scale));
    const space = 6;
    const total = widths.reduce((sum, width) => sum + width + space, -space);
    let x = root.x + root.width / 2 - total / 2;
    const from = root.y + root.height;
    for (const [at, { report, center }] of heads.entries()) {
      const width = widths[at] ?? 2;
      const start = x + width / 2;
      x += width + space;
      const outer = at < lefts ? widths.slice(0, at) : widths.slice(at + 1);
      const turn = outer.reduce((sum, each) => sum + each + turnGap, from + turnSpace + width / 2);
      // A report that is nearly below the place where its string leaves has a straight one.
      const end = Math.abs(center - start) < straight ? start : center;
      this.#string(report.task, elbowDown(start, from, turn, end, row), width);
    }
  }

  #placeHanging(): void {
    this.#hang(this.#root, { x: side, y: top, width: Math.min(this.#available - 2 * side, 560) }, true);
  }

  /** Places a card and everyone below it, indented. Returns the card, and the bottom of all. */
  #hang(
    node: OrgNode,
    { x, y, width }: { readonly x: number; readonly y: number; readonly width: number },
    isRoot = false,
  ): { readonly card: Placed; readonly bottom: number } {
    const own = isRoot ? rootHeight : cardHeight;
    const card = this.#put(node, x, y, width, own);
    let bottom = y + own;
    const placed: Placed[] = [];
    for (const report of node.reports) {
      const hung = this.#hang(report, { x: x + indent, y: bottom + gap, width: width - indent });
      bottom = hung.bottom;
      placed.push(hung.card);
    }
    if (node.rest.length > 0) {
      this.#rests.push({ manager: node.task, rest: node.rest, x: x + indent, y: bottom + gap });
      bottom += gap + 24;
    }
    this.#drawHanging(card, placed);
    return { card, bottom };
  }

  /** The string of the first report is nearest to the cards, that of the last one is outermost. */
  #drawHanging(parent: Placed, reports: readonly Placed[]): void {
    if (reports.length > mostSideBySide) return this.#drawTrunk(parent, reports);
    const widths = this.#widths(
      reports.map(({ node }) => node.task),
      indent - 10,
      10,
    );
    let x = parent.x + indent - 4;
    for (const [at, report] of reports.entries()) {
      const width = widths[at] ?? 2;
      x -= width / 2;
      const path = elbowRight(x, parent.y + parent.height, report.y + 20, report.x);
      this.#string(report.node.task, path, width);
      x -= width / 2 + 2;
    }
  }

  /** The strings of many reports share a trunk: side by side they would leave the space beside the cards. */
  #drawTrunk(parent: Placed, reports: readonly Placed[]): void {
    const tasks = reports.map(({ node }) => node.task);
    const x = parent.x + indent / 2;
    const last = reports.at(-1);
    if (last === undefined) return;
    const sum = (read: (task: TaskView) => number | null | undefined): number =>
      tasks.reduce((total, task) => total + (read(task) ?? 0), 0);
    const [cap, spent] = [sum(({ budget }) => budget?.maxCostUsd), sum(({ total }) => total.costUsd)];
    const width =
      this.#rootCap === 0 ? 3 : Math.max(2, Math.min(trunkWidth, (wholeString * cap) / this.#rootCap));
    const core = spent === 0 ? 0 : Math.max(1.5, width * (cap === 0 ? 0.5 : Math.min(1, spent / cap)));
    const path = `M${x} ${parent.y + parent.height}V${last.y + 20 - radius}`;
    this.#trunks.push({ manager: parent.node.task, path, width, core });
    for (const { node, x: targetX, y } of reports)
      this.#string(node.task, elbowRight(x, y + 20 - radius, y + 20, targetX), 2);
  }

  /** Widths by budget, at least 2 px, scaled down if together they need more than there is. */
  #widths(tasks: readonly TaskView[], space: number, whole: number): readonly number[] {
    const widths = tasks.map(({ budget }) => {
      const cap = budget?.maxCostUsd ?? null;
      return cap === null || this.#rootCap === 0
        ? 3
        : Math.max(2, Math.min(whole, (wholeString * cap) / this.#rootCap));
    });
    const total = widths.reduce((sum, width) => sum + width + 2, 0);
    const scale = Math.min(1, space / Math.max(1, total));
    return widths.map((width) => Math.max(1.5, width * scale));
  }

  #string(task: TaskView, path: string, width: number): void {
    const cap = task.budget?.maxCostUsd ?? null;
    const spent = task.total.costUsd ?? 0;
    const share = cap === null || cap === 0 ? 0.5 : Math.min(1, spent / cap);
    this.#strings.push({ task, path, width, core: spent === 0 ? 0 : Math.max(1.5, width * share) });
  }

  #put(node: OrgNode, x: number, y: number, width: number, height: number): Placed {
    const placed = { node, x, y, width, height };
    this.#cards.push(placed);
    return placed;
  }
}

const radius = 8;

function elbowDown(x: number, y: number, turn: number, targetX: number, targetY: number): string {
  const way = Math.sign(targetX - x);
  const round = Math.min(radius, Math.abs(targetX - x) / 2);
  if (round < 1) return `M${x} ${y}V${targetY}`;
  return `M${x} ${y}V${turn - round}Q${x} ${turn} ${x + way * round} ${turn}H${targetX - way * round}Q${targetX} ${turn} ${targetX} ${turn + round}V${targetY}`;
}

function elbowRight(x: number, y: number, targetY: number, targetX: number): string {
  const round = Math.min(radius, Math.max(1, targetX - x));
  return `M${x} ${y}V${targetY - round}Q${x} ${targetY} ${x + round} ${targetY}H${targetX}`;
}

/** The arrow from the card that gave its seat to the card that took it. */
export function handoverPath(from: Placed, to: Placed): string {
  const x = Math.max(from.x + from.width, to.x + to.width) + 12;
  const [start, end] = [from.y + from.height / 2, to.y + to.height / 2];
  return `M${from.x + from.width} ${start}H${x}V${end}H${to.x + to.width + 3}`;
}

export function cardOf(layout: ChartLayout, taskId: TaskId | null): Placed | undefined {
  return layout.cards.find(({ node }) => node.task.taskId === taskId);
}
