import { formatPriority, Priority, type TaskId } from "../../../../src/kernel/index.ts";
import { isUnanswered } from "../../../../src/surfaces/view/question-log.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { runPath } from "../../../base/route.ts";
import { capUsd, counted, usd } from "../../../base/format.ts";
import { Glyph } from "../../../parts/glyph.tsx";
import { Name } from "../../../parts/name.tsx";
import { BudgetMeter } from "../../../parts/budget-meter.tsx";
import { lookOfTask } from "../../../model/status.ts";
import { useSize } from "../../../base/use-size.ts";
import { useBand } from "../../../base/use-window.ts";
import { capWords, budgetUseOf, spentOf, toneOf } from "../../../model/money.ts";
import { doingOrResult } from "../../../../src/surfaces/view/task-words.ts";
import { focusedTask } from "./focused-task.ts";
import type { LevelProps } from "./level-props.ts";
import {
  cardOf,
  handoverPath,
  layoutOf,
  type ChartLayout,
  type Placed,
  type RestLine,
} from "./chart-layout.ts";
import { nodesOf, orgTree, type OrgNode } from "./org-tree.ts";

/** The chart as cards, with strings as wide as budgets. */
export function Cards({ model, view, root, selected, select, isDead }: LevelProps): JSX.Element {
  const { ref, width } = useSize<HTMLDivElement>();
  const tree = useMemo(() => orgTree(view, root), [view, root]);
  const layout = useMemo(() => (width === 0 ? null : layoutOf(tree, width)), [tree, width]);
  const charged = useCharged(view);
  const { ref: inner, ...band } = useBand<HTMLDivElement>();
  const shown = layout === null ? null : inBand(layout, band, selected);
  return (
    <div
      class={`cards ${isDead ? "dead" : ""}`}
      ref={ref}
      role="tree"
      aria-label="Org chart"
      onKeyDown={(event) => moveByKey(event, tree, selected, select)}
    >
      {shown !== null && (
        <div
          class="cards-inner"
          ref={inner}
          style={{ height: `${shown.height}px`, width: `${shown.width}px` }}
        >
          <Strings layout={shown} view={view} charged={charged} />
          {shown.cards.map((placed) => (
            <Card
              key={placed.node.task.taskId}
              placed={placed}
              isRoot={placed.node === tree}
              view={view}
              held={model.held}
              isSelected={placed.node.task.taskId === selected}
              onSelect={select}
              isDead={isDead}
            />
          ))}
          {shown.rests.map((line) => (
            <Rest key={line.manager.taskId} line={line} runId={model.runId} />
          ))}
        </div>
      )}
    </div>
  );
}

/** A chart of so many cards is drawn as a whole. */
const mostCards = 60;

/** What is in view of a large chart, and the selected card, which has the focus. */
function inBand(
  layout: ChartLayout,
  band: { readonly top: number; readonly bottom: number },
  selected: TaskId,
): ChartLayout {
  if (layout.cards.length <= mostCards) return layout;
  const cards = layout.cards.filter(
    ({ y, height, node }) => (y + height > band.top && y < band.bottom) || node.task.taskId === selected,
  );
  const drawn = new Set(cards.map(({ node }) => node.task.taskId));
  return {
    ...layout,
    cards,
    strings: layout.strings.filter(({ task }) => drawn.has(task.taskId)),
    rests: layout.rests.filter(({ y }) => y > band.top && y < band.bottom),
  };
}

/** The tasks whose money changed since the last drawing, with their managers. */
function useCharged(view: RunView): ReadonlySet<TaskId> {
  const before = useRef<RunView | null>(null);
  const known = before.current;
  before.current = view;
  const charged = new Set<TaskId>();
  if (known === null || known.seq > view.seq || view.seq - known.seq > 50) return charged;
  for (const { taskId, total } of view.tasks) {
    const old = known.tasks.get(taskId);
    if (old !== undefined && old.total.costUsd !== total.costUsd) charged.add(taskId);
  }
  return charged;
}

function Strings({
  layout,
  view,
  charged,
}: {
  readonly layout: ChartLayout;
  readonly view: RunView;
  readonly charged: ReadonlySet<TaskId>;
}): JSX.Element {
  return (
    <svg class="strings" width={layout.width} height={layout.height} aria-hidden="true">
      <defs>
        <marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">
          <path d="M0 0 6 3 0 6z" />
        </marker>
      </defs>
      {layout.trunks.map(({ manager, path, width, core }) => (
        <g key={manager.taskId} class={`string-of ${toneOfString(manager, view)}`}>
          <path class="budget" d={path} stroke-width={width} />
          {core > 0 && <path class="spent" d={path} stroke-width={core} />}
        </g>
      ))}
      {layout.strings.map(({ task, path, width, core }) => (
        <g
          key={task.taskId}
          class={`string-of ${toneOfString(task, view)} ${charged.has(task.taskId) ? "charged" : ""}`}
        >
          <path class="budget" d={path} stroke-width={width} />
          {core > 0 && <path class="spent" d={path} stroke-width={core} />}
          <path class="flow" d={path} stroke-width={Math.max(1, core - 1)} />
        </g>
      ))}
      {layout.cards.map((card) => {
        const taker = card.node.task.yieldsTo === null ? undefined : cardOf(layout, card.node.task.yieldsTo);
        return taker === undefined ? null : (
          <path
            key={card.node.task.taskId}
            class="handover"
            d={handoverPath(card, taker)}
            marker-end="url(#arrow)"
          />
        );
      })}
    </svg>
  );
}

