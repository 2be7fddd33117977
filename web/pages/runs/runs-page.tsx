import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { connection } from "../../api/connection.ts";
import { asking, facts, inbox, waiting } from "../../api/runs-feed.ts";
import type { Facts, Run, RunFigures } from "../../api/types.ts";
import { useKeys } from "../../base/keys.ts";
import { now } from "../../base/now.ts";
import { go, place, runPath } from "../../base/route.ts";
import { ago, capUsd, clock, columnUsd, counted, grouped, shortId, span, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { shownName } from "../../parts/name.tsx";
import { ScoreChips } from "../../parts/run-scores.tsx";
import { BudgetMeter } from "../../parts/budget-meter.tsx";
import { endWord, hasEnded, lookOfRun, runWord } from "../../model/status.ts";
import { openNewRun } from "../../parts/open-form.tsx";
import { parseFilter } from "../../model/run-filter.ts";
import { failureWords } from "../../model/words/failure-words.ts";
import { figures, useFigures } from "../../model/run-figures.ts";
import { dayRange } from "../../../src/surfaces/view/run-words.ts";
import { filterOf, fits, type RunFilter } from "../../model/run-query.ts";
import type { BulkBar, Choice } from "./bulk-bar.tsx";
import type { EmptyRuns, NoneFits } from "./empty-runs.tsx";
import { addFilter, FilterBar } from "./filter-bar.tsx";
import { RunList } from "./run-list.ts";
import { RunViews, useRunCount } from "./run-views.tsx";
import type { SaveView } from "./save-view.tsx";

interface RunsPageProps {
  /** What is needed only after a person has done something, or without any run. `null` until it is loaded. */
  readonly later: {
    readonly BulkBar: typeof BulkBar;
    readonly EmptyRuns: typeof EmptyRuns;
    readonly NoneFits: typeof NoneFits;
    readonly SaveView: typeof SaveView;
  } | null;
}

/** The runs that fit the address, newest first or by cost. */
export function RunsPage({ later }: RunsPageProps): JSX.Element {
  const { query } = place.value;
  const filter = filterOf(query);
  const { words } = filter;
  const list = listOf(filter);
  useEffect(() => list.open(), [list]);
  const [chosen, setChosen] = useState<Choice>(new Set());
  useEffect(() => setChosen(new Set()), [list]);
  const found = useRunCount(query.toString());
  const matches = parseFilter(words);
  const all = list.runs.value;
  const runs = all.filter((run) => fits(run, filter) && matches(run));
  const state = list.state.value;
  const isFiltered = [...query.keys()].length > 0;
  if (!isFiltered && state === "complete" && all.length === 0)
    return later === null ? <main id="main" aria-busy="true" /> : <later.EmptyRuns />;
  return (
    <main class="page" id="main">
      <div class="page-head">
        <h1>Runs</h1>
        <a class="button" href="/compare">
          Compare
        </a>
        <button class="button primary" onClick={openNewRun}>
          New run <kbd>N</kbd>
        </button>
      </div>
      <FactStrip read={facts.value} />
      <RunViews query={query} save={later?.SaveView ?? null} />
      <FilterBar />
      {list.problem.value !== null && connection.value.state !== "offline" && (
        <p class="problem" role="alert">
          {list.problem.value}
        </p>
      )}
      <RunTable
        list={list}
        runs={runs}
        read={words === "" ? runs : all}
        isByCost={filter.sort === "costliest"}
        chosen={chosen}
        onChoose={setChosen}
      />
      {runs.length === 0 && state === "more" && (
        <p class="dim none" role="status">
          None of the newest {counted(all.length, "run")} fits{words !== "" && <code> {words}</code>}.
        </p>
      )}
      {runs.length === 0 && state === "complete" && later !== null && (
        <later.NoneFits query={query} all={all.length} />
      )}
      <End list={list} shown={runs.length} found={words === "" ? found : null} />
      {runs.length > 0 && <Freshness runs={runs} isByCost={filter.sort === "costliest"} />}
      {(chosen === "all" || chosen.size > 0) && later !== null && (
        <later.BulkBar
          chosen={chosen}
          runs={runs}
          filter={filter}
          found={words === "" && filter.group !== "waits" ? found : null}
          onChoose={setChosen}
          onDone={({ runIds }, order) => {
            if (order === "delete") list.drop(runIds);
          }}
        />
      )}
    </main>
  );
}

/** Says how old the costs are, and whose times are shown. */
function Freshness({
  runs,
  isByCost,
}: {
  readonly runs: readonly Run[];
  readonly isByCost: boolean;
}): JSX.Element {
  const working = runs.filter(({ status }) => status === "running").length;
  return (
    <p class="label fresh-words">
      {isByCost
        ? `Sorted by what each run had spent when it last waited or ended.${working === 0 ? "" : ` ${counted(working, "run")} here ${working === 1 ? "works and has" : "work and have"} spent more since.`}`
        : "Ended runs cost what is shown; the cost of a run that works is a few seconds old."}{" "}
      Times are those of this browser.
    </p>
  );
}

const lists = new Map<string, RunList>();
/** Number of lists that are kept. */
const mostLists = 12;

/** The list of a filter. It is kept, so that a server that does not answer blanks nothing. */
function listOf(filter: RunFilter): RunList {
  const { words: _words, ...server } = filter;
  const key = JSON.stringify([server, dayRange(filter.started), dayRange(filter.ended)]);
  const known = lists.get(key) ?? new RunList(filter);
  lists.delete(key);
  lists.set(key, known);
  const [oldest] = lists.keys();
  if (lists.size > mostLists && oldest !== undefined) lists.delete(oldest);
  return known;
}

function FactStrip({ read }: { readonly read: Facts | null }): JSX.Element {
  const highest = Math.max(...(read?.spendByHour.map(({ costUsd }) => costUsd) ?? []), 0);
  return (
    <div class="facts">
      <a href="/inbox">
        <span class="label">Waiting for you</span>
        <Waiting />
      </a>
      <div>
        <span class="label">Live</span>
        <span class="big">
          {read?.live ?? "–"} <small>{read === null ? "" : liveWords(read)}</small>
        </span>
      </div>
      <div>
        <span class="label">Spent today</span>
        <span class="big">
          {read === null ? "–" : usd(read.spentTodayUsd)}{" "}
          <small>
            {read?.capPerDayUsd == null ? "since 0:00 UTC" : `of ${capUsd(read.capPerDayUsd)} per UTC day`}
          </small>
        </span>
      </div>
      <div>
        <span class="label">Not paid again today</span>
        <span class="big">
          {read === null ? "–" : usd(read.notPaidAgainTodayUsd)}{" "}
          <small>{read === null ? "" : `${counted(read.replayedToday, "step")} after crashes`}</small>
        </span>
      </div>
      <div class="wide-only">
        <span class="label">Spend by hour, last 24 h</span>
        <svg
          class="bars"
          viewBox="0 0 240 32"
          preserveAspectRatio="none"
          role="img"
          aria-label={`Spend by hour. The highest hour has ${usd(highest)}.`}
        >
          {read?.spendByHour.map(({ from, costUsd }, at) => {
            const height = highest === 0 ? 1 : Math.max(1, (32 * costUsd) / highest);
            return (
              <rect
                key={from}
                x={at * 10}
                y={32 - height}
                width="8"
                height={height}
                class={at === 23 ? "last" : ""}
              />
            );
          })}
        </svg>
      </div>
    </div>
  );
}

function liveWords({ live, liveAgents }: Facts): string {
  return `${live === 1 ? "run" : "runs"}, ${counted(liveAgents, "agent")} at work`;
}

/** How many decisions wait for the person, and since when. */
function Waiting(): JSX.Element {
  const count = waiting.value;
  const oldest = inbox.value?.questions.items[0];
  return (
    <span class={`big ${oldest === undefined ? "" : "wait"}`}>
      {count ?? "–"}{" "}
      <small>
        {oldest === undefined
          ? count === null
            ? ""
            : "nothing"
          : `oldest ${span(now.value - oldest.requestedAt)}`}
      </small>
    </span>
  );
}

interface RunTableProps {
  readonly list: RunList;
  readonly runs: readonly Run[];
  /** The runs whose figures are read: a filter compares those of all. */
  readonly read: readonly Run[];
  readonly isByCost: boolean;
  readonly chosen: Choice;
  readonly onChoose: (chosen: Choice) => void;
}

function RunTable({ list, runs, read, isByCost, chosen, onChoose }: RunTableProps): JSX.Element {
  const [selected, setSelected] = useState<string | null>(null);
  const lastChosen = useRef<string | null>(null);
  const table = useRef<HTMLTableElement>(null);
  list.isFree = () => table.current?.matches(":hover, :focus-within") !== true;
  const move = (by: number): void => {
    const at = runs.findIndex(({ runId }) => runId === selected);
    const next = runs[Math.max(0, Math.min(runs.length - 1, at + by))];
    if (next === undefined) return;
    setSelected(next.runId);
    table.current?.querySelector<HTMLElement>(`a[href="${runPath(next.runId)}"]`)?.focus();
  };
  const toggle = (runId: string, isTo = false): void => {
    const next = new Set(chosen === "all" ? runs.map((run) => run.runId) : chosen);
    const [from, to] = [
      runs.findIndex((run) => run.runId === lastChosen.current),
      runs.findIndex((run) => run.runId === runId),
    ];
    if (isTo && from >= 0)
      for (const run of runs.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(run.runId);
    else if (!next.delete(runId)) next.add(runId);
    lastChosen.current = runId;
    onChoose(next);
  };
  const isAllShown = runs.length > 0 && runs.every(({ runId }) => chosen === "all" || chosen.has(runId));
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: ({ shiftKey }) => (selected === null ? false : toggle(selected, shiftKey)),
    Escape: () => (chosen === "all" || chosen.size > 0 ? onChoose(new Set()) : false),
    Enter: () => (selected === null ? false : go(runPath(selected))),
  });
  const fresh = list.fresh.value.length;
  useFigures(read);
  return (
    <>
      {fresh > 0 && (
        <button class="fresh" onClick={() => list.showFresh()}>
          {counted(fresh, "new run")}
        </button>
      )}
      <table class="table runs" ref={table}>
        <thead>
          <tr>
            <th class="c-choose">
              <input
                type="checkbox"
                aria-label={`Select the ${counted(runs.length, "run")} shown`}
                checked={isAllShown}
                disabled={runs.length === 0}
                onChange={() => onChoose(isAllShown ? new Set() : new Set(runs.map(({ runId }) => runId)))}
              />
            </th>
            <th class="c-status">Status</th>
            <th>Run</th>
            <th class="c-user">User</th>
            <th class="c-number right">Agents</th>
            <th class="c-budget" aria-sort={isByCost ? "descending" : "none"}>
              Spent of budget{isByCost && " ↓"}
            </th>
            <th class="c-number right">Took</th>
            <th class="c-steps right">Steps</th>
            <th class="c-time right">Started</th>
          </tr>
        </thead>
        <tbody>
          {list.state.value === "loading" && runs.length === 0 && list.problem.value === null
            ? Array.from({ length: 8 }, (_each, at) => <GreyRow key={at} />)
            : runs.map((run) => (
                <RunRow
                  key={run.runId}
                  run={run}
                  isSelected={run.runId === selected}
                  isChosen={chosen === "all" || chosen.has(run.runId)}
                  onToggle={(isTo) => toggle(run.runId, isTo)}
                />
              ))}
        </tbody>
      </table>
    </>
  );
}

