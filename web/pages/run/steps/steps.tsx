import { visibleLine, visibleText, type JsonValue } from "../../../../src/kernel/index.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { get } from "../../../api/client.ts";
import { useRead } from "../../../api/use-read.ts";
import { clock, counted, grouped, plain, took, dayAndTime } from "../../../base/format.ts";
import { useKeys } from "../../../base/keys.ts";
import { now } from "../../../base/now.ts";
import { place, runPath } from "../../../base/route.ts";
import type { EventFilter } from "../../../model/event-filter.ts";
import { rootId } from "../../../model/money.ts";
import { isCallOf, type RunModel } from "../../../model/run-model.ts";
import { hasEnded } from "../../../model/status.ts";
import { useEvents } from "../../../model/use-events.ts";
import {
  promiseIdOf,
  stepsOf,
  stepTypes,
  type OpenWaits,
  type StepRow,
} from "../../../model/workflow-steps.ts";
import type { AgentInfo } from "../../../api/types.ts";
import { shownName } from "../../../parts/name.tsx";
import { CopyButton } from "../../../parts/copy-button.tsx";
import { Glyph } from "../../../parts/glyph.tsx";
import { Icon } from "../../../parts/icon.tsx";
import { areOrdersOff } from "../../../parts/orders.ts";
import { openMessage, openPromise, type MessageKind } from "./message-form.tsx";

const filter: EventFilter = { taskId: rootId, types: stepTypes };
/** Number of lines that are drawn. Older ones are in the list of events. */
const mostRows = 500;

