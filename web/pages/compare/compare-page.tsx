import type { Event } from "../../../src/kernel/index.ts";
import { startOfRun } from "../../../src/surfaces/view/run-clock.ts";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { get } from "../../api/client.ts";
import type { Run } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { go, place, runPath, setQuery } from "../../base/route.ts";
import { counted, grouped, oneLine, plain, shortId, usd } from "../../base/format.ts";
import { idleSince, workedMs } from "../../model/time/idle.ts";
import { Name } from "../../parts/name.tsx";
import { BudgetMeter } from "../../parts/budget-meter.tsx";
import { budgetUseOf, rootId } from "../../model/money.ts";
import { inputText } from "../../model/words/input-text.ts";
import {
  compareRuns,
  differingWords,
  firstDifference,
  readRun,
  type SharedRow,
  type ComparedRow,
  type ComparedRun,
  type ComparedStep,
} from "./compare-runs.ts";
import { figures, useFigures } from "../../model/run-figures.ts";
import { costDifference, timeDifference, type DifferenceWords } from "./difference-words.ts";

const pageSize = 5_000;

/** Two runs, step by step. */
export function ComparePage(): JSX.Element {
  const { query } = place.value;
  const [a, b] = [query.get("a"), query.get("b")];
  return (
    <main class="page" id="main">
      {a !== null && b !== null ? (
        <Comparison key={`${a} ${b}`} a={a} b={b} isShort={query.get("show") !== null} />
      ) : (
        <>
          <div class="page-head">
            <h1>Compare</h1>
          </div>
          <Pickers a={a} b={b} />
          <p class="dim">Choose two runs, such as a run and its fork. Their steps are shown side by side.</p>
        </>
      )}
    </main>
  );
}

function HeadLine({
  a,
  b,
  differences,
  isShort,
}: {
  readonly a: string;
  readonly b: string;
  /** `null` until both runs are read. */
  readonly differences: number | null;
  readonly isShort: boolean;
}): JSX.Element {
  return (
    <div class="page-head compare-bar">
      <h1>Compare</h1>
      <div class="segments" role="group" aria-label="Show">
        <button aria-pressed={!isShort} onClick={() => setQuery("show", null)}>
          All steps
        </button>
        <button aria-pressed={isShort} onClick={() => setQuery("show", "differences")}>
          Differences
          {differences !== null && <span class="count">{grouped(differences)}</span>}
        </button>
      </div>
      <button class="button" onClick={() => go(`/compare?a=${b}&b=${a}`, { replace: true })}>
        Swap
      </button>
    </div>
  );
}

function Pickers({ a, b }: { readonly a: string | null; readonly b: string | null }): JSX.Element {
  const { value } = useRead(() => get("/api/runs", { query: { limit: 100 } }), []);
  const runs = value?.runs ?? [];
  useFigures(runs);
  return (
    <div class="two pickers">
      <Picker name="a" title="A" chosen={a} runs={runs} />
      <Picker name="b" title="B" chosen={b} runs={runs} />
    </div>
  );
}

/** Number of characters of a title that the list of runs shows. */
const mostTitle = 120;

/** Tells a fork from its origin, which has the same title. */
function forkWords(runId: string): string {
  const at = figures.value.get(runId)?.forkedFrom?.at;
  return at === undefined ? "" : ` (fork after event ${grouped(at)})`;
}

interface PickerProps {
  readonly name: "a" | "b";
  readonly title: string;
  readonly chosen: string | null;
  readonly runs: readonly Run[];
}