function GreyRow(): JSX.Element {
  return (
    <tr class="grey" aria-hidden="true">
      <td colSpan={9}>
        <span />
      </td>
    </tr>
  );
}

interface RunRowProps {
  readonly run: Run;
  readonly isSelected: boolean;
  readonly isChosen: boolean;
  readonly onToggle: (isTo: boolean) => void;
}

function RunRow({ run, isSelected, isChosen, onToggle }: RunRowProps): JSX.Element {
  const { runId, agentId, title, userId, createdAt, endedAt } = run;
  const known = figures.value.get(runId);
  const crashes = known?.crashes.length ?? 0;
  const isOver = hasEnded(run.status);
  const look = lookOfRun(run, asking.value);
  return (
    <tr
      class={`${isOver && look !== "failed" ? "over" : ""} ${isSelected ? "selected" : ""} ${isChosen ? "chosen" : ""}`}
    >
      <td class="c-choose">
        <label>
          <input
            type="checkbox"
            aria-label={`Select ${shownName(title ?? runId)}`}
            checked={isChosen}
            onClick={({ shiftKey }) => onToggle(shiftKey)}
          />
        </label>
      </td>
      <td class="c-status">
        <span class={`status ${look}`}>
          <Glyph look={look} status={run.status} />
          <span class="word">
            {look === "failed" ? endWord(run.status, known?.failure ?? null) : runWord(run, asking.value)}
          </span>
        </span>
      </td>
      <td class="c-title">
        <a class="title cut" href={runPath(runId)}>
          <bdi>{shownName(title ?? agentId)}</bdi>
        </a>
        <span class="sub">
          <span class="cut">{agentId}</span>
          <code class="cut" title={runId}>
            {shortId(runId)}
          </code>
          {known?.forkedFrom != null && (
            <a class="dim" href={runPath(known.forkedFrom.runId)} title={`Fork of ${known.forkedFrom.runId}`}>
              fork after event {grouped(known.forkedFrom.at)}
            </a>
          )}
          <ScoreChips scores={run.scores} />
          {crashes > 0 && <span class="bad">{counted(crashes, "crash", "crashes")} survived</span>}
          {look === "failed" && known?.failure != null && (
            <span class="bad cut why" title={shownName(failureWords(known.failure))}>
              <bdi>{shownName(failureWords(known.failure))}</bdi>
            </span>
          )}
        </span>
      </td>
      <td class="c-user">
        {userId !== null && (
          <button
            class="link cut"
            title={`Only the runs of ${shownName(userId)}`}
            onClick={() => addFilter("user", userId)}
          >
            <bdi>{shownName(userId)}</bdi>
          </button>
        )}
      </td>
      <td class="c-number right">{known === undefined ? "–" : grouped(known.agents)}</td>
      <td class="c-budget">
        <Spent run={run} known={known} />
      </td>
      <td class="c-number right">{clock((endedAt ?? Math.max(now.value, createdAt)) - createdAt)}</td>
      <td class="c-steps right dim">{known === undefined ? "–" : stepWords(known)}</td>
      <td class="c-time right dim">{ago(createdAt, now.value)}</td>
    </tr>
  );
}

