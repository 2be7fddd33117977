import { visibleLine, visibleText, type TaskId } from "../../src/kernel/index.ts";
import { droppedAt, isUnanswered } from "../../src/surfaces/view/question-log.ts";
import type { RunView, TaskView } from "../../src/surfaces/view/run-view.ts";
import { limitOf } from "../../src/surfaces/view/status-words.ts";
import type { ComponentChildren, JSX } from "preact";
import { runPath } from "../base/route.ts";
import { counted, downTime, oneLine, usd, shortId } from "../base/format.ts";
import { Glyph } from "./glyph.tsx";
import { QuestionCard } from "./open-form.tsx";
import { Prose } from "./prose.tsx";
import { ToolCall } from "./tool-call.tsx";
import { cancelWords } from "../../src/surfaces/view/cancel-words.ts";
import { endWords, priorityWords } from "../model/words/event-words.ts";
import { failureWords } from "../model/words/failure-words.ts";
import type { LiveMessage } from "../../src/surfaces/view/live-text.ts";
import type { RunModel } from "../model/run-model.ts";
import { lookOfTask } from "../model/status.ts";
import type { ThreadItem } from "../model/thread.ts";

interface ThreadViewProps {
  readonly items: readonly ThreadItem[];
  readonly view: RunView;
  readonly model: RunModel;
  readonly agentId: string;
  readonly taskId: TaskId;
  readonly live: LiveMessage | undefined;
  readonly time: (at: number) => string;
}

/** The entries of one agent's conversation, with the message that is being written. */
export function ThreadView({
  items,
  view,
  model,
  agentId,
  taskId,
  live,
  time,
}: ThreadViewProps): JSX.Element {
  const open = items.findLast((item) => {
    const question = item.kind === "question" ? view.asked.get(item.approvalId) : undefined;
    return question !== undefined && isUnanswered(question, view);
  });
  return (
    <>
      {items.map((item) => (
        <Entry
          key={item.seq}
          item={item}
          view={view}
          model={model}
          agentId={agentId}
          taskId={taskId}
          time={time}
          hasKeys={item === open}
        />
      ))}
      {live !== undefined && (live.text !== "" || live.reasoning !== "") && (
        <Message when="" who={agentId} facts="writing">
          {live.reasoning !== "" && live.text === "" && <Reasoning text={live.reasoning} isOpen />}
          <Prose text={live.text}>
            <span class="caret" />
          </Prose>
        </Message>
      )}
    </>
  );
}

interface EntryProps extends Omit<ThreadViewProps, "items" | "live"> {
  readonly item: ThreadItem;
  readonly hasKeys: boolean;
}

function Entry({ item, view, model, agentId, taskId, time, hasKeys }: EntryProps): JSX.Element | null {
  const when = time(item.at);
  switch (item.kind) {
    case "input":
      return (
        <Message when={when} who={item.from} kind="brief">
          <Prose text={item.text} />
        </Message>
      );
    case "message": {
      if (item.text === "" && item.reasoning === "" && !item.isEmpty) return null;
      const facts = [
        item.turn > 0 ? `turn ${item.turn}` : null,
        item.tokens === null ? null : counted(item.tokens, "token"),
        isShared(item, view) ? "free" : item.costUsd === null ? null : usd(item.costUsd),
      ].filter((fact) => fact !== null);
      return (
        <Message when={when} who={agentId} facts={facts.join(" · ")}>
          {item.reasoning !== "" && <Reasoning text={item.reasoning} />}
          {item.text !== "" && <Prose text={item.text} />}
          {item.isEmpty && <p class="note plain">The answer is empty.</p>}
        </Message>
      );
    }
    case "tool":
      return (
        <Message when={when}>
          <ToolCall item={item} progress={model.texts.progressOf(taskId, item.callId)} />
        </Message>
      );
    case "question": {
      const question = view.asked.get(item.approvalId);
      if (question === undefined) return null;
      const dropped = droppedAt(question, view);
      return (
        <Message when={time(question.decidedAt ?? dropped ?? item.at)}>
          <QuestionCard
            question={{ ...question, runId: view.runId, droppedAt: dropped }}
            hasKeys={hasKeys && model.playhead.value === null}
          />
        </Message>
      );
    }
    case "hired":
      return (
        <Message when={when}>
          <a class="hired" href={runPath(view.runId, "conversation", item.taskId)}>
            <HiredGlyph task={view.tasks.get(item.taskId)} />
            <b>hired {item.agent}</b>
            {item.task !== "" && <span class="cut dim">{oneLine(item.task)}</span>}
          </a>
        </Message>
      );
    case "crash":
      return <Crash view={view} seq={item.recoverySeq} />;
    case "priority":
      return (
        <Message when={when}>
          <p class="note plain">{priorityWords(item.change, view)}</p>
        </Message>
      );
    case "note":
      return (
        <Message when={when}>
          <p class={`note ${item.tone}`}>{visibleText(item.text)}</p>
        </Message>
      );
    case "end":
      return (
        <Message when={when}>
          <p class="note bad">
            <Glyph look={item.status === "cancelled" ? "cancelled" : "failed"} status={item.status} />
            {agentId} {endOf(item, view.tasks.get(taskId), view)}
          </p>
        </Message>
      );
  }
}

