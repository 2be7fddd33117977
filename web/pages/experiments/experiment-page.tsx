import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../../api/client.ts";
import type { Experiment, ListedExperiment } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { columnUsd, counted, dayAndTime, grouped, took } from "../../base/format.ts";
import { useKeys } from "../../base/keys.ts";
import { now } from "../../base/now.ts";
import { experimentPath, place, runPath, setQuery } from "../../base/route.ts";
import { shownName } from "../../parts/name.tsx";
import { scoreText } from "../../parts/run-scores.tsx";
import { CaseDetail } from "./case-detail.tsx";
import { GateState, readExperiments } from "./listed-experiments.tsx";
import { ScorerTable } from "./scorer-table.tsx";
import { cellOf, inShownOrder, onlyBefore, worstFirst, type CaseLine } from "./worst-first.ts";

/** Value of the parameter `with` that compares with nothing. */
const nothing = "none";
/** How often the results of a run that works are read, in milliseconds. */
const readEveryMs = 5_000;
/** Number of cases that are shown at first, and that "Show more" adds. */
const casesPerPage = 200;

/** One experiment, compared with the run before it or with a chosen one. */
export function ExperimentPage({ runId }: { readonly runId: string }): JSX.Element {
  const chosen = place.value.query.get("with");
  const [isOpen, setOpen] = useState(false);
  // The results of a run that works are read again and again.
  const times = isOpen ? Math.floor(now.value / readEveryMs) : 0;
  const { value, problem, again } = useRead(() => readBoth(runId, chosen), [runId, chosen, times]);
  const isGoingOn = value !== null && value.experiment.run.endedAt === null;
  useEffect(() => setOpen(isGoingOn), [isGoingOn]);
  const caseId = place.value.query.get("case");
  return (
    <main class="page experiment" id="main">
      <nav class="crumbs" aria-label="Path">
        <a href="/experiments">Experiments</a>
        <span aria-hidden="true">/</span>
        <code>{runId}</code>
      </nav>
      <div class="page-head">
        <h1 class="cut">{value === null ? "Experiment" : shownName(value.experiment.name)}</h1>
        <a class="button" href={runPath(runId)}>
          Run
        </a>
        <button class="button" onClick={again}>
          Read again
        </button>
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      {value === null && problem === null && <p class="loading">Reading the results</p>}
      {value !== null && (
        <>
          <Facts {...value} />
          <ScorerTable experiment={value.experiment} />
          <div class={`case-columns ${caseId === null ? "" : "with-detail"}`}>
            <Cases
              key={value.baseline?.run.runId}
              experiment={value.experiment}
              baseline={value.baseline?.run.runId ?? null}
              caseId={caseId}
            />
            {caseId !== null && (
              <CaseDetail
                key={caseId}
                runId={runId}
                caseId={caseId}
                variants={value.experiment.variants}
                baseline={value.baseline?.run.runId ?? null}
              />
            )}
          </div>
        </>
      )}
    </main>
  );
}

interface Both {
  readonly experiment: Experiment;
  /** The experiments of the same name. */
  readonly others: readonly ListedExperiment[];
  readonly baseline: ListedExperiment | undefined;
}

async function readBoth(runId: string, chosen: string | null): Promise<Both> {
  const { name, run } = await get("/api/experiments/{runId}", { params: { runId } });
  const others = (await readExperiments(name)).filter((each) => each.run.runId !== runId);
  const before = others.find((each) => each.run.createdAt <= run.createdAt);
  const baseline = chosen === null ? before : others.find((each) => each.run.runId === chosen);
  const query = baseline === undefined ? {} : { baseline: baseline.run.runId };
  return {
    experiment: await get("/api/experiments/{runId}", { params: { runId }, query }),
    others,
    baseline,
  };
}