/** The budget meter of a run with its numbers. Until its figures are read, the summary says what was spent. */
function Spent({ run, known }: { readonly run: Run; readonly known: RunFigures | undefined }): JSX.Element {
  const costUsd = known === undefined || known.agents === 0 ? run.costUsd : known.costUsd;
  const cap = known?.maxCostUsd ?? null;
  const lost = known?.lostUsd ?? 0;
  const isOver = hasEnded(run.status) && run.status !== "budget_exhausted";
  const held = hasEnded(run.status) ? 0 : (known?.heldUsd ?? 0);
  const values = { own: Math.max(0, (costUsd ?? 0) - lost), team: 0, lost, held, cap };
  return (
    <>
      {cap !== null && <BudgetMeter values={values} tone={isOver ? "done" : "live"} />}
      <span class="row between sub">
        <span>{columnUsd(costUsd)}</span>
        {known !== undefined && <span>{cap === null ? "no limit" : `of ${capUsd(cap)}`}</span>}
      </span>
    </>
  );
}

function stepWords({ steps, freeSteps }: RunFigures): string {
  return freeSteps === 0 ? grouped(steps) : `${grouped(steps)}, ${grouped(freeSteps)} free`;
}

/** Number of runs that are looked at for a filter before the person is asked. */
const mostUnasked = 1_000;

interface EndProps {
  readonly list: RunList;
  readonly shown: number;
  /** How many runs the server counts, in words. */
  readonly found: string | null;
}

/** Reads the next page when the end of the list comes into view, also if a filter shows none of the runs that were read. */
function End({ list, shown, found }: EndProps): JSX.Element {
  const element = useRef<HTMLParagraphElement>(null);
  const [limit, setLimit] = useState(mostUnasked);
  const state = list.state.value;
  const read = list.runs.value.length;
  const isAsked = shown === 0 && read >= limit;
  useEffect(() => {
    if (element.current === null || state !== "more" || isAsked) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) void list.more();
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [list, state, shown, read, isAsked]);
  return (
    <p class="dim end" ref={element}>
      {state === "more" && isAsked ? (
        <button class="button" onClick={() => setLimit(read + mostUnasked)}>
          Look at older runs
        </button>
      ) : state === "more" ? (
        shown === 0 ? (
          "Looking at older runs."
        ) : (
          `${counted(shown, "run")}${found === null || found === "" ? "" : ` of ${found}`}. Older runs load as you scroll.`
        )
      ) : shown > 0 ? (
        counted(shown, "run")
      ) : (
        ""
      )}
    </p>
  );
}
