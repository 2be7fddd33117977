import { CopyButton } from "../../parts/copy-button.tsx";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { connection } from "../../api/connection.ts";
import { asking, facts } from "../../api/runs-feed.ts";
import type { Facts, Run, RunFigures } from "../../api/types.ts";
import { useKeys } from "../../base/keys.ts";
import { now } from "../../base/now.ts";
import { go, place, runPath, setQuery } from "../../base/route.ts";
import { ago, capUsd, clock, counted, grouped, shortId, span, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Purse } from "../../parts/purse.tsx";
import { hasEnded, lookOfRun, runWord } from "../../model/status.ts";
import { waitsForYou } from "../../model/inbox-items.ts";
import { openNewRun } from "../../parts/new-run.tsx";
import { groups, isIn, parseFilter, type Group } from "../../model/run-filter.ts";
import { figures, useFigures } from "../../model/run-figures.ts";
import { RunList } from "./run-list.ts";

const commands = [
  ["reeve demo", "12 agents, no key needed"],
  ['reeve run "What does this project do?"', "one agent, one question"],
  ['reeve run --continue "And its licence?"', "the same conversation"],
] as const;

/** Says what a run is, and how to start one. */
function EmptyRuns(): JSX.Element {
  return (
    <main class="empty" id="main">
      <CompanyDrawing />
      <h1>No runs yet</h1>
      <p>
        A run is one task given to one agent, and everyone it hires. It shows up here the moment it starts,
        from this page or from the terminal.
      </p>
      <div class="actions">
        <button class="button primary" onClick={openNewRun}>
          New run
        </button>
      </div>
      <h2>Or type</h2>
      {commands.map(([command, about]) => (
        <div class="command-line" key={command}>
          <code class="cut">{command}</code>
          <span class="dim wide-only">{about}</span>
          <CopyButton text={command} label={`Copy ${command}`} />
        </div>
      ))}
    </main>
  );
}

/** A small company: one agent and two reports. */
function CompanyDrawing(): JSX.Element {
  return (
    <svg class="drawing" width="280" height="104" viewBox="0 0 280 104" aria-hidden="true">
      <path class="string" stroke-width="8" d="M134 32v14q0 8-8 8H64q-8 0-8 8v10" />
      <path class="string" stroke-width="5" d="M147 32v14q0 8 8 8h62q8 0 8 8v10" />
      <rect class="card-shape" x="80" y=".5" width="120" height="32" rx="6" />
      <rect class="card-shape dashed" x=".5" y="71" width="112" height="32" rx="6" />
      <rect class="card-shape dashed" x="168" y="71" width="111" height="32" rx="6" />
      <rect class="track" x="92" y="18" width="96" height="6" rx="2" />
      <rect class="track" x="12" y="88" width="88" height="6" rx="2" />
      <rect class="track" x="180" y="88" width="88" height="6" rx="2" />
    </svg>
  );
}

const groupNames: Readonly<Record<Group, string>> = {
  all: "All",
  live: "Live",
  waits: "Waits for you",
  failed: "Failed",
  done: "Done",
};

/** All runs, newest first. */
export function RunsPage(): JSX.Element {
  const { query } = place.value;
  const group = groups.find((each) => each === query.get("show")) ?? "all";
  const text = query.get("find") ?? "";
  const list = listOf(group);
  useEffect(() => list.open(), [list]);
  // The counts are those of the runs that are read so far.
  const everything = listOf("all");
  useEffect(() => (everything === list ? undefined : everything.open()), [everything, list]);
  const matches = parseFilter(text);
  const all = list.runs.value;
  const runs = all.filter((run) => isIn(group, run) && matches(run));
  const state = list.state.value;
  if (group === "all" && state === "complete" && all.length === 0) return <EmptyRuns />;
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
      <div class="tools">
        <div class="segments" role="group" aria-label="Show">
          {groups.map((each) => (
            <button
              key={each}
              aria-pressed={each === group}
              onClick={() => setQuery("show", each === "all" ? null : each)}
            >
              {groupNames[each]}
              <span class="count">{countIn(each, everything)}</span>
            </button>
          ))}
        </div>
        <label class="find">
          <Icon name="find" />
          <input
            type="search"
            aria-label="Filter runs"
            placeholder="Filter: agent, id, cost>1, steps>50"
            value={text}
            onInput={(event) => setQuery("find", event.currentTarget.value || null)}
          />
        </label>
      </div>
      {list.problem.value !== null && connection.value.state !== "offline" && (
        <p class="problem" role="alert">
          {list.problem.value}
        </p>
      )}
      <RunTable list={list} runs={runs} read={text === "" ? runs : all} />
      {runs.length === 0 && state === "more" && (
        <p class="dim none" role="status">
          None of the newest {counted(all.length, "run")} fits{text !== "" && <code> {text}</code>}.
        </p>
      )}
      {runs.length === 0 && state === "complete" && (
        <p class="dim none">
          {text === "" ? (
            <>No run is here. {groupNames[group]} fills as runs change.</>
          ) : (
            <>
              No run fits <code>{text}</code>. All {counted(all.length, "run")} were looked at.{" "}
              <button class="link" onClick={() => setQuery("find", null)}>
                Clear the filter
              </button>
            </>
          )}
        </p>
      )}
      <End list={list} shown={runs.length} />
    </main>
  );
}

const lists = new Map<Group, RunList>();

