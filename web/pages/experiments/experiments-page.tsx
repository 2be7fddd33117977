import type { JSX } from "preact";
import type { ListedExperiment } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { ago, columnUsd, counted, grouped } from "../../base/format.ts";
import { now } from "../../base/now.ts";
import { experimentPath, place } from "../../base/route.ts";
import { shownName } from "../../parts/name.tsx";
import { scoreText } from "../../parts/run-scores.tsx";
import { ExperimentPage } from "./experiment-page.tsx";
import { GateState, readExperiments } from "./listed-experiments.tsx";

/** Number of runs of an experiment in its trend. */
const inTrend = 12;

/** All experiments, or the one that the address names. */
export function ExperimentsPage(): JSX.Element {
  const [, runId] = place.value.parts;
  return runId === undefined ? <List /> : <ExperimentPage key={runId} runId={runId} />;
}

function List(): JSX.Element {
  const { value, problem, again } = useRead(() => readExperiments(), []);
  return (
    <main class="page experiments" id="main">
      <div class="page-head">
        <h1>Experiments</h1>
        {value !== null && value.length > 0 && <span class="dim">{counted(value.length, "run")}</span>}
        <span class="grow" />
        <button class="button" onClick={again}>
          Read again
        </button>
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      {value === null && problem === null && <p class="loading">Reading the experiments</p>}
      {value?.length === 0 && <Empty />}
      {value !== null && value.length > 0 && <Table experiments={value} />}
    </main>
  );
}

function Empty(): JSX.Element {
  return (
    <div class="empty-part">
      <p>
        An experiment gives cases to an agent, scores its answers, and says whether a change made it better,
        worse or dearer. It is a run: it has one budget and survives a crash.
      </p>
      <p>
        Declare one with <code>experiment()</code> of <code>reeve/experiments</code>, start it, and it is
        listed here. Stored runs become its cases with <code>reeve eval add RUN --to cases.jsonl</code>.
      </p>
    </div>
  );
}

function Table({ experiments }: { readonly experiments: readonly ListedExperiment[] }): JSX.Element {
  return (
    <table class="table figure-cards experiment-list" aria-label="Experiments, newest first">
      <thead>
        <tr>
          <th>Gates</th>
          <th>Experiment</th>
          <th class="right">Cases</th>
          <th class="right">Lowest mean</th>
          <th class="right">Trend</th>
          <th class="right">Spent</th>
          <th class="right">Started</th>
        </tr>
      </thead>
      <tbody>
        {experiments.map((each) => (
          <tr key={each.run.runId}>
            <td>
              <GateState experiment={each} />
            </td>
            <td class="cut" data-head="Experiment">
              <a class="link" href={experimentPath(each.run.runId)}>
                {shownName(each.name)}
              </a>
              {each.reasons[0] !== undefined && <span class="sub bad cut">{shownName(each.reasons[0])}</span>}
            </td>
            <td class="right" data-head="Cases">
              {grouped(each.cases)}
            </td>
            <td class="right" data-head="Lowest mean">
              {each.lowest === null ? (
                "–"
              ) : (
                <>
                  <span class="dim">{shownName(each.lowest.scorer)}</span> {scoreText(each.lowest.mean)}
                </>
              )}
            </td>
            <td class="right" data-head="Trend">
              <Trend values={trendOf(each, experiments)} />
            </td>
            <td class="right" data-head="Spent">
              {columnUsd(each.run.costUsd)}
            </td>
            <td class="right dim" data-head="Started">
              {ago(each.run.createdAt, now.value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The lowest means of the runs of an experiment up to this one, the oldest first. */
function trendOf(one: ListedExperiment, all: readonly ListedExperiment[]): readonly number[] {
  return all
    .filter(({ name, run }) => name === one.name && run.createdAt <= one.run.createdAt)
    .slice(0, inTrend)
    .flatMap(({ lowest }) => lowest?.mean ?? [])
    .toReversed();
}

function Trend({ values }: { readonly values: readonly number[] }): JSX.Element {
  if (values.length < 2) return <span class="dim">first run</span>;
  const points = values.map((value, at) => `${(at * 72) / (values.length - 1) + 2},${20 - value * 18}`);
  return (
    <svg
      class="trend"
      viewBox="0 0 76 22"
      width="76"
      height="22"
      role="img"
      aria-label={`Lowest mean of the last ${values.length} runs: ${values.map(scoreText).join(", ")}`}
    >
      <polyline points={points.join(" ")} />
    </svg>
  );
}
