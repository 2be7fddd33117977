import { messageText, visibleLine, visibleText, type Event } from "../../../../src/kernel/index.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { StepView } from "../../../../src/surfaces/view/step-log.ts";
import { runPath } from "../../../base/route.ts";
import { isOffline } from "../../../api/connection.ts";
import type { JSX } from "preact";
import { useRead } from "../../../api/use-read.ts";
import { useKeys } from "../../../base/keys.ts";
import { clock, grouped, oneLine, plain, took, usd } from "../../../base/format.ts";
import { Icon } from "../../../parts/icon.tsx";
import { openFork } from "../../../parts/open-form.tsx";
import { seenBefore, type SeenMessage } from "../../../model/model-input.ts";
import { mayFork, type RunModel } from "../../../model/run-model.ts";
import { agentOf } from "../../../../src/surfaces/view/task-words.ts";
import { outputText } from "../../../model/thread.ts";
import { againWords, isFree, outcomeWords, stepName } from "../../../model/words/step-words.ts";
import { conversationOf } from "../../../model/use-events.ts";

interface DetailProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly step: StepView | null;
  /** The call that this step repeats, if it is a repetition. */
  readonly first: StepView | undefined;
  readonly onClose: () => void;
}

/** Shows one step: its time, its cost, its input and output, and a button to fork from it. */
export function StepDetails({ model, view, step, first, onClose }: DetailProps): JSX.Element {
  if (step === null)
    return (
      <aside class="inspector">
        <p class="dim">Open a lane and choose a step to see what was asked and answered.</p>
        <Legend isFork={view.forkedFrom !== null} />
      </aside>
    );
  return (
    <Details
      key={`${step.taskId} ${step.startSeq}`}
      model={model}
      view={view}
      step={step}
      first={first}
      onClose={onClose}
    />
  );
}

/** Shows why a call was repeated, and the cost of both calls. */
function Again({
  step,
  first,
  view,
}: {
  readonly step: StepView;
  readonly first: StepView | undefined;
  readonly view: RunView;
}): JSX.Element | null {
  const words = againWords(step, view);
  if (words === null) return null;
  return (
    <section class="again">
      <h3>{words.title}</h3>
      <p class="mid">{visibleLine(words.text)}</p>
      {first !== undefined && first.costUsd !== 0 && (
        <dl class="pairs">
          <dt>First call</dt>
          <dd class="bad">{usd(first.costUsd)}</dd>
          <dt>This call</dt>
          <dd>{step.endSeq === null ? "in flight" : usd(step.costUsd)}</dd>
        </dl>
      )}
    </section>
  );
}

function Details({
  model,
  view,
  step,
  first,
  onClose,
}: Omit<DetailProps, "step"> & { readonly step: StepView }): JSX.Element {
  const { startSeq, endSeq, startAt, endAt, taskId, kind, name, tokens, costUsd, outcome, edited } = step;
  const { value } = useRead(async () => {
    const [start] = await model.events.between(startSeq, startSeq);
    const [end] = endSeq === null ? [] : await model.events.between(endSeq, endSeq);
    const [edit] = edited === null ? [] : await model.events.between(edited.seq, edited.seq);
    const own = kind === "model" ? await model.events.thatFit(conversationOf(taskId), startSeq) : [];
    return { start, end, edit, seen: seenBefore(own, startSeq) };
  }, [startSeq, endSeq, edited?.seq]);
  useKeys({ Escape: onClose });
  return (
    <aside class="inspector open" aria-label="About the step">
      <div class="row">
        <h2 class="grow cut" title={stepName(step, view)}>
          {stepName(step, view)}
        </h2>
        <span class="chip">{kindNames[kind]}</span>
        <button class="icon-button small sheet-close" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <p class="mid">{agentOf(taskId, view)}</p>
      <dl class="pairs step-facts">
        <dt>Started</dt>
        <dd>
          {clock(runTime(view, startAt))}
          {endAt !== null && `, took ${took(endAt - startAt)}`}
        </dd>
        {kind === "model" && (
          <>
            <dt>Cost</dt>
            <dd>{endSeq === null ? "in flight" : isFree(step, view) ? "free" : usd(costUsd)}</dd>
            <dt>Tokens</dt>
            <dd>{tokenWords(value?.end, tokens)}</dd>
            <dt>Model</dt>
            <dd>{name}</dd>
          </>
        )}
        {outcome !== null && (
          <>
            <dt>Outcome</dt>
            <dd class={outcome === "ok" || isFree(step, view) ? "" : "bad"}>{outcomeWords(step, view)}</dd>
          </>
        )}
        <dt>Events</dt>
        <dd>
          {grouped(startSeq)}
          {endSeq === null ? "" : ` to ${grouped(endSeq)}`}
        </dd>
      </dl>
      <div class="actions task-orders">
        <button class="button small" onClick={() => void model.seek(endSeq ?? startSeq)}>
          Show the run then
        </button>
        {mayFork(model) && (
          <button
            class="button small"
            disabled={isOffline.value}
            onClick={() => openFork(model, lastBefore(step, model))}
          >
            <Icon name="fork" /> Fork from here
          </button>
        )}
        {kind === "model" && endSeq !== null && (
          <a class="button small" href={`/again?run=${model.runId}&task=${step.taskId}&at=${step.callSeq}`}>
            Try this turn again
          </a>
        )}
      </div>
      <Again step={step} first={first} view={view} />
      {kind === "model" && value !== null && (
        <Seen messages={value.seen} path={`${runPath(model.runId, "saw", taskId)}&call=${step.callSeq}`} />
      )}
      <Text title="Asked" text={askedText(value?.start)} />
      <Text title="Changed by a person" text={editedText(value?.edit)} />
      <Text title="Answered" text={answeredText(value?.end)} />
    </aside>
  );
}

