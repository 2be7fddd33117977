import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { TaskId } from "../../../../src/kernel/index.ts";
import type { TaskView } from "../../../../src/surfaces/view/run-view.ts";
import { capUsd, columnUsd } from "../../../base/format.ts";
import { Glyph } from "../../../parts/glyph.tsx";
import { Name } from "../../../parts/name.tsx";
import { BudgetMeter } from "../../../parts/budget-meter.tsx";
import { lookOfTask } from "../../../model/status.ts";
import { useKeptFocus } from "../../../base/use-kept-focus.ts";
import { rowsIn, useBand } from "../../../base/use-window.ts";
import { capWords, budgetUseOf, spentOf, toneOf } from "../../../model/money.ts";
import { doingOrResult } from "../../../../src/surfaces/view/task-words.ts";
import { useTreeOrder } from "../../../model/use-tree-order.ts";
import { focusedTask, taskOf } from "./focused-task.ts";
import type { LevelProps } from "./level-props.ts";

const rowHeight = 36;
const narrowRowHeight = 45;
const narrow = 720;

/** The chart as a table: the same tree, one line per agent. Only the lines in view are drawn. */
export function Rows(level: LevelProps): JSX.Element {
  const { view, root, selected, select } = level;
  const order = useTreeOrder(view, root.taskId);
  const { ref, ...band } = useBand<HTMLTableSectionElement>();
  const height = window.innerWidth < narrow ? narrowRowHeight : rowHeight;
  const { first, end, above, below } = rowsIn(band, order.length, height);
  const frame = useRef<HTMLDivElement>(null);
  /** The line that gets the focus as soon as it is drawn. */
  const focused = useRef<TaskId | null>(null);
  /** The line that had the focus when it was scrolled out of view. */
  const gone = useRef<TaskId | null>(null);
  const moveTo = (taskId: TaskId | undefined): void => {
    if (taskId === undefined) return;
    gone.current = null;
    focused.current = taskId;
    scrollTo(ref.current, order.indexOf(taskId) * height, height);
    select(taskId);
  };
  // A line may be drawn only after the table has scrolled. Until then, the keys move on from it.
  const from = (event: KeyboardEvent): TaskId =>
    focused.current ?? focusedTask(event) ?? gone.current ?? selected;
  useLayoutEffect(() => {
    if (focused.current === null) return;
    const button = ref.current?.querySelector<HTMLElement>(`[data-task="${focused.current}"] button`);
    if (button == null) return;
    focused.current = null;
    button.focus({ preventScroll: true });
  });
  // The table gets the focus of a line that is no longer drawn, so that no key press is lost.
  useKeptFocus((element) => {
    const taskId = taskOf(element);
    if (taskId === undefined) return;
    gone.current = taskId;
    frame.current?.focus({ preventScroll: true });
  });
  return (
    <div
      class="org-rows"
      ref={frame}
      tabIndex={-1}
      onKeyDown={(event) => moveByKey(event, order, from(event), moveTo)}
    >
      <table class="table dense">
        <thead>
          <tr>
            <th>Agent</th>
            <th class="c-doing">Now</th>
            <th class="c-meter wide-only">Budget used</th>
            <th class="c-small right">Spent</th>
            <th class="c-small right wide-only">Budget</th>
          </tr>
        </thead>
        <tbody ref={ref}>
          {above > 0 && <tr class="gap" aria-hidden="true" style={{ height: `${above}px` }} />}
          {order.slice(first, end).map((taskId) => {
            const task = view.tasks.get(taskId);
            return task === undefined ? null : <Row key={taskId} {...level} task={task} />;
          })}
          {below > 0 && <tr class="gap" aria-hidden="true" style={{ height: `${below}px` }} />}
        </tbody>
      </table>
    </div>
  );
}

function Row({
  model,
  view,
  root,
  selected,
  select,
  isDead,
  task,
}: LevelProps & { readonly task: TaskView }): JSX.Element {
  const use = budgetUseOf(task, model.held);
  const indent = `${Math.min(10, task.depth - root.depth) * 16}px`;
  return (
    <tr
      class={task.taskId === selected ? "selected" : ""}
      data-task={task.taskId}
      style={{ "--indent": indent }}
    >
      <td>
        <button
          class="agent-cell"
          style={{ paddingLeft: "var(--indent)" }}
          onClick={() => select(task.taskId)}
        >
          <Glyph look={lookOfTask(task)} status={task.status} />
          <Name text={task.agentId} />
        </button>
      </td>
      <td class="cut mid c-doing">
        {isDead && task.endedAt === null ? "no owner" : doingOrResult(task, view)}
      </td>
      <td class="wide-only">{use.cap !== null && <BudgetMeter values={use} tone={toneOf(task)} />}</td>
      <td class="right row-money">
        <span>
          {columnUsd(spentOf(use))}
          {use.cap !== null && <span class="narrow-only dim"> of {capUsd(use.cap)}</span>}
        </span>
        {use.cap !== null && (
          <span class="narrow-only" aria-hidden="true">
            <BudgetMeter values={use} size="small" tone={toneOf(task)} />
          </span>
        )}
      </td>
      <td class="right wide-only">{capWords(task)}</td>
    </tr>
  );
}

const pageRows = 20;

/** Up and down go to the line beside, with Page a screen further, Home and End to the first and the last. */
function moveByKey(
  event: KeyboardEvent,
  order: readonly TaskId[],
  from: TaskId,
  moveTo: (taskId: TaskId | undefined) => void,
): void {
  const at = order.indexOf(from);
  const last = order.length - 1;
  const targets: Readonly<Record<string, number>> = {
    ArrowUp: Math.max(0, at - 1),
    ArrowDown: Math.min(last, at + 1),
    PageUp: Math.max(0, at - pageRows),
    PageDown: Math.min(last, at + pageRows),
    Home: 0,
    End: last,
  };
  const target = targets[event.key];
  if (target === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  moveTo(order[target]);
}

/** Scrolls so that a line of a table is in view, also if it is not drawn. */
function scrollTo(body: HTMLElement | null, top: number, height: number): void {
  const scroller = body?.closest<HTMLElement>(".canvas");
  if (body == null || scroller == null) return;
  const frame = scroller.scrollHeight > scroller.clientHeight ? scroller : document.documentElement;
  const edge = frame === scroller ? scroller.getBoundingClientRect().top : 0;
  const line = body.getBoundingClientRect().top - edge + top;
  if (line < 0) frame.scrollTop += line;
  else if (line + height > frame.clientHeight) frame.scrollTop += line + height - frame.clientHeight;
}