/** The list of a group. It is kept, so that a server that does not answer blanks nothing. */
function listOf(group: Group): RunList {
  const known = lists.get(group) ?? new RunList(group);
  lists.set(group, known);
  return known;
}

/** How many of the runs that are read belong to a group, with a plus if there are more. */
function countIn(group: Group, { runs, state }: RunList): string {
  if (state.value === "loading") return "";
  const count = runs.value.filter((run) => isIn(group, run)).length;
  return `${grouped(count)}${state.value === "more" && group !== "live" && group !== "waits" ? "+" : ""}`;
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
  return `${live === 1 ? "run" : "runs"}, ${counted(liveAgents, "agent")}`;
}

/** How many decisions wait for the person, and since when. */
function Waiting(): JSX.Element {
  const items = waitsForYou.value;
  const [oldest] = items ?? [];
  return (
    <span class={`big ${oldest === undefined ? "" : "wait"}`}>
      {items?.length ?? "–"}{" "}
      <small>
        {oldest === undefined ? (items === null ? "" : "nothing") : `oldest ${span(now.value - oldest.at)}`}
      </small>
    </span>
  );
}

interface RunTableProps {
  readonly list: RunList;
  readonly runs: readonly Run[];
  /** The runs whose figures are read: a filter compares those of all. */
  readonly read: readonly Run[];
}

function RunTable({ list, runs, read }: RunTableProps): JSX.Element {
  const [selected, setSelected] = useState<string | null>(null);
  const table = useRef<HTMLTableElement>(null);
  list.isFree = () => table.current?.matches(":hover, :focus-within") !== true;
  const move = (by: number): void => {
    const at = runs.findIndex(({ runId }) => runId === selected);
    const next = runs[Math.max(0, Math.min(runs.length - 1, at + by))];
    if (next === undefined) return;
    setSelected(next.runId);
    table.current?.querySelector<HTMLElement>(`a[href="${runPath(next.runId)}"]`)?.focus();
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
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
            <th class="c-status">Status</th>
            <th>Run</th>
            <th class="c-number right">Agents</th>
            <th class="c-allowance">Spent of allowance</th>
            <th class="c-number right">Took</th>
            <th class="c-steps right">Steps</th>
            <th class="c-time right">Started</th>
          </tr>
        </thead>
        <tbody>
          {list.state.value === "loading" && runs.length === 0 && list.problem.value === null
            ? Array.from({ length: 8 }, (_each, at) => <GreyRow key={at} />)
            : runs.map((run) => <RunRow key={run.runId} run={run} isSelected={run.runId === selected} />)}
        </tbody>
      </table>
    </>
  );
}

function GreyRow(): JSX.Element {
  return (
    <tr class="grey" aria-hidden="true">
      <td colSpan={7}>
        <span />
      </td>
    </tr>
  );
}

function RunRow({ run, isSelected }: { readonly run: Run; readonly isSelected: boolean }): JSX.Element {
  const { runId, agentId, title, createdAt, endedAt } = run;
  const known = figures.value.get(runId);
  const crashes = known?.crashes.length ?? 0;
  const isOver = hasEnded(run.status);
  const look = lookOfRun(run, asking.value);
  return (
    <tr class={`${isOver && look !== "failed" ? "over" : ""} ${isSelected ? "selected" : ""}`}>
      <td class="c-status">
        <span class={`status ${look}`}>
          <Glyph look={look} />
          <span class="word">{runWord(run, asking.value)}</span>
        </span>
      </td>
      <td class="c-title">
        <a class="title cut" href={runPath(runId)}>
          {title ?? agentId}
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
          {crashes > 0 && <span class="bad">{counted(crashes, "crash", "crashes")} survived</span>}
        </span>
      </td>
      <td class="c-number right">{known === undefined ? "–" : grouped(known.agents)}</td>
      <td class="c-allowance">
        <Spent run={run} known={known} />
      </td>
      <td class="c-number right">{clock((endedAt ?? Math.max(now.value, createdAt)) - createdAt)}</td>
      <td class="c-steps right dim">{known === undefined ? "–" : stepWords(known)}</td>
      <td class="c-time right dim">{ago(createdAt, now.value)}</td>
    </tr>
  );
}

/** The purse of a run with its numbers. Until its figures are read, the summary says what was spent. */
function Spent({ run, known }: { readonly run: Run; readonly known: RunFigures | undefined }): JSX.Element {
  const costUsd = known === undefined || known.agents === 0 ? run.costUsd : known.costUsd;
  const cap = known?.maxCostUsd ?? null;
  const lost = known?.lostUsd ?? 0;
  const isOver = hasEnded(run.status) && run.status !== "budget_exhausted";
  const held = hasEnded(run.status) ? 0 : (known?.heldUsd ?? 0);
  const values = { own: Math.max(0, (costUsd ?? 0) - lost), team: 0, lost, held, cap };
  return (
    <>
      {cap !== null && <Purse values={values} tone={isOver ? "done" : "live"} />}
      <span class="row between sub">
        <span>{usd(costUsd)}</span>
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

/** Reads the next page when the end of the list comes into view, also if a filter shows none of the runs that were read. */
function End({ list, shown }: { readonly list: RunList; readonly shown: number }): JSX.Element {
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
          `${counted(shown, "run")}. Older runs load as you scroll.`
        )
      ) : shown > 0 ? (
        counted(shown, "run")
      ) : (
        ""
      )}
    </p>
  );
}
