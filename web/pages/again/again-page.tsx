import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { visibleLine, type JsonValue, type TaskId, type ToolSpec } from "../../../src/kernel/index.ts";
import { get, post, RequestError } from "../../api/client.ts";
import type { AgentOptions, SentCall } from "../../api/types.ts";
import { isOffline } from "../../api/connection.ts";
import { useRead } from "../../api/use-read.ts";
import { capUsd, counted, grouped, shortId, usd } from "../../base/format.ts";
import { useKeys } from "../../base/keys.ts";
import { go, place, runPath, setQuery } from "../../base/route.ts";
import { rootId } from "../../model/money.ts";
import { RunModel } from "../../model/run-model.ts";
import { hasEnded } from "../../model/status.ts";
import { useSteps } from "../../model/use-steps.ts";
import { dialog, FormDialog } from "../../parts/dialog.tsx";
import { openNewRun } from "../../parts/open-form.tsx";
import { Column, Recorded, type ColumnFacts } from "./column.tsx";
import { VariantForm } from "./variant-form.tsx";
import { doneFrom, inputWords, lastResults, letters, mostVariants, turnsOf, type Origin } from "./variant.ts";

/** Shows one run again from one of its turns, in up to four columns: the recorded run, and variants of it. */
export function AgainPage(): JSX.Element {
  const { query } = place.value;
  const runId = query.get("run");
  if (runId === null)
    return (
      <main class="page" id="main">
        <div class="page-head">
          <h1>Run again with changes</h1>
        </div>
        <p class="dim">
          Open a run, choose <em>Run again</em>, and change its message, instructions, model, tools or a
          tool's result.
        </p>
      </main>
    );
  return <Again key={runId} runId={runId} />;
}

function useModel(runId: string): RunModel {
  const model = useMemo(() => new RunModel(runId), [runId]);
  useEffect(() => model.open(), [model]);
  return model;
}

function Again({ runId }: { readonly runId: string }): JSX.Element {
  const { query } = place.value;
  const model = useModel(runId);
  void model.version.value;
  const view = model.live.value;
  const taskId = (query.get("task") ?? rootId) as TaskId;
  const tasks = [...(view?.tasks ?? [])].map((task) => task.taskId);
  const stepsOf = useSteps(model, tasks.length > 200 ? [taskId] : tasks);
  const turns = turnsOf(stepsOf(taskId), taskId);
  const wanted = Number(query.get("at") ?? Number.NaN);
  const at = turns.some(({ callSeq }) => callSeq === wanted) ? wanted : (turns[0]?.callSeq ?? null);
  const variants = (query.get("v") ?? "")
    .split(",")
    .filter((id) => id !== "")
    .slice(0, mostVariants);
  const task = view?.tasks.get(taskId);
  const { value: read, problem } = useRead(
    async () =>
      at === null ? null : get("/api/runs/{runId}/requests/{seq}", { params: { runId, seq: String(at) } }),
    [runId, at],
  );
  // Until the chosen turn is read, that of the turn before it is kept. A form of it would lose what was typed.
  const sent = read?.seq === at ? read : null;
  const agentId = task?.agentId ?? "";
  const { value: known, problem: optionsProblem } = useRead(
    async () => (agentId === "" ? null : { options: await optionsOf(agentId) }),
    [agentId],
  );
  // The form edits the agent's own instructions, so it waits for the options, which name them.
  const origin =
    sent === null || view === null || at === null || known === null
      ? null
      : originOf(sent, turns.findIndex((each) => each.callSeq === at) + 1, view.input, runId);
  const before = [...tasks]
    .flatMap((id) => stepsOf(id))
    .filter(
      (step) =>
        at !== null &&
        step.endSeq !== null &&
        step.endSeq < at &&
        (step.kind === "model" || step.kind === "tool"),
    ).length;
  return (
    <main class="page again" id="main">
      <nav class="crumbs" aria-label="Path">
        <a href="/runs">Runs</a>
        <span aria-hidden="true">/</span>
        <a href={runPath(runId)}>{shortId(runId)}</a>
        {agentId !== "" && (
          <>
            <span aria-hidden="true">/</span>
            <span class="cut">{visibleLine(agentId)}</span>
          </>
        )}
      </nav>
      {(problem ?? optionsProblem) !== null && <p class="problem">{problem ?? optionsProblem}</p>}
      {origin === null ? (
        <>
          <div class="page-head">
            <h1>Run again with changes</h1>
          </div>
          <p class="dim" aria-busy={(problem ?? optionsProblem) === null}>
            {view !== null && turns.length === 0 && hasEnded(view.status)
              ? "This agent has made no model call, so that there is nothing to try again."
              : "Reading the run"}
          </p>
        </>
      ) : (
        <Grid
          key={`${taskId} ${origin.at}`}
          origin={origin}
          options={known?.options ?? null}
          model={model}
          variants={variants}
          free={before}
          steps={[...tasks].flatMap((id) => stepsOf(id))}
          turns={turns.map(({ callSeq }) => callSeq)}
        />
      )}
    </main>
  );
}