/** Amber leads to what waits for a person, also below. */
function toneOfString(task: TaskView, view: RunView): string {
  const look = lookOfTask(task);
  if (look !== "waits" && task.endedAt === null) {
    for (const question of view.asked)
      if (isUnanswered(question, view) && isBelow(question.taskId, task.taskId, view)) return "waits";
  }
  return look;
}

function isBelow(taskId: TaskId, manager: TaskId, view: RunView): boolean {
  for (let task = view.tasks.get(taskId); task !== undefined;) {
    if (task.taskId === manager) return true;
    task = task.parentId === null ? undefined : view.tasks.get(task.parentId);
  }
  return false;
}

interface CardProps {
  readonly placed: Placed;
  readonly view: RunView;
  readonly isRoot: boolean;
  readonly held: Parameters<typeof budgetUseOf>[1];
  readonly isSelected: boolean;
  readonly isDead: boolean;
  readonly onSelect: (taskId: TaskId) => void;
}

function Card({ placed, view, isRoot, held, isSelected, isDead, onSelect }: CardProps): JSX.Element {
  const { x, y, width, height, node } = placed;
  const { task } = node;
  const use = budgetUseOf(task, held);
  const look = lookOfTask(task);
  const isOver = task.endedAt !== null;
  const words = isDead && !isOver ? "no worker owns it" : doingOrResult(task, view);
  return (
    <div
      class={`card ${look} ${isRoot ? "root" : ""} ${isDead && !isOver ? "ownerless" : ""}`}
      data-task={task.taskId}
      role="treeitem"
      tabIndex={isSelected ? 0 : -1}
      aria-selected={isSelected}
      aria-level={task.depth + 1}
      style={{ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` }}
      onClick={() => onSelect(task.taskId)}
    >
      <span class="card-head">
        <Glyph look={look} status={task.status} />
        <Name text={task.agentId} />
        {task.priority !== Priority.NORMAL && (
          <span class={`priority ${task.priority > Priority.NORMAL ? "high" : ""}`}>
            {formatPriority(task.priority)}
          </span>
        )}
      </span>
      <span class="card-doing cut">{words}</span>
      {use.cap === null ? (
        <span class="meter none">
          <span class="unseen">
            {usd(spentOf(use))} spent, {capWords(task)}
          </span>
        </span>
      ) : (
        <BudgetMeter values={use} tone={toneOf(task)} />
      )}
      <span class="card-foot" aria-hidden="true">
        <span class="cut">
          <b>{task.total.costUsd === null ? "unpriced" : usd(spentOf(use))}</b>
          {use.held > 0 && ` + ${usd(use.held)} held`}
        </span>
        <span>{use.cap === null ? capWords(task) : `of ${capUsd(use.cap)}`}</span>
      </span>
    </div>
  );
}

function Rest({ line, runId }: { readonly line: RestLine; readonly runId: string }): JSX.Element {
  const { manager, rest, x, y } = line;
  const spent = rest.reduce((sum, { total }) => sum + (total.costUsd ?? 0), 0);
  return (
    <a
      class="rest"
      style={{ left: `${x}px`, top: `${y}px` }}
      href={`${runPath(runId, "chart")}?root=${manager.taskId}&zoom=seats`}
    >
      and {counted(rest.length, "more", "more")}, {usd(spent)}
    </a>
  );
}

/** Up is the manager, down the first report, left and right the reports beside. */
function moveByKey(
  event: KeyboardEvent,
  tree: OrgNode,
  selected: TaskId,
  select: (taskId: TaskId) => void,
): void {
  const nodes = nodesOf(tree);
  const from = focusedTask(event) ?? selected;
  const node = nodes.find(({ task }) => task.taskId === from);
  if (node === undefined) return;
  const parent = nodes.find(({ task }) => task.taskId === node.task.parentId);
  const beside = parent?.reports ?? [];
  const at = beside.indexOf(node);
  const targets: Readonly<Record<string, OrgNode | undefined>> = {
    ArrowUp: parent,
    ArrowDown: node.reports[0] ?? beside[at + 1],
    ArrowLeft: beside[at - 1] ?? parent,
    ArrowRight: beside[at + 1],
    Home: tree,
  };
  const target = targets[event.key];
  if (event.key === "Enter") {
    document.querySelector<HTMLElement>(".inspector a, .inspector button")?.focus();
    event.preventDefault();
  }
  if (target === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  select(target.task.taskId);
  // At once: the next key press may come before the next frame.
  document.querySelector<HTMLElement>(`[data-task="${target.task.taskId}"]`)?.focus();
}