const kindNames: Readonly<Record<StepView["kind"], string>> = {
  model: "model call",
  tool: "tool call",
  step: "step",
  person: "question",
  paused: "pause",
  seat: "wait for a seat",
};

/** Describes the tokens of a call, divided into read and written tokens if the provider reports them separately. */
function tokenWords(end: Event | undefined, tokens: number): string {
  if (end?.type !== "message_end" || end.data.usage === undefined) return grouped(tokens);
  const { outputTokens } = end.data.usage;
  return `${grouped(tokens - outputTokens)} in, ${grouped(outputTokens)} out`;
}

/** Returns the last event at which the step is still in progress, so that a fork at this event repeats it. */
function lastBefore({ endSeq }: StepView, { lastSeq }: RunModel): number {
  return endSeq === null ? lastSeq : endSeq - 1;
}

/** The messages of the task that the model read before it answered, and a link to all that it was sent. */
function Seen({
  messages,
  path,
}: {
  readonly messages: readonly SeenMessage[];
  readonly path: string;
}): JSX.Element {
  return (
    <section>
      <h3 class="row between">
        Messages it read
        <a class="link" href={path}>
          All it saw
        </a>
      </h3>
      {messages.map(({ seq, title, text }, at) => (
        <details key={seq} class="seen" open={at === messages.length - 1}>
          <summary>
            <b>{visibleLine(title)}</b>{" "}
            <span class="cut dim excerpt">{visibleLine(oneLine(text.slice(0, 400)).slice(0, 80))}</span>
          </summary>
          <pre class="command" tabIndex={0}>
            {shownText(text)}
          </pre>
        </details>
      ))}
    </section>
  );
}

function Text({ title, text }: { readonly title: string; readonly text: string }): JSX.Element | null {
  return text === "" ? null : (
    <section>
      <h3>{title}</h3>
      <pre class="command" tabIndex={0}>
        {shownText(text)}
      </pre>
    </section>
  );
}

/** Number of characters of a text that are drawn. */
const mostShown = 20_000;

/** A text as it was sent, with hidden characters shown. Of a long one, the beginning. */
function shownText(text: string): string {
  const rest = text.length - mostShown;
  return visibleText(rest > 0 ? `${text.slice(0, mostShown)}\n… ${grouped(rest)} more characters` : text);
}

function askedText(event: Event | undefined): string {
  if (event?.type === "tool_execution_start" || event?.type === "approval_request")
    return plain(event.data.input);
  return "";
}

/** The arguments with which a person replaced those of a call. */
function editedText(event: Event | undefined): string {
  const isApproved = event?.type === "approval_decision" && event.data.decision.decision === "approved";
  if (!isApproved || !("input" in event.data.decision)) return "";
  return plain(event.data.decision.input);
}

function answeredText(event: Event | undefined): string {
  switch (event?.type) {
    case "message_end":
      return messageText(event.data.message) || plain(event.data.message.content);
    case "tool_execution_end":
      return outputText(event.data.result.output);
    case "approval_decision":
      return plain(event.data.decision);
    default:
      return "";
  }
}

const kinds = [
  ["model", "model call"],
  ["tool", "tool call"],
  ["open", "in flight"],
  ["lost", "unreported: charged, no answer"],
  ["refused", "not made: budget used up"],
  ["report", "a report works"],
  ["person", "waits for you"],
  ["paused", "paused"],
  ["seat", "waits for a seat"],
] as const;

function Legend({ isFork }: { readonly isFork: boolean }): JSX.Element {
  return (
    <ul class="legend">
      {kinds.map(([kind, words]) => (
        <li key={kind}>
          <i class={`bar ${kind}`} />
          {words}
        </li>
      ))}
      {isFork && (
        <li>
          <i class="bar free" />
          free: shared with the origin
        </li>
      )}
      <li>
        <i class="topped-up">+</i>
        top-up
      </li>
    </ul>
  );
}
