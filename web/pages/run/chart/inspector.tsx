import { formatPriority, type TaskId } from "../../../../src/kernel/index.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import { stepAt } from "../../../../src/surfaces/view/step-log.ts";
import type { JSX } from "preact";
import { useKeys } from "../../../base/keys.ts";
import { now } from "../../../base/now.ts";
import { runPath, setQuery, place } from "../../../base/route.ts";
import { capUsd, clock, grouped, shortModel, usd } from "../../../base/format.ts";
import { Glyph } from "../../../parts/glyph.tsx";
import { Icon } from "../../../parts/icon.tsx";
import { Line } from "../../../parts/line.tsx";
import { Name } from "../../../parts/name.tsx";
import { BudgetMeter } from "../../../parts/budget-meter.tsx";
import type { MeterTone } from "../../../model/money.ts";
import { taskWord } from "../../../../src/surfaces/view/status-words.ts";
import { lookOfTask } from "../../../model/status.ts";
import { budgetUseOf, rootId, spentOf, toneOf } from "../../../model/money.ts";
import { isPastRead } from "../../../model/live-past.ts";
import { openCancel, openPriority, openTopUp } from "../../../parts/open-form.tsx";
import { areOrdersOff } from "../../../parts/orders.ts";
import type { RunModel } from "../../../model/run-model.ts";
import { raisable, useTopUp } from "../../../model/top-up-left.ts";
import { isBadEnd, stepName, stepResult } from "../../../model/words/step-words.ts";
import { agentOf, doingInDetail, hasEndedTask } from "../../../../src/surfaces/view/task-words.ts";
import { useSteps } from "../../../model/use-steps.ts";

const tones = {
  running: "live",
  waits: "wait",
  suspended: "",
  paused: "hold",
  pending: "",
  completed: "",
  failed: "bad",
  cancelled: "",
} as const;

/** One agent: its budget meter with its lines, orders, other caps, facts and last steps. */
export function Inspector({
  model,
  view,
  taskId,
  isDead,
}: {
  readonly model: RunModel;
  readonly view: RunView;
  readonly taskId: TaskId;
  readonly isDead: boolean;
}): JSX.Element {
  const task = view.tasks.get(taskId);
  const isOpen = place.value.query.get("task") !== null;
  const right = useTopUp(model.runId, { status: view.status, budget: view.tasks.get(rootId)?.budget });
  if (task === undefined) return <Absent model={model} taskId={taskId} />;
  const isOwnerless = isDead && !hasEndedTask(task);
  const look = isOwnerless ? "failed" : lookOfTask(task);
  const word = isOwnerless ? "No owner" : look === "running" ? "Running" : taskWord(task);
  const does = isOwnerless ? "no worker owns it" : doingInDetail(task, view);
  const isReplay = model.playhead.value !== null;
  const calledModel = model.steps
    .of(taskId)
    .findLast(({ kind, startSeq }) => kind === "model" && startSeq <= view.seq);
  return (
    <aside class={`inspector ${isOpen ? "open" : ""}`} aria-label={`About ${task.agentId}`}>
      <div class="row">
        <Glyph look={look} status={isOwnerless ? "failed" : task.status} />
        <h2 class="grow">
          <Name text={task.agentId} />
        </h2>
        <span class={`chip ${tones[look]}`}>{word}</span>
        <Close />
      </div>
      {does !== word.toLowerCase() && <p class="mid">{does}</p>}
      <BudgetLines model={model} task={task} tone={isOwnerless ? "done" : toneOf(task)} />
      <div class="actions task-orders">
        {!isReplay && !hasEndedTask(task) && raisable(task.budget, right).length > 0 && (
          <button
            class="button small"
            disabled={areOrdersOff(model)}
            onClick={() => openTopUp(model, taskId)}
          >
            Top up
          </button>
        )}
        {!isReplay && !hasEndedTask(task) && (
          <button
            class="button small"
            disabled={areOrdersOff(model)}
            onClick={() => openPriority(model, taskId)}
          >
            Priority: {formatPriority(task.priority)}
          </button>
        )}
        <a class="button small" href={runPath(model.runId, "conversation", taskId)}>
          Conversation
        </a>
        {!isReplay && !hasEndedTask(task) && (
          <a class="button small" href={`${runPath(model.runId, "conversation", taskId)}&about=steer`}>
            Steer
          </a>
        )}
        {!isReplay && !hasEndedTask(task) && taskId !== rootId && (
          <button
            class="button small"
            disabled={areOrdersOff(model)}
            onClick={() => openCancel(model, taskId)}
          >
            Cancel agent
          </button>
        )}
      </div>
      <Caps model={model} view={view} task={task} />
      <section>
        <h3>Facts</h3>
        <dl class="pairs">
          <dt>Task</dt>
          <dd>
            <code>{taskId}</code>
          </dd>
          {task.parentId !== null && (
            <>
              <dt>Hired by</dt>
              <dd>
                {agentOf(task.parentId, view)}, at {clock(runTime(view, task.createdAt))}
              </dd>
            </>
          )}
          {calledModel !== undefined && (
            <>
              <dt>Model</dt>
              <dd>{shortModel(calledModel.name)}</dd>
            </>
          )}
          <dt>Seat</dt>
          <dd>{task.hasSeat ? "holds one" : task.endedAt === null ? "has none" : "freed"}</dd>
          <dt>Reports</dt>
          <dd>{grouped(task.children)}</dd>
        </dl>
      </section>
      <Steps model={model} view={view} task={task} />
    </aside>
  );
}