function Facts({ experiment, others, baseline }: Both): JSX.Element {
  const { run, report, cases, expectedTrials, endedTrials, trials } = experiment;
  const { gates, missing, isUnreliable, problems } = report;
  const isPassed = gates.length === 0 || missing > 0 ? null : gates.every((gate) => gate.isPassed);
  return (
    <>
      <div class="facts-line experiment-facts">
        <GateState experiment={{ run, isPassed, expectedTrials, endedTrials }} />
        <span>
          <b>{grouped(cases)}</b>
          <span class="dim">
            {cases === 1 ? "case" : "cases"}
            {trials > 1 && `, ${counted(trials, "trial")} each`}
          </span>
        </span>
        <span>
          <b>{columnUsd(run.costUsd)}</b> <span class="dim">with its judges</span>
        </span>
        {problems.length > 0 && (
          <span class="bad">{counted(problems.length, "score or answer")} missing</span>
        )}
        {isUnreliable && <span class="dim">Too few cases to rely on</span>}
        <label class="compare-with">
          <span class="dim">Compared with</span>
          <select
            class="select"
            value={baseline?.run.runId ?? nothing}
            onChange={({ currentTarget }) => setQuery("with", currentTarget.value)}
          >
            <option value={nothing}>nothing</option>
            {others.map((each) => (
              <option key={each.run.runId} value={each.run.runId}>
                the run of {dayAndTime(each.run.createdAt)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {gates
        .filter((gate) => !gate.isPassed)
        .map(({ scorer, variant, text }) => (
          <p class="bad gate-reason" key={`${scorer} ${variant} ${text}`}>
            {shownName(text)}
            {experiment.variants.length > 1 && ` (${shownName(variant)})`}
          </p>
        ))}
      {missing > 0 && (
        <p class="gate-reason">
          {counted(missing, "trial")} of {grouped(expectedTrials)} {missing === 1 ? "has" : "have"} no result
          yet.{" "}
          {run.status === "budget_exhausted" ? (
            <>
              The run stopped at its budget and continues with them after a top-up.{" "}
              <a class="link" href={runPath(run.runId)}>
                Top up the run
              </a>
            </>
          ) : (
            run.endedAt !== null && "A resumption of the run continues with them."
          )}
        </p>
      )}
    </>
  );
}

interface CasesProps {
  readonly experiment: Experiment;
  /** Id of the run that is compared with. */
  readonly baseline: string | null;
  readonly caseId: string | null;
}

function Cases({ experiment, baseline, caseId }: CasesProps): JSX.Element {
  const [most, setMost] = useState(casesPerPage);
  const { variants, scorers, run } = experiment;
  const sorted = worstFirst(experiment);
  // The order of a run that works is that of the first look, until the reader asks for another one.
  const [shown, setShown] = useState(() => (run.endedAt === null ? idsOf(sorted) : null));
  const lines = shown === null ? sorted : inShownOrder(sorted, shown);
  const isMoved = lines.some((line, at) => line !== sorted[at]);
  // A case that is still missing may only be late.
  const gone = experiment.report.missing > 0 ? [] : onlyBefore(experiment);
  const isOnlyHere = ({ before }: CaseLine): boolean => before === null && experiment.baselineRows !== null;
  const move = (step: number): void => {
    const at = lines.findIndex(({ row }) => row.caseId === caseId);
    const next = lines[at < 0 ? 0 : at + step];
    if (next !== undefined) setQuery("case", next.row.caseId);
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
  return (
    <section aria-labelledby="cases">
      <div class="row between">
        <h2 id="cases">Cases, worst first</h2>
        {isMoved && (
          <button
            class="button"
            onClick={() => setShown(run.endedAt === null ? idsOf(sorted) : null)}
            title="Rows keep their places while results arrive"
          >
            Sort again
          </button>
        )}
      </div>
      <div class="wide-table" role="region" aria-labelledby="cases" tabIndex={0}>
        <table class="table cases">
          <thead>
            <tr>
              <th>Case</th>
              {variants.map((variant) => (
                <th key={variant}>{shownName(variant)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lines.slice(0, most).map((line) => (
              <tr
                key={line.row.caseId}
                class={`${line.row.caseId === caseId ? "chosen" : ""} ${isOnlyHere(line) ? "only-one" : ""}`}
              >
                <td class="case-id">
                  <a class="link case-line" href={casePath(run.runId, line.row.caseId)}>
                    {shownName(line.row.caseId)}
                  </a>
                  {isOnlyHere(line) && <span class="sub dim">not in the other run</span>}
                </td>
                {variants.map((variant) => (
                  <td key={variant}>
                    <Cell line={line} variant={variant} scorers={scorers} />
                  </td>
                ))}
              </tr>
            ))}
            {lines.length <= most &&
              gone.map((row) => (
                <tr key={row.caseId} class="only-one">
                  <td class="case-id">
                    <a class="link case-line" href={casePath(baseline ?? "", row.caseId, run.runId)}>
                      {shownName(row.caseId)}
                    </a>
                    <span class="sub dim">only in the other run</span>
                  </td>
                  {variants.map((variant) => (
                    <td key={variant} class="dim">
                      no result
                    </td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
      {lines.length > most && (
        <p>
          <button class="button" onClick={() => setMost(most + casesPerPage)}>
            Show more of {counted(lines.length, "case")}
          </button>
        </p>
      )}
    </section>
  );
}

function idsOf(lines: readonly CaseLine[]): readonly string[] {
  return lines.map(({ row }) => row.caseId);
}

function casePath(runId: string, caseId: string, baseline?: string): string {
  const query = new URLSearchParams(place.value.query);
  if (baseline !== undefined) query.set("with", baseline);
  query.set("case", caseId);
  return `${experimentPath(runId)}?${query.toString()}`;
}

interface CellProps {
  readonly line: CaseLine;
  readonly variant: string;
  readonly scorers: readonly string[];
}

/** What a variant did with a case: its scores beside those before, its cost and its time. */
function Cell({ line: { row, before }, variant, scorers }: CellProps): JSX.Element {
  const cell = row.cells.find((each) => each.variant === variant);
  if (cell === undefined) return <span class="dim">no result</span>;
  const former = cellOf(before, variant);
  return (
    <span class="case-cell">
      {scorers.map((scorer) => {
        const mean = cell.scores[scorer] ?? null;
        const old = former?.scores[scorer] ?? null;
        const fell = mean !== null && old !== null && mean < old;
        return (
          <span key={scorer} class={fell ? "bad" : ""}>
            <span class="dim">{shownName(scorer)}</span>{" "}
            <b>{mean === null ? "did not run" : scoreText(mean)}</b>
            {old !== null && mean !== null && old !== mean && <span class="dim"> was {scoreText(old)}</span>}
          </span>
        );
      })}
      <span class="dim">
        {columnUsd(cell.costUsd)}, {took(cell.durationMs)}
        {cell.unanswered > 0 && `, ${counted(cell.unanswered, "trial")} without an answer`}
      </span>
    </span>
  );
}
