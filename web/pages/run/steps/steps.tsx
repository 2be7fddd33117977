import { visibleLine, visibleText, type JsonValue } from "../../../../src/kernel/index.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post } from "../../../api/client.ts";
import { clock, counted, grouped, took } from "../../../base/format.ts";
import { useKeys } from "../../../base/keys.ts";
import { now } from "../../../base/now.ts";
import { runPath } from "../../../base/route.ts";
import type { EventFilter } from "../../../model/event-filter.ts";
import { rootId } from "../../../model/money.ts";
import type { RunModel } from "../../../model/run-model.ts";
import { hasEnded } from "../../../model/status.ts";
import { useEvents } from "../../../model/use-events.ts";
import {
  promiseIdOf,
  stepsOf,
  stepTypes,
  type OpenWaits,
  type StepRow,
} from "../../../model/workflow-steps.ts";
import { CopyButton } from "../../../parts/copy-button.tsx";
import { dialog, FormDialog } from "../../../parts/dialog.tsx";
import { Glyph } from "../../../parts/glyph.tsx";
import { Icon } from "../../../parts/icon.tsx";
import { areOrdersOff } from "../../../parts/orders.tsx";

const filter: EventFilter = { taskId: rootId, types: stepTypes };
/** Number of lines that are drawn. Older ones are in the list of events. */
const mostRows = 500;

/** The steps of a workflow with their attempts, what it waits for, and what can be sent to it. */
export function Steps({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  const { events, isReading, problem } = useEvents(model, filter);
  useKeys({ g: () => (model.playhead.value === null ? openMessage(model, "signal", "") : false) });
  if (view === null) return <></>;
  const { rows, waits, values } = stepsOf(events, model.shownSeq);
  const isOver = hasEnded(view.status);
  const shown = rows.slice(-mostRows);
  const note = problem ?? (isReading ? "Reading older steps" : null);
  return (
    <div class="canvas steps">
      {!isOver && model.playhead.value === null && <Waits model={model} waits={waits} />}
      {note !== null && <p class="dim">{note}</p>}
      {rows.length > shown.length && (
        <p class="dim">
          {grouped(rows.length - shown.length)} earlier lines are in the{" "}
          <a href={runPath(model.runId, "events")}>events</a>.
        </p>
      )}
      {rows.length === 0 && note === null && <p class="mid">No step has ended yet.</p>}
      <ol class="step-list" aria-label="Steps">
        {shown.map((row) => (
          <Row key={row.seq} row={row} view={view} />
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

function Row({ row, view }: { readonly row: StepRow; readonly view: RunView }): JSX.Element {
  const time = <span class="dim">{clock(runTime(view, row.at))}</span>;
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

/** How many attempts a step had, and why they failed. */
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
  const send = (kind: MessageKind, name: string): JSX.Element => (
    <li key={`${kind} ${name}`}>
      <span>
        Waits for the {kind} <b>{visibleLine(name)}</b>
      </span>
      <button class="button primary" disabled={isOff} onClick={() => openMessage(model, kind, name)}>
        Send {kind}
      </button>
    </li>
  );
  return (
    <section class="step-waits" aria-label="What the run waits for">
      {waits?.until != null && <Timer since={waits.since} until={waits.until} />}
      <ul>
        {waits?.signals.map((name) => send("signal", name))}
        {waits?.updates.map((name) => send("update", name))}
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
          <button class="button" disabled={isOff} onClick={() => openMessage(model, "signal", "")}>
            Send another signal
          </button>
        </li>
      </ul>
    </section>
  );
}

/** The time that is left. It counts down without asking the server. */
function Timer({ since, until }: { readonly since: number; readonly until: number }): JSX.Element {
  const left = Math.max(0, until - now.value);
  const share = until <= since ? 1 : Math.min(1, Math.max(0, 1 - left / (until - since)));
  return (
    <p class="step-timer">
      <span>{left === 0 ? "Wakes now" : `Wakes in ${clock(left)}`}</span>
      <progress value={share} max={1} aria-label="Time that has passed" />
      <span class="dim">{new Date(until).toLocaleString()}</span>
    </p>
  );
}

type MessageKind = "signal" | "update";

function openMessage(model: RunModel, kind: MessageKind, name: string): void {
  // One id per form, so that a repeated send of the same form has no further effect.
  const id = crypto.randomUUID();
  dialog.value = () => <MessageForm runId={model.runId} kind={kind} given={name} id={id} />;
}

interface MessageProps {
  readonly runId: string;
  readonly kind: MessageKind;
  readonly given: string;
  readonly id: string;
}

function MessageForm({ runId, kind, given, id }: MessageProps): JSX.Element {
  const [name, setName] = useState(given);
  const [text, setText] = useState("null");
  const send = async (): Promise<void> => {
    if (name.trim() === "") throw new Error(`Write the name of the ${kind}.`);
    const body = { name, value: jsonOf(text), id };
    if (kind === "signal") await post("/api/runs/{runId}/signal", { params: { runId }, body });
    else await post("/api/runs/{runId}/update", { params: { runId }, body });
  };
  return (
    <FormDialog title={`Send ${kind}`} confirm={`Send ${kind}`} onConfirm={send}>
      {given === "" ? (
        <label class="field">
          Name
          <input autoFocus value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
      ) : (
        <p>
          <b>{visibleLine(name)}</b>
        </p>
      )}
      <ValueField text={text} onInput={setText} />
      <p class="mid">Sending this form twice counts once.</p>
    </FormDialog>
  );
}

function openPromise(id: string): void {
  dialog.value = () => <PromiseForm id={id} />;
}

function PromiseForm({ id }: { readonly id: string }): JSX.Element {
  const [text, setText] = useState("null");
  const resolve = async (): Promise<void> => {
    await post("/api/promises/{id}/resolve", { params: { id }, body: { value: jsonOf(text) } });
  };
  return (
    <FormDialog title="Resolve promise" confirm="Resolve" onConfirm={resolve}>
      <ValueField text={text} onInput={setText} />
      <p class="mid">The first value counts.</p>
    </FormDialog>
  );
}

function ValueField({
  text,
  onInput,
}: {
  readonly text: string;
  readonly onInput: (text: string) => void;
}): JSX.Element {
  return (
    <label class="field">
      Value, as JSON
      <textarea rows={4} value={text} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}

function jsonOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new Error(`The value is not JSON: ${(error as Error).message}. Write a text as "text".`, {
      cause: error,
    });
  }
}
