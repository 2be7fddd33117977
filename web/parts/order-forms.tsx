import {
  formatPriority,
  priorities,
  visibleLine,
  type Priority,
  type TaskId,
} from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import { amountWords, timeOf, type TopUpName } from "../../src/surfaces/view/top-up-offer.ts";
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { get, post } from "../api/client.ts";
import { useRead } from "../api/use-read.ts";
import { counted, grouped, usd } from "../base/format.ts";
import { go, runPath } from "../base/route.ts";
import { heldNow } from "../model/held.ts";
import { budgetUseOf, rootId } from "../model/money.ts";
import { isWorkflow, type RunModel } from "../model/run-model.ts";
import { hasEnded } from "../model/status.ts";
import { limitWords, raisable, topUpWords, useTopUp } from "../model/top-up-left.ts";
import { hasEndedTask } from "../../src/surfaces/view/task-words.ts";
import { ModelField } from "./change-fields.tsx";
import { FormDialog } from "./dialog.tsx";
import { topUp, type TopUpAmounts } from "./orders.ts";

/** What a person enters for each limit: its label, and how much of the unit of the budget one of its unit is. */
const fields: Readonly<Record<TopUpName, { readonly label: string; readonly unit: number }>> = {
  maxCostUsd: { label: "Dollars to add", unit: 1 },
  maxTurns: { label: "Turns to add", unit: 1 },
  maxTokens: { label: "Tokens to add", unit: 1 },
  deadlineMs: { label: "Minutes to add", unit: 60_000 },
};

export function TopUpForm({
  model,
  taskId,
}: {
  readonly model: RunModel;
  readonly taskId: string;
}): JSX.Element {
  const view = model.live.value;
  const task = view?.tasks.get(taskId as TaskId);
  const right = useTopUp(model.runId, { status: view?.status, budget: view?.tasks.get(rootId)?.budget });
  const [entered, setEntered] = useState<Partial<Record<TopUpName, string>>>({});
  const names = raisable(task?.budget, right);
  const { lacks } = right;
  const valueOf = (name: TopUpName): string =>
    entered[name] ?? (lacks?.name === name ? String(lacks.amount / fields[name].unit) : "");
  const add: TopUpAmounts = {};
  for (const name of names)
    if (valueOf(name).trim() !== "") add[name] = Number(valueOf(name)) * fields[name].unit;
  const words = names.flatMap((name) => (add[name] ? [amountWords(name, add[name])] : [])).join(" and ");
  const isStopped = view !== null && hasEnded(view.status);
  return (
    <FormDialog
      title={`Top up ${task?.agentId ?? "the run"}`}
      confirm={`Top up ${words}`.trim() + (isStopped ? " and continue" : "")}
      onConfirm={() => topUp(model, add, taskId)}
    >
      {names.map((name, at) => (
        <label class="field" key={name}>
          {fields[name].label}
          <input
            inputMode="decimal"
            autoFocus={at === 0}
            value={valueOf(name)}
            onInput={(event) => setEntered({ ...entered, [name]: event.currentTarget.value })}
          />
          <span class="dim">
            {task !== undefined &&
              limitWords(task, name, taskId === rootId ? timeOf(view?.failure ?? null) : null)}{" "}
            {topUpWords(name, right)}
          </span>
        </label>
      ))}
    </FormDialog>
  );
}