/**
 * Returns the options of an agent. An agent that this server does not host has none; its runs can still be
 * repeated.
 */
async function optionsOf(agentId: string): Promise<AgentOptions | null> {
  try {
    return await get("/api/agents/{name}/options", { params: { name: agentId } });
  } catch (error) {
    if (error instanceof RequestError && error.code === "not_found") return null;
    throw error;
  }
}

function originOf(sent: SentCall, turn: number, input: JsonValue, runId: string): Origin {
  const { instructions, tools, messages } = sent;
  return {
    runId,
    taskId: sent.taskId,
    at: sent.seq,
    turn,
    agentId: sent.agentId,
    model: sent.model,
    instructions: instructions.state === "recorded" ? instructions.value : null,
    tools: tools.state === "recorded" ? tools.value.map(({ name }: ToolSpec) => name) : [],
    results: messages.state === "recorded" ? lastResults(messages.value) : [],
    message: inputWords(input),
    input,
  };
}

interface GridProps {
  readonly origin: Origin;
  readonly options: AgentOptions | null;
  readonly model: RunModel;
  readonly variants: readonly string[];
  /** Number of recorded calls before the turn. */
  readonly free: number;
  readonly steps: Parameters<typeof Recorded>[0]["steps"];
  readonly turns: readonly number[];
}

function Grid({ origin, options, model, variants, free, steps, turns }: GridProps): JSX.Element {
  const [facts, setFacts] = useState<ReadonlyMap<string, ColumnFacts>>(new Map());
  // Number of variants for which the form was opened. A variant that starts closes it, also if this grid was drawn anew meanwhile.
  const [openedAt, openAt] = useState<number | null>(null);
  const isOpen = variants.length === 0 || (openedAt !== null && variants.length <= openedAt);
  const report = (runId: string, fact: ColumnFacts): void =>
    setFacts((old) => (isSame(old.get(runId), fact) ? old : new Map(old).set(runId, fact)));
  const shown = variants.flatMap((id) => facts.get(id) ?? []);
  const live = variants.filter((id) => facts.get(id)?.isOver === false);
  const recorded = facts.get(origin.runId);
  const paid = shown.reduce<number | null>(
    (sum, { costUsd }) => (sum === null || costUsd === null ? null : sum + costUsd),
    0,
  );
  const limits = shown.map(({ limitUsd }) => limitUsd);
  const limit =
    limits.length > 0 && !limits.includes(null)
      ? limits.reduce<number>((sum, each) => sum + (each ?? 0), 0)
      : null;
  const most = Math.max(0, ...[...facts.values()].map(({ costUsd }) => costUsd ?? 0));
  const add = (runId: string): void => setQuery("v", [...variants, runId].join(","));
  const stopAll = (): void =>
    openStop(
      live,
      shown.reduce((sum, { heldUsd }) => sum + heldUsd, 0),
    );
  const [b, c] = variants;
  const compared = b === undefined ? null : `/compare?a=${c === undefined ? origin.runId : b}&b=${c ?? b}`;
  const grid = useRef<HTMLDivElement>(null);
  const toColumn = (index: number): boolean => {
    const column = grid.current?.children[index];
    if (!(column instanceof HTMLElement)) return false;
    column.focus({ preventScroll: true });
    column.scrollIntoView({ block: "nearest", inline: "center" });
    return true;
  };
  useKeys({
    ...Object.fromEntries(letters.map((_letter, index) => [String(index + 1), () => toColumn(index)])),
    c: () => (compared === null ? false : go(compared)),
    ...(live.length > 0 && { Escape: stopAll }),
  });
  return (
    <>
      <div class="page-head">
        <h1>Run again with changes</h1>
        <span class="grow" />
        {live.length > 0 && (
          <button class="button" disabled={isOffline.value} onClick={stopAll}>
            Stop all <kbd>Esc</kbd>
          </button>
        )}
        <button
          class="button"
          title="Opens the form of a new run with the agent and the input of this one"
          onClick={() =>
            openNewRun({ agent: model.live.value?.agentId ?? origin.agentId, input: origin.input })
          }
        >
          As a new run
        </button>
        <button
          class="button"
          disabled={isOpen || variants.length >= mostVariants}
          title={variants.length >= mostVariants ? "Four columns are the most that fit side by side" : ""}
          onClick={() => openAt(variants.length)}
        >
          + Variant
        </button>
      </div>
      <div class="facts">
        <div>
          <span class="label">Starts from</span>
          <select
            class="select turn-choice"
            aria-label="Turn to start from"
            value={String(origin.at)}
            disabled={variants.length > 0}
            title={variants.length > 0 ? "All columns start from the same turn" : ""}
            onChange={(event) => setQuery("at", event.currentTarget.value)}
          >
            {turns.map((seq, index) => (
              <option key={seq} value={String(seq)}>{`Turn ${grouped(index + 1)}`}</option>
            ))}
          </select>
          <span class="label">
            {counted(free, "step")} before it {free === 1 ? "is" : "are"} free
          </span>
        </div>
        <div>
          <span class="label">Paid so far</span>
          <span class="big">
            {usd(paid)}{" "}
            <small>
              {shown.length === 0
                ? "no variant yet"
                : limit === null
                  ? "without a limit of their own"
                  : `of ${capUsd(limit)} for all`}
            </small>
          </span>
        </div>
        <div>
          <span class="label">Cheapest variant</span>
          <span class="big">{cheapest(variants, facts, recorded)}</span>
        </div>
        <div>
          <span class="label">Answers</span>
          <span class="big">{answerWords(variants, facts, recorded)}</span>
        </div>
      </div>
      <div class="variants" ref={grid} style={{ "--columns": variants.length + 1 + (isOpen ? 1 : 0) }}>
        <Recorded origin={origin} model={model} steps={steps} mostUsd={most} onFacts={report} />
        {variants.map((runId, index) => (
          <Column
            key={runId}
            runId={runId}
            letter={letters[index + 1] ?? "?"}
            origin={origin}
            options={options}
            mostUsd={most}
            recordedAnswer={recorded?.isOver === true ? recorded.answer : null}
            onFacts={report}
            onRemove={() => setQuery("v", variants.filter((id) => id !== runId).join(",") || null)}
          />
        ))}
        {isOpen && variants.length < mostVariants && (
          <VariantForm
            letter={letters[variants.length + 1] ?? "?"}
            origin={origin}
            options={options}
            recordedUsd={doneFrom(steps, origin.at).costUsd}
            onStarted={add}
            {...(variants.length > 0 && { onClose: () => openAt(null) })}
          />
        )}
      </div>
      <div class="row foot">
        <p class="dim grow">
          Variants are forks: each is a run of its own and keeps its journal. Closing this page stops none of
          them.
        </p>
        {compared !== null && (
          <a class="button" href={compared}>
            {c === undefined ? "Compare A and B by step" : "Compare B and C by step"} <kbd>C</kbd>
          </a>
        )}
      </div>
    </>
  );
}