function close(): void {
  setQuery("task", null);
}

/** Closes the sheet, which a narrow screen shows above the chart. */
function Close(): JSX.Element {
  useKeys({ Escape: () => (place.value.query.get("task") === null ? false : close()) });
  return (
    <button class="icon-button small sheet-close" aria-label="Close" onClick={close}>
      <Icon name="close" />
    </button>
  );
}

/** An agent that is not hired yet at the event that is shown. */
function Absent({ model, taskId }: { readonly model: RunModel; readonly taskId: TaskId }): JSX.Element {
  const live = model.live.value;
  const task = live?.tasks.get(taskId);
  return (
    <aside class="inspector open" aria-label={`About ${task?.agentId ?? taskId}`}>
      <div class="row">
        <Glyph look="pending" />
        <h2 class="grow">
          <Name text={task?.agentId ?? taskId} />
        </h2>
        <Close />
      </div>
      {task !== undefined && live !== null && (
        <p class="mid">
          Not hired yet at this event. {agentOf(task.parentId, live)} hires it at{" "}
          {clock(runTime(live, task.createdAt))}.
        </p>
      )}
      <div class="actions task-orders">
        <button class="button small" onClick={() => void model.seek(null)}>
          Back to live
        </button>
      </div>
    </aside>
  );
}

function BudgetLines({
  model,
  task,
  tone,
}: {
  readonly model: RunModel;
  readonly task: TaskView;
  readonly tone: MeterTone;
}): JSX.Element {
  const use = budgetUseOf(task, model.held);
  const { own, team, lost, held, cap } = use;
  const left = cap === null ? null : Math.max(0, cap - own - team - lost - held);
  return (
    <div class="task-budget">
      <p class="row between">
        <b class="big">{task.total.costUsd === null ? "unpriced" : usd(spentOf(use))}</b>
        {cap !== null && cap > 0 && (
          <span class="dim">
            of {capUsd(cap)}, {Math.round((100 * (own + team + lost + held)) / cap)} %{" "}
            {held > 0 ? "used or held" : "used"}
          </span>
        )}
      </p>
      {cap !== null && <BudgetMeter values={use} size="large" tone={tone} />}
      <dl class={`lines ${tone}`}>
        <Line kind="own" name="own calls" amount={own} />
        {task.children > 0 && <Line kind="team" name="reports" amount={team} />}
        {lost > 0 && <Line kind="lost" name="unreported calls" amount={lost} />}
        {held > 0 && <Line kind="hatched" name="held for calls in flight" amount={held} />}
        {left !== null && <Line kind="left" name="left" amount={left} />}
      </dl>
    </div>
  );
}

/** The caps beside money. */
function Caps({
  model,
  view,
  task,
}: {
  readonly model: RunModel;
  readonly view: RunView;
  readonly task: TaskView;
}): JSX.Element | null {
  const { budget, total } = task;
  const until = task.endedAt ?? (model.playhead.value === null ? Math.max(now.value, view.at) : view.at);
  const caps = [
    ["Tokens", total.tokens, budget?.maxTokens ?? null, grouped(total.tokens)],
    ["Turns", total.calls, budget?.maxTurns ?? null, grouped(total.calls)],
    ["Deadline", until - task.createdAt, budget?.deadlineMs ?? null, clock(until - task.createdAt)],
  ] as const;
  const shown = caps.filter(([, , cap]) => cap !== null);
  if (shown.length === 0) return null;
  return (
    <section>
      <h3>Other caps</h3>
      <div class="meters">
        {shown.map(([name, used, cap, words]) => (
          <>
            <span class="dim">{name}</span>
            <progress max={cap ?? 1} value={Math.min(used, cap ?? 1)} aria-label={name} />
            <span>
              {words} of {name === "Deadline" ? clock(cap ?? 0) : grouped(cap ?? 0)}
            </span>
          </>
        ))}
      </div>
    </section>
  );
}

const lastSteps = 8;

function Steps({
  model,
  view,
  task,
}: {
  readonly model: RunModel;
  readonly view: RunView;
  readonly task: TaskView;
}): JSX.Element | null {
  const stepsOf = useSteps(model, [task.taskId]);
  if (!isPastRead(model, view)) return <p class="dim">Reading the steps</p>;
  const steps = stepsOf(task.taskId)
    .filter(({ kind }) => kind === "model" || kind === "tool" || kind === "step")
    .flatMap((step) => stepAt(step, view.seq) ?? [])
    .slice(-lastSteps)
    .toReversed();
  if (steps.length === 0) return null;
  return (
    <section>
      <h3 class="row between">
        Steps
        <a
          class="link"
          href={runPath(model.runId, "timeline", task.taskId === rootId ? undefined : task.taskId)}
        >
          Timeline
        </a>
      </h3>
      <ol class="steps">
        {steps.map((step) => (
          <li key={`${step.startSeq} ${step.kind} ${step.id}`}>
            <span class="dim">{clock(runTime(view, step.startAt))}</span>
            <span class="cut">{stepName(step, view)}</span>
            <span class={isBadEnd(step) ? "bad" : "dim"}>{stepResult(step, view)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