function Picker({ name, title, chosen, runs }: PickerProps): JSX.Element {
  const isListed = chosen === null || runs.some(({ runId }) => runId === chosen);
  return (
    <label class="field">
      Run {title}
      <select value={chosen ?? ""} onChange={(event) => setQuery(name, event.currentTarget.value || null)}>
        <option value="">Choose a run</option>
        {!isListed && <option value={chosen}>{chosen}</option>}
        {runs.map(({ runId, title: words, agentId }) => (
          <option key={runId} value={runId}>
            {shortId(runId)}: {oneLine(words ?? agentId, mostTitle)}
            {forkWords(runId)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Comparison({
  a,
  b,
  isShort,
}: {
  readonly a: string;
  readonly b: string;
  readonly isShort: boolean;
}): JSX.Element {
  const { value, problem } = useRead(async () => {
    const [left, right] = await Promise.all([allEvents(a), allEvents(b)]);
    return { left: readRun(left), right: readRun(right) };
  }, [a, b]);
  const rows = useMemo(() => (value === null ? [] : compareRuns(value.left, value.right)), [value]);
  const first = firstDifference(rows)?.row;
  const differing = rows.filter(({ kind }) => kind !== "shared" && kind !== "same");
  const shown = isShort ? rows.filter(({ kind }) => kind !== "same") : rows;
  const shared = rows.find((row) => row.kind === "shared");
  return (
    <>
      <HeadLine a={a} b={b} isShort={isShort} differences={value === null ? null : differing.length} />
      <Pickers a={a} b={b} />
      {value === null ? (
        <p class="dim">{problem ?? "Reading both runs"}</p>
      ) : (
        <>
          <Differences left={value.left} right={value.right} rows={rows} />
          <div class="compare">
            <Head run={value.left} name="A" free={freeSteps(shared, "a")} />
            <div class="between-runs" />
            <Head run={value.right} name="B" free={freeSteps(shared, "b")} />
            {shown.map((row, at) => (
              <Row key={at} row={row} isFirst={row === first} />
            ))}
          </div>
          <p class="dim foot">
            Steps are aligned by agent and position. Shared steps come from the origin's journal and cost the
            fork nothing.
          </p>
        </>
      )}
    </>
  );
}

/** Number of steps that a run has from its origin's journal. */
function freeSteps(shared: SharedRow | undefined, side: "a" | "b"): number {
  return shared?.free.includes(side) === true ? shared.steps : 0;
}

async function allEvents(runId: string): Promise<readonly Event[]> {
  const all: Event[] = [];
  for (let from = 0; ;) {
    const { events, next, isLast } = await get("/api/runs/{runId}/events", {
      params: { runId },
      query: { from, limit: pageSize },
    });
    all.push(...events);
    if (isLast) return all;
    from = next;
  }
}

function costOf({ view }: ComparedRun): number {
  return view.tasks.get(rootId)?.total.costUsd ?? 0;
}

/** How long a run worked. How long a person took to answer says nothing of the run. */
function lengthOf({ view }: ComparedRun): number {
  return workedMs(view, startOfRun(view), view.endedAt ?? view.at, idleSince(view));
}

function Differences({
  left,
  right,
  rows,
}: {
  readonly left: ComparedRun;
  readonly right: ComparedRun;
  readonly rows: readonly ComparedRow[];
}): JSX.Element {
  const cost = costDifference(costOf(left), costOf(right));
  const time = timeDifference(lengthOf(left), lengthOf(right));
  const first = firstDifference(rows);
  const shared = rows.find((row) => row.kind === "shared");
  const isSame = plain(left.view.output) === plain(right.view.output);
  const isMissing = left.view.endedAt === null && right.view.endedAt === null && isSame;
  return (
    <div class="facts">
      <Fact name="Cost" {...cost} />
      <Fact name="Time at work" {...time} />
      <Fact
        name="Steps"
        value={`${grouped(left.steps)} / ${grouped(right.steps)}`}
        words={shared === undefined ? "" : `${grouped(shared.steps)} shared`}
      />
      <Fact
        name="First difference"
        value={first === null ? "None" : `Step ${grouped(first.step)}`}
        words={first?.agentId ?? ""}
      />
      <Fact
        name="Answer"
        value={isMissing ? "None yet" : isSame ? "Same" : "Differs"}
        words=""
        isWaiting={!isSame}
      />
    </div>
  );
}

function Fact({
  name,
  value,
  words,
  isWaiting = false,
}: DifferenceWords & { readonly name: string; readonly isWaiting?: boolean }): JSX.Element {
  return (
    <div>
      <span class="label">{name}</span>
      <span class={`big cut ${isWaiting ? "wait" : ""}`} title={`${value} ${words}`.trim()}>
        {value} <small>{words}</small>
      </span>
    </div>
  );
}

function Head({
  run,
  name,
  free,
}: {
  readonly run: ComparedRun;
  readonly name: string;
  readonly free: number;
}): JSX.Element {
  const { view } = run;
  const root = view.tasks.get(rootId);
  const task = oneLine(inputText(view.input));
  const title = view.forkedFrom === null ? task : `Fork after event ${grouped(view.forkedFrom.at)}: ${task}`;
  return (
    <div class="compare-head">
      <p class="row">
        <span class={`chip ${name === "B" ? "live" : ""}`}>{name}</span>
        <a class="cut strong" href={runPath(view.runId)} title={title}>
          {title}
        </a>
      </p>
      <p class="row label">
        <code title={view.runId}>{shortId(view.runId)}</code>
        {free > 0 && <span class="free-steps">{counted(free, "step")} free</span>}
      </p>
      <p class="row">
        {root !== undefined && <BudgetMeter values={budgetUseOf(root, null)} />}
        <span>{usd(root?.total.costUsd ?? 0)}</span>
      </p>
    </div>
  );
}

const signs = { same: "=", differs: "≠", "only-a": "only A", "only-b": "only B" } as const;

function Row({ row, isFirst }: { readonly row: ComparedRow; readonly isFirst: boolean }): JSX.Element {
  if (row.kind === "shared")
    return (
      <>
        <SharedCell row={row} side="a" />
        <div class="between-runs">=</div>
        <SharedCell row={row} side="b" />
      </>
    );
  const words = row.kind === "differs" ? differingWords(row.a, row.b) : [];
  const tone = `${row.kind === "same" ? "" : "differs"} ${isFirst ? "first" : ""}`;
  return (
    <>
      <Cell step={"a" in row ? row.a : undefined} words={words[0]} agentId={row.agentId} tone={tone} />
      <div class={`between-runs ${isFirst ? "first" : ""}`}>{isFirst ? "first" : signs[row.kind]}</div>
      <Cell step={"b" in row ? row.b : undefined} words={words[1]} agentId={row.agentId} tone={tone} />
    </>
  );
}

/** The steps that two runs share. A fork has them from the journal of its origin and pays nothing. */
function SharedCell({
  row: { agents, agentId, steps, costUsd, at, free },
  side,
}: {
  readonly row: SharedRow;
  readonly side: "a" | "b";
}): JSX.Element {
  const isFree = free.includes(side);
  return (
    <div class={`cell ${isFree ? "dim" : ""}`} tabIndex={-1}>
      <span class="mid cell-agent">{agents === 1 ? <Name text={agentId} /> : counted(agents, "agent")}</span>
      <span class="cut grow">
        {isFree
          ? `the same ${counted(steps, "step")}`
          : `${counted(steps, "step")}, until event ${grouped(at)}`}
      </span>
      {isFree ? <span class="chip free">free</span> : <span>{usd(costUsd)}</span>}
    </div>
  );
}

function Cell({
  step,
  words = step?.words,
  agentId,
  tone,
}: {
  readonly step: ComparedStep | undefined;
  /** What is shown of the step. Default: its words. */
  readonly words: string | undefined;
  readonly agentId: string;
  readonly tone: string;
}): JSX.Element {
  if (step === undefined)
    return (
      <div class={`cell missing ${tone.includes("first") ? "first" : ""}`} tabIndex={-1}>
        <span class="unseen">no such step</span>
      </div>
    );
  return (
    <div class={`cell ${tone}`} tabIndex={-1}>
      <span class="mid cell-agent">
        <Name text={agentId} />
      </span>
      <span class="cut grow" title={words}>
        {words}
      </span>
      <span class={step.step.kind === "model" ? "" : "dim"}>
        {step.step.kind === "model" ? usd(step.step.costUsd) : "–"}
      </span>
    </div>
  );
}