/** How the agent stands that a hand-off hired. */
function HiredGlyph({ task }: { readonly task: TaskView | undefined }): JSX.Element {
  return task === undefined ? (
    <Glyph look="pending" />
  ) : (
    <Glyph look={lookOfTask(task)} status={task.status} />
  );
}

/** Whether a fork shares an entry with its origin, which paid for it. */
function isShared({ seq }: ThreadItem, { forkedFrom }: RunView): boolean {
  return forkedFrom !== null && seq <= forkedFrom.at;
}

/** How a task ended. Who cancelled it says more than its error, which has the same reason. */
function endOf(
  { status, failure }: Extract<ThreadItem, { kind: "end" }>,
  task: TaskView | undefined,
  view: RunView,
): string {
  const words = status === "cancelled" && task !== undefined ? cancelWords(task, view) : null;
  if (words !== null) return `was ${words}`;
  return failure === null
    ? endWords(status)
    : `${endWords(status, limitOf(failure))}. ${failureWords(failure)}`;
}

interface MessageProps {
  readonly when: string;
  readonly who?: string;
  readonly facts?: string;
  readonly kind?: "brief";
  readonly children: ComponentChildren;
}

function Message({ when, who, facts, kind, children }: MessageProps): JSX.Element {
  return (
    <article class={`message ${kind ?? ""}`}>
      <span class="when">{when}</span>
      <div class="content">
        {who !== undefined && (
          <p class="who">
            <b>{who}</b>
            {facts !== undefined && <span class="label">{facts}</span>}
          </p>
        )}
        {children}
      </div>
    </article>
  );
}

function Reasoning({
  text,
  isOpen = false,
}: {
  readonly text: string;
  readonly isOpen?: boolean;
}): JSX.Element {
  return (
    <details class="reasoning" open={isOpen}>
      <summary>Reasoning</summary>
      <Prose text={text} />
    </details>
  );
}

/** A worker without a name of its own has a long id, of which the beginning is enough. */
function WorkerName({
  name,
  unnamed,
}: {
  readonly name: string | null;
  readonly unnamed: string;
}): JSX.Element {
  return name === null ? <>{unnamed}</> : <span title={visibleLine(name)}>{visibleLine(shortId(name))}</span>;
}

/** A crash is a torn line across the conversation, with what was replayed. */
function Crash({ view, seq }: { readonly view: RunView; readonly seq: number }): JSX.Element | null {
  const crash = view.recoveries.find((each) => each.seq === seq);
  if (crash === undefined) return null;
  return (
    <div class="torn" role="note">
      <svg viewBox="0 0 200 8" preserveAspectRatio="none" aria-hidden="true">
        <path d={tornPath} />
      </svg>
      <p>
        <WorkerName name={crash.lostOwner} unnamed="A worker" /> died.{" "}
        <WorkerName name={crash.owner} unnamed="Another one" /> continued after{" "}
        {downTime(crash.at - crash.lastAt)}.
        {crash.replayed > 0 && (
          <span class="dim">
            {counted(crash.replayed, "step")} replayed free, {usd(crash.savedUsd)} not paid again
          </span>
        )}
      </p>
      <svg viewBox="0 0 200 8" preserveAspectRatio="none" aria-hidden="true">
        <path d={tornPath} />
      </svg>
    </div>
  );
}

const tornPath = Array.from(
  { length: 41 },
  (_each, at) => `${at === 0 ? "M" : "L"}${at * 5} ${at % 2 === 0 ? 1 : 7}`,
).join("");