function isSame(one: ColumnFacts | undefined, other: ColumnFacts): boolean {
  return one !== undefined && JSON.stringify(one) === JSON.stringify(other);
}

type Facts = ReadonlyMap<string, ColumnFacts>;

function cheapest(variants: readonly string[], facts: Facts, recorded: ColumnFacts | undefined): string {
  const ended = variants.flatMap((id, index) => {
    const fact = facts.get(id);
    return fact?.isOver === true && !fact.hasFailed ? [{ letter: letters[index + 1] ?? "?", ...fact }] : [];
  });
  const [first, ...others] = ended;
  if (first === undefined) return "None yet";
  if (ended.some(({ costUsd }) => costUsd === null)) return "Not known";
  const best = others.reduce(
    (one, other) => ((other.costUsd ?? 0) < (one.costUsd ?? 0) ? other : one),
    first,
  );
  if (recorded?.costUsd == null || recorded.costUsd === 0) return best.letter;
  const percent = Math.round((1 - (best.costUsd ?? 0) / recorded.costUsd) * 100);
  return percent === 0
    ? `${best.letter}, as A`
    : `${best.letter}, ${Math.abs(percent)} % ${percent > 0 ? "less" : "more"} than A`;
}

function answerWords(variants: readonly string[], facts: Facts, recorded: ColumnFacts | undefined): string {
  const ended = variants.flatMap((id) => {
    const fact = facts.get(id);
    return fact?.isOver === true && !fact.hasFailed ? [fact.answer] : [];
  });
  if (recorded?.isOver !== true || ended.length === 0) return "None yet";
  const differing = ended.filter((answer) => answer !== recorded.answer).length;
  return differing === 0 ? "Same" : differing === 1 ? "1 differs" : `${differing} differ`;
}

/** Asks for confirmation before variants are stopped, and shows the amount that they hold. */
function openStop(runIds: readonly string[], heldUsd: number): void {
  dialog.value = () => (
    <FormDialog
      title="Stop all variants"
      confirm={`Stop ${counted(runIds.length, "variant")}`}
      isDangerous
      onConfirm={async () => {
        await Promise.all(
          runIds.map((runId) => post("/api/runs/{runId}/cancel", { params: { runId }, body: {} })),
        );
      }}
    >
      <p>
        {counted(runIds.length, "variant")} {runIds.length === 1 ? "stops" : "stop"}.
        {heldUsd > 0 && ` ${usd(heldUsd)} is held and settles.`} What is recorded stays.
      </p>
    </FormDialog>
  );
}