export function CancelForm({
  model,
  taskId,
}: {
  readonly model: RunModel;
  readonly taskId: TaskId;
}): JSX.Element {
  const [reason, setReason] = useState("");
  const view = model.live.value;
  const task = view?.tasks.get(taskId);
  const held = task === undefined ? 0 : budgetUseOf(task, heldNow(model.snapshot)).held;
  const isRun = taskId === rootId;
  const stopping = view === null ? 0 : isRun ? view.live : liveBelow(view, taskId);
  return (
    <FormDialog
      title={isRun ? "Cancel this run" : `Cancel ${task?.agentId ?? taskId} and its reports`}
      confirm={isRun ? "Cancel run" : "Cancel agent"}
      isDangerous
      onConfirm={async () => {
        await post("/api/runs/{runId}/cancel", {
          params: { runId: model.runId },
          body: { taskId, ...(reason !== "" && { reason }) },
        });
      }}
    >
      <p>
        {isRun && isWorkflow(model)
          ? "The workflow stops and undoes the work for which it has compensations, the newest first."
          : `${counted(stopping, "agent")} ${stopping === 1 ? "stops" : "stop"}.`}
        {!isRun && " The run continues."}
        {held > 0 && ` ${usd(held)} is held and settles.`} What is recorded stays.
      </p>
      <label class="field">
        Reason, optional
        <input value={reason} autoFocus onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
    </FormDialog>
  );
}

/** Returns the number of agents that a cancel of the task would stop. Takes O(agents of the run). */
function liveBelow({ tasks }: RunView, taskId: TaskId): number {
  const reached = new Set([taskId]);
  let live = 0;
  for (const task of tasks) {
    if (task.parentId !== null && reached.has(task.parentId)) reached.add(task.taskId);
    if (reached.has(task.taskId) && !hasEndedTask(task)) live++;
  }
  return live;
}

export function PriorityForm({
  model,
  taskId,
}: {
  readonly model: RunModel;
  readonly taskId: TaskId;
}): JSX.Element {
  const task = model.live.value?.tasks.get(taskId);
  const [priority, setPriority] = useState<Priority>(task?.priority ?? 2);
  return (
    <FormDialog
      title={`Priority of ${task?.agentId ?? taskId}`}
      confirm={`Set ${formatPriority(priority)}`}
      onConfirm={async () => {
        await post("/api/runs/{runId}/priority", {
          params: { runId: model.runId },
          body: { taskId, priority },
        });
      }}
    >
      <fieldset class="choice-list">
        <legend>Money and seats go to higher priorities first.</legend>
        {priorities.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="priority"
              checked={each === priority}
              onChange={() => setPriority(each)}
            />
            {formatPriority(each)}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  );
}

export function ForkForm({
  model,
  at: wanted,
}: {
  readonly model: RunModel;
  readonly at: number;
}): JSX.Element {
  void model.version.value;
  const chosen = useRef(wanted);
  if (chosen.current < 0) chosen.current = model.lastSeq;
  const at = chosen.current;
  const root = model.live.value?.tasks.get(rootId);
  const name = root?.agentId;
  const agent = name ?? "the agent";
  const [input, setInput] = useState("");
  const [other, setOther] = useState("");
  const { value: options } = useRead(
    async () => (name === undefined ? null : get("/api/agents/{name}/options", { params: { name } })),
    [name],
  );
  const start = async (): Promise<void> => {
    if (at < 0) throw new Error("The log of the run is not read yet. Try again in a moment.");
    const { run } = await post("/api/runs/{runId}/fork", {
      params: { runId: model.runId },
      body: {
        at,
        ...(input.trim() !== "" && { input }),
        ...(other.trim() !== "" && { model: other.trim() }),
      },
    });
    go(runPath(run.runId));
  };
  return (
    <FormDialog
      title={at < 0 ? "Fork this run" : `Fork at event ${grouped(at)}`}
      confirm="Start the fork"
      onConfirm={start}
    >
      <p>
        The fork shares what was recorded up to {at < 0 ? "the newest event" : `event ${grouped(at)}`} and
        pays for none of it. Calls in flight at that event are made again. Events that were recorded together
        are shared together, so that the fork may begin a few events before. This run is not changed.
      </p>
      <label class="field">
        Message that follows the shared steps, to {agent}, optional
        <textarea rows={3} value={input} onInput={(event) => setInput(event.currentTarget.value)} />
      </label>
      <ModelField
        label={`Other model of ${visibleLine(agent)} from there on, optional`}
        options={options ?? null}
        own={root?.model ?? null}
        value={other}
        onInput={setOther}
      />
    </FormDialog>
  );
}
