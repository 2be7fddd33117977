import { formatPriority, type Event, type TaskId } from "../../../src/kernel/index.ts";
import { runTime } from "../../../src/surfaces/view/run-clock.ts";
import type { RunView, TaskView } from "../../../src/surfaces/view/run-view.ts";
import { Fragment, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { errorText, get } from "../../api/client.ts";
import { useRead } from "../../api/use-read.ts";
import { useKeys } from "../../base/keys.ts";
import { place, runPath, setQuery } from "../../base/route.ts";
import { capUsd, clock, counted, grouped, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Name } from "../../parts/name.tsx";
import { BudgetMeter } from "../../parts/budget-meter.tsx";
import { lookOfTask } from "../../model/status.ts";
import { useCurrentInView } from "../../base/use-current-in-view.ts";
import { rowsIn, useBand } from "../../base/use-window.ts";
import { budgetUseOf, rootId, spentOf, toneOf } from "../../model/money.ts";
import { sharesOfRequest, sized } from "../../model/request-shares.ts";
import { areFormsHere, openCancel, openPriority } from "../../parts/open-form.tsx";
import { QueuedInputs } from "./queued-input.tsx";
import { areOrdersOff, followUp, steer } from "../../parts/orders.ts";
import { isGateway, type RunModel } from "../../model/run-model.ts";
import { doingInDetail, hasEndedTask, toolTitle } from "../../../src/surfaces/view/task-words.ts";
import { threadOf } from "../../model/thread.ts";
import { ThreadView } from "../../parts/thread-view.tsx";
import { useConversation } from "../../model/use-events.ts";
import { useStickToEnd } from "../../base/use-stick-to-end.ts";
import { useSteps } from "../../model/use-steps.ts";
import { useTreeOrder } from "../../model/use-tree-order.ts";

/** The agents as a tree, and what one of them wrote, called and asked. */
export function Conversation({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  const wanted = place.value.query.get("task") as TaskId | null;
  if (view === null) return <></>;
  const taskId = wanted !== null && view.tasks.get(wanted) !== undefined ? wanted : rootId;
  const task = view.tasks.get(taskId);
  return (
    <div class="conversation">
      <div class="agents-side">
        <Agents model={model} view={view} selected={taskId} />
        {task !== undefined && (
          <button class="button small sheet-open" aria-expanded={isSheetOpen()} onClick={toggleSheet}>
            <span class="cut">About {task.agentId}</span>
          </button>
        )}
      </div>
      {task !== undefined && <TaskThread key={taskId} model={model} view={view} task={task} />}
    </div>
  );
}

/** Below 1,100 px the inspector is a sheet, which the query opens, so that it survives a reload. */
function isSheetOpen(): boolean {
  return place.value.query.get("about") !== null;
}

function toggleSheet(): void {
  setQuery("about", isSheetOpen() ? null : "agent");
}

const agentHeight = 32;
/** On a narrow screen the agents are in one line, of which so many are drawn. */
const narrow = 720;
const mostInLine = 100;

function Agents({
  model,
  view,
  selected,
}: {
  readonly model: RunModel;
  readonly view: RunView;
  readonly selected: TaskId;
}): JSX.Element {
  const order = useTreeOrder(view, rootId);
  const { ref, ...band } = useBand<HTMLDivElement>();
  // Agents that are hired before the chosen one in the tree move it.
  const strip = useCurrentInView(`${selected} ${order.indexOf(selected)}`);
  const isLine = window.innerWidth < narrow;
  const from = isLine ? Math.max(0, order.indexOf(selected) - mostInLine / 2) : 0;
  const rows = rowsIn(band, order.length, agentHeight);
  const shown = isLine ? order.slice(from, from + mostInLine) : order.slice(rows.first, rows.end);
  return (
    <nav class="agents" ref={strip} aria-label="Agents of the run">
      <div
        ref={ref}
        style={isLine ? {} : { paddingTop: `${rows.above}px`, paddingBottom: `${rows.below}px` }}
      >
        {shown.map((taskId) => {
          const task = view.tasks.get(taskId);
          return task === undefined ? null : (
            <a
              key={taskId}
              href={runPath(model.runId, "conversation", taskId)}
              aria-current={taskId === selected ? "page" : undefined}
              style={{ paddingLeft: `${8 + Math.min(8, task.depth) * 14}px` }}
            >
              <Glyph look={lookOfTask(task)} status={task.status} />
              <Name text={task.agentId} />
            </a>
          );
        })}
      </div>
    </nav>
  );
}

interface ThreadProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly task: TaskView;
}

function TaskThread({ model, view, task }: ThreadProps): JSX.Element {
  const { taskId } = task;
  const until = model.playhead.value ?? Infinity;
  const events = useConversation(model, taskId);
  const items = threadOf(events, until);
  const live = model.playhead.value === null ? model.textOf(taskId) : undefined;
  useKeys({ Escape: () => (isSheetOpen() ? toggleSheet() : false) });
  const scroller = useRef<HTMLDivElement>(null);
  useStickToEnd(scroller, items.length + Number(areFormsHere()) + (live?.text.length ?? 0));
  return (
    <>
      <div
        class="thread"
        ref={scroller}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={`Conversation of ${task.agentId}`}
      >
        <ThreadView
          items={items}
          view={view}
          agentId={task.agentId}
          taskId={taskId}
          model={model}
          live={live}
          time={(at) => clock(runTime(view, at))}
        />
        {items.length === 0 && live === undefined && <p class="dim">{nothingWords(task)}</p>}
      </div>
      <aside class={`inspector ${isSheetOpen() ? "open" : ""}`} aria-label={`About ${task.agentId}`}>
        <div class="row">
          <h2 class="grow">
            <Name text={task.agentId} />
          </h2>
          <button class="icon-button small sheet-close" aria-label="Close" onClick={toggleSheet}>
            <Icon name="close" />
          </button>
        </div>
        <p class="mid">{doingInDetail(task, view)}</p>
        <TaskBudget model={model} task={task} />
        <Saw model={model} task={task} events={events} until={until} view={view} />
        <dl class="pairs">
          <dt>Task</dt>
          <dd>
            <code>{taskId}</code>
          </dd>
          <dt>Calls</dt>
          <dd>{grouped(task.own.calls)}</dd>
          <dt>Tokens</dt>
          <dd>{grouped(task.own.tokens)}</dd>
        </dl>
        {!hasEndedTask(task) && model.playhead.value === null && (
          <div class="actions orders-of-task">
            <button
              class="button small"
              disabled={areOrdersOff(model)}
              onClick={() => openPriority(model, taskId)}
            >
              Priority: {formatPriority(task.priority)}
            </button>
            {taskId !== rootId && (
              <button
                class="button small"
                disabled={areOrdersOff(model)}
                onClick={() => openCancel(model, taskId)}
              >
                Cancel agent
              </button>
            )}
          </div>
        )}
        {!hasEndedTask(task) && !isGateway(model) && model.playhead.value === null && (
          <Steer model={model} task={task} events={events} />
        )}
      </aside>
    </>
  );
}

function nothingWords({ agentId, status }: TaskView): string {
  return status === "pending" ? `${agentId} has not started yet.` : `${agentId} has written nothing so far.`;
}

/** What the model of the last answer was sent, by what it was, and the tools that the agent called. */
function Saw({
  model,
  task: { taskId },
  events,
  until,
  view,
}: {
  readonly model: RunModel;
  readonly task: TaskView;
  readonly view: RunView;
  readonly events: readonly Event[];
  readonly until: number;
}): JSX.Element | null {
  const { runId } = model;
  const last = useSteps(model, [taskId])(taskId).findLast(
    ({ kind, outcome, endSeq }) => kind === "model" && outcome === "ok" && endSeq !== null && endSeq <= until,
  );
  const seq = last?.callSeq;
  const { value, problem } = useRead(
    async (signal) =>
      seq === undefined
        ? null
        : get("/api/runs/{runId}/requests/{seq}", { params: { runId, seq: String(seq) }, signal }),
    [runId, seq],
  );
  if (seq === undefined) return null;
  const end = events.find((event) => event.seq === last?.endSeq);
  const usage = end?.type === "message_end" ? (end.data.usage ?? null) : null;
  const request = value === null ? null : sized(value, usage);
  const shares = request === null ? [] : sharesOfRequest(request);
  const inputTokens = request?.usage?.inputTokens ?? shares.reduce((total, { tokens }) => total + tokens, 0);
  const tools = new Set(
    events.flatMap((event) =>
      event.type === "tool_execution_start" && event.seq <= until ? [event.data.toolName] : [],
    ),
  );
  return (
    <section>
      <h3>
        What the model saw last{" "}
        <a class="link" href={`${runPath(runId, "saw", taskId)}&call=${seq}`}>
          All it saw
        </a>
      </h3>
      {request === null ? (
        <p class="label">{problem ?? "Reading the request"}</p>
      ) : (
        <>
          <dl class="shares">
            {shares.map(
              ({ key, name, tokens }) =>
                tokens > 0 && (
                  <Fragment key={key}>
                    <dt>{name}</dt>
                    <dd>
                      <progress
                        aria-label={`Share of ${name}`}
                        max={Math.max(1, inputTokens)}
                        value={tokens}
                      />
                      <span>{grouped(tokens)}</span>
                    </dd>
                  </Fragment>
                ),
            )}
          </dl>
          <p class="label">{counted(inputTokens, "token")}; the parts are estimated from their texts.</p>
        </>
      )}
      {tools.size > 0 && (
        <>
          <h3>Tools it called</h3>
          <p class="row wrap">
            {[...tools].map((name) => (
              <code key={name} class="chip">
                {toolTitle(name, view)}
              </code>
            ))}
          </p>
        </>
      )}
    </section>
  );
}

function TaskBudget({ model, task }: { readonly model: RunModel; readonly task: TaskView }): JSX.Element {
  const use = budgetUseOf(task, model.held);
  return (
    <div class="task-budget">
      <p class="row between">
        <b class="big">{task.total.costUsd === null ? "unpriced" : usd(spentOf(use))}</b>
        {use.cap !== null && <span class="dim">of {capUsd(use.cap)}</span>}
      </p>
      {use.cap !== null && <BudgetMeter values={use} size="large" tone={toneOf(task)} />}
    </div>
  );
}

interface SteerProps {
  readonly model: RunModel;
  readonly task: TaskView;
  readonly events: readonly Event[];
}

function Steer({ model, task, events }: SteerProps): JSX.Element {
  const { agentId, taskId } = task;
  const [text, setText] = useState("");
  const [state, setState] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  // A person who chose to steer writes at once, and no letter is a key of the page.
  useEffect(() => {
    if (place.value.query.get("about") === "steer") field.current?.focus();
  }, []);
  const isEmpty = text.trim() === "" || areOrdersOff(model);
  const send = async (order: typeof followUp, when: string): Promise<void> => {
    try {
      await order(model, text, taskId);
      setText("");
      setState(`Sent. ${agentId} reads it ${when}.`);
    } catch (error) {
      setState(errorText(error));
    }
  };
  return (
    <section>
      <h3>Steer {agentId}</h3>
      <div class="box">
        <textarea
          ref={field}
          aria-label={`Steer ${agentId}`}
          placeholder={`Tell ${agentId} something. It reads this before its next turn.`}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <div class="actions end">
          <button
            class="button small"
            disabled={isEmpty}
            onClick={() => void send(followUp, "when it would otherwise end")}
          >
            Queue
          </button>
          <button
            class="button small"
            disabled={isEmpty}
            onClick={() => void send(steer, "before its next turn")}
          >
            Send
          </button>
        </div>
      </div>
      <QueuedInputs
        model={model}
        taskId={taskId}
        agentId={agentId}
        events={events}
        onAnswer={(words, taken) => {
          setState(words);
          // What was taken back can be changed and sent again. A text that is being written stays.
          if (taken !== undefined) setText((written) => (written === "" ? taken : written));
        }}
      />
      {state !== null && (
        <p class="label" role="status">
          {state}
        </p>
      )}
    </section>
  );
}