/** Shows the steps of a workflow with their attempts, what the workflow waits for, and what can be sent to it. */
export function Steps({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  const { events, isReading, problem } = useEvents(model, filter);
  useKeys({ g: () => (model.playhead.value === null ? openMessage(model.runId, "signal") : false) });
  if (view === null) return <></>;
  const { rows, waits, values } = stepsOf(events, model.shownSeq);
  const isOver = hasEnded(view.status);
  const chosen = Number(place.value.query.get("step") ?? -1);
  const shown = linesAround(rows, chosen);
  const note = problem ?? (isReading ? "Reading steps" : null);
  return (
    <div class="canvas steps">
      {!isOver && model.playhead.value === null && <Waits model={model} waits={waits} />}
      <Value title="Input" value={isCallOf(model) ? inputOfCall(view.input) : view.input} />
      {view.status === "completed" && <Value title="Result" value={view.output} />}
      {note !== null && <p class="dim">{note}</p>}
      {rows.length > shown.length && (
        <p class="dim">
          {grouped(rows.length - shown.length)} {shown.at(-1) === rows.at(-1) ? "earlier" : "other"} lines are
          in the <a href={runPath(model.runId, "events")}>events</a>.
        </p>
      )}
      {rows.length === 0 && note === null && (
        <p class="mid">{isOver ? "The run had no steps." : "No step has ended yet."}</p>
      )}
      <ol class="step-list" aria-label="Steps">
        {shown.map((row) => (
          <Row key={row.seq} row={row} view={view} isChosen={row.seq === chosen} />
        ))}
      </ol>
      {values.size > 0 && (
        <section aria-label="Published values">
          <h2>Published values</h2>
          <dl class="step-values">
            {[...values].map(([name, value]) => (
              <div key={name}>
                <dt>{visibleLine(name)}</dt>
                <dd>
                  <code>{visibleText(JSON.stringify(value))}</code>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </div>
  );
}

/** Returns the newest lines, or the lines around the chosen one if it is older. */
function linesAround(rows: readonly StepRow[], chosen: number): readonly StepRow[] {
  const index = rows.findIndex(({ seq }) => seq === chosen);
  const newest = Math.max(0, rows.length - mostRows);
  const from = index < 0 ? newest : Math.min(newest, Math.max(0, index - mostRows / 2));
  return rows.slice(from, from + mostRows);
}

/** Returns the input that the handler of an object call received. */
function inputOfCall(input: JsonValue): JsonValue {
  return (input as { readonly input?: JsonValue }).input ?? null;
}

/** Number of characters of a value that are drawn. The raw event has the rest. */
const mostOfValue = 20_000;

/** What a workflow was given or returned. */
function Value({ title, value }: { readonly title: string; readonly value: JsonValue }): JSX.Element | null {
  if (value === null) return null;
  const text = plain(value);
  const rest = text.length - mostOfValue;
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <pre class="step-value" tabIndex={0}>
        {visibleText(text.slice(0, mostOfValue))}
      </pre>
      {rest > 0 && <p class="dim">{grouped(rest)} more characters are in the events.</p>}
    </section>
  );
}

interface RowProps {
  readonly row: StepRow;
  readonly view: RunView;
  /** Whether the address of the page names this line. */
  readonly isChosen: boolean;
}

/** A line whose time is a link to it. */
function Row({ row, view, isChosen }: RowProps): JSX.Element {
  const link = useRef<HTMLAnchorElement>(null);
  useLayoutEffect(() => {
    if (isChosen) link.current?.scrollIntoView({ block: "center" });
  }, [isChosen]);
  const time = (
    <a ref={link} class="dim step-at" href={`?step=${row.seq}`} aria-current={isChosen ? "true" : undefined}>
      {clock(runTime(view, row.at))}
    </a>
  );
  if (row.kind === "undo")
    return (
      <li class="step-undo">
        {time}
        <Icon name="fork" />
        <span>
          From here on the run undoes its work: {row.names.map((name) => visibleLine(name)).join(", ")}
        </span>
      </li>
    );
  if (row.kind !== "step")
    return (
      <li class="step-note">
        {time}
        <span />
        <span class="mid">
          {visibleLine(row.kind === "wait" ? row.name : row.text)}
          {row.kind === "wait" && `, ${took(row.ms)}`}
        </span>
      </li>
    );
  const { name, attempts, state } = row;
  const look = state === "done" ? "completed" : state === "retries" ? "suspended" : "failed";
  const word = state === "done" ? "completed" : state === "retries" ? "waiting" : "failed";
  return (
    <li class={row.isUndo ? "step-row undoes" : "step-row"}>
      {time}
      <Glyph look={look} status={word} />
      <span>
        <b>{visibleLine(name)}</b>
        {(attempts.length > 1 || state !== "done") && (
          <>
            <span class="attempts" aria-hidden="true">
              {attempts.map((attempt, index) => (
                <i
                  // oxlint-disable-next-line no-array-index-key -- an attempt has no other name, and none is removed
                  key={index}
                  class={attempt.isFailed ? "bad" : "good"}
                  style={{ flexGrow: Math.max(1, attempt.durationMs) }}
                />
              ))}
            </span>
            <span class="mid">{attemptWords(row)}</span>
          </>
        )}
      </span>
      <span class="dim">{took(attempts.reduce((sum, { durationMs }) => sum + durationMs, 0))}</span>
    </li>
  );
}

/** Describes how many attempts a step had, and why they failed. */
function attemptWords({ attempts, state }: Extract<StepRow, { readonly kind: "step" }>): string {
  const reasons = [...new Set(attempts.flatMap(({ failure }) => failure?.message ?? []))];
  const why = reasons.length === 0 ? "" : `: ${visibleLine(reasons.join("; "))}`;
  const next = attempts.at(-1)?.delayMs ?? 0;
  const after = state === "retries" ? `, the next one after ${took(next)}` : "";
  return `${counted(attempts.length, "attempt")}${after}${why}`;
}

function Waits({
  model,
  waits,
}: {
  readonly model: RunModel;
  readonly waits: OpenWaits | null;
}): JSX.Element {
  const isOff = areOrdersOff(model);
  const { signals, updates } = useDeclared(model);
  const send = (kind: MessageKind, name: string, isAwaited = true): JSX.Element => {
    const declared = (kind === "signal" ? signals : updates).find((each) => each.name === name);
    return (
      <li key={`${kind} ${name}`}>
        <span>
          {isAwaited ? "Waits for" : "Accepts"} the {kind} <b class="cut">{shownName(name)}</b>
        </span>
        <button
          class={isAwaited ? "button primary" : "button"}
          disabled={isOff}
          onClick={() => openMessage(model.runId, kind, { name, schema: declared?.schema ?? null })}
        >
          Send {kind}
        </button>
      </li>
    );
  };
  const others = signals.filter(({ name }) => waits?.signals.includes(name) !== true);
  return (
    <section class="step-waits" aria-label="What the run waits for">
      {waits?.until != null && <Timer since={waits.since} until={waits.until} />}
      <ul>
        {waits?.signals.map((name) => send("signal", name))}
        {waits?.updates.map((name) => send("update", name))}
        {others.map(({ name }) => send("signal", name, false))}
        {waits?.promises.map((key) => {
          const id = promiseIdOf(model.runId, key);
          return (
            <li key={key}>
              <span>
                Waits for a promise <code class="cut">{id}</code>
                <CopyButton text={id} label="Copy the id of the promise" />
              </span>
              <button class="button primary" disabled={isOff} onClick={() => openPromise(id)}>
                Resolve
              </button>
            </li>
          );
        })}
        <li>
          <span class="mid">A signal that it does not wait for yet is kept.</span>
          <button class="button" disabled={isOff} onClick={() => openMessage(model.runId, "signal")}>
            Send another signal
          </button>
        </li>
      </ul>
    </section>
  );
}

type Declared = Pick<AgentInfo, "signals" | "updates">;
const nothing: Declared = { signals: [], updates: [] };

/** Returns the signals and updates that the run's workflow declares. Empty if this server does not host it. */
function useDeclared({ summary }: RunModel): Declared {
  const { value } = useRead(() => get("/api/agents"), []);
  return value?.agents.find(({ name }) => name === summary.value?.agentId) ?? nothing;
}

/** Shows the remaining time. It counts down without requests to the server. */
function Timer({ since, until }: { readonly since: number; readonly until: number }): JSX.Element {
  const left = Math.max(0, until - now.value);
  const share = until <= since ? 1 : Math.min(1, Math.max(0, 1 - left / (until - since)));
  return (
    <p class="step-timer">
      <span>{left === 0 ? "Wakes now" : `Wakes in ${clock(left)}`}</span>
      <progress value={share} max={1} aria-label="Time that has passed" />
      <span class="dim">{dayAndTime(until)}</span>
    </p>
  );
}
