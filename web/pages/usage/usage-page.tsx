import type { JSX } from "preact";
import { get } from "../../api/client.ts";
import { facts } from "../../api/runs-feed.ts";
import type { UsageRow } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { place, setQuery } from "../../base/route.ts";
import { counted, grouped, usd } from "../../base/format.ts";

const dimensions = ["day", "agent", "model", "user"] as const;
type Dimension = (typeof dimensions)[number];
const names: Readonly<Record<Dimension, string>> = {
  day: "By day",
  agent: "By agent",
  model: "By model",
  user: "By user",
};
const heads: Readonly<Record<Dimension, string>> = {
  day: "Day",
  agent: "Agent",
  model: "Model",
  user: "User",
};
const shownDays = 30;
const dayMs = 86_400_000;

/** What runs have spent, also runs that were deleted since. */
export function UsagePage(): JSX.Element {
  const by = dimensions.find((each) => each === place.value.query.get("by")) ?? "day";
  const { value, problem } = useRead(() => get("/api/usage", { query: { by } }), [by]);
  const rows = value?.rows ?? [];
  const ordered =
    by === "day" ? rows.toReversed() : rows.toSorted((one, other) => other.costUsd - one.costUsd);
  const working = facts.value?.unrecordedUsd ?? 0;
  const total = rows.reduce((sum, { costUsd }) => sum + costUsd, working);
  const highest = Math.max(...rows.map(({ costUsd }) => costUsd), working);
  return (
    <main class="page" id="main">
      <div class="page-head">
        <h1>Usage</h1>
        <div class="segments" role="group" aria-label="Sum up">
          {dimensions.map((each) => (
            <button
              key={each}
              aria-pressed={each === by}
              onClick={() => setQuery("by", each === "day" ? null : each)}
            >
              {names[each]}
            </button>
          ))}
        </div>
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      {by === "day" && rows.length > 0 && <Days rows={rows} />}
      {value !== null && rows.length === 0 && <p class="dim">No run has spent anything yet.</p>}
      {rows.length > 0 && (
        <table class="table dense usage figure-cards">
          <thead>
            <tr>
              <th>{heads[by]}</th>
              <th class="c-small right">Runs</th>
              <th class="c-small right">Turns</th>
              <th class="c-model right wide-only">Input tokens</th>
              <th class="c-model right wide-only">Output tokens</th>
              <th class="c-small right">Lost</th>
              <th class="c-purse wide-only">Share</th>
              <th class="c-small right">Spent</th>
            </tr>
          </thead>
          <tbody>
            {ordered.map((row) => (
              <tr key={`${row.key} ${row.tenantId}`}>
                <td class="cut">
                  {row.key ?? "none"}
                  {by === "user" && row.tenantId != null && <span class="dim"> of {row.tenantId}</span>}
                </td>
                <td class="right" data-head="Runs">
                  {grouped(row.runs)}
                </td>
                <td class="right" data-head="Turns">
                  {grouped(row.turns)}
                </td>
                <td class="right wide-only">{grouped(row.inputTokens)}</td>
                <td class="right wide-only">{grouped(row.outputTokens)}</td>
                <td class={`right ${row.unreported.costUsd > 0 ? "bad" : "dim"}`} data-head="Lost">
                  {row.unreported.costUsd > 0 ? usd(row.unreported.costUsd) : "–"}
                  {row.unreported.costUsd > 0 && (
                    <span class="dim"> likely {usd(row.unreported.likelyUsd ?? row.unreported.costUsd)}</span>
                  )}
                </td>
                <td class="wide-only">
                  <progress
                    aria-label={`Share of ${row.key ?? "none"}${row.tenantId == null ? "" : ` of ${row.tenantId}`}`}
                    max={highest || 1}
                    value={row.costUsd}
                  />
                </td>
                <td class="right" data-head="Spent">
                  {usd(row.costUsd)}
                </td>
              </tr>
            ))}
            {working > 0 && (
              <tr>
                <td class="cut">Agents at work, since their run waited last</td>
                <td />
                <td />
                <td class="wide-only" />
                <td class="wide-only" />
                <td />
                <td class="wide-only">
                  <progress aria-label="Share of agents at work" max={highest || 1} value={working} />
                </td>
                <td class="right" data-head="Spent">
                  {usd(working)}
                </td>
              </tr>
            )}
            <tr class="total">
              <td>Total</td>
              <td class="right" data-head="Runs">
                {by === "day" ? null : grouped(rows.reduce((sum, { runs }) => sum + runs, 0))}
              </td>
              <td />
              <td class="wide-only" />
              <td class="wide-only" />
              <td />
              <td class="wide-only" />
              <td class="right" data-head="Spent">
                {usd(total)}
              </td>
            </tr>
          </tbody>
        </table>
      )}
      {rows.length > 0 && (
        <p class="dim foot">
          A run adds what it spent when all its agents wait, or when it pauses or ends. Until then it is in
          the line of agents at work.
        </p>
      )}
      <Unpriced rows={rows} />
    </main>
  );
}

function Unpriced({ rows }: { readonly rows: readonly UsageRow[] }): JSX.Element | null {
  const turns = rows.reduce((sum, { unpricedTurns }) => sum + unpricedTurns, 0);
  return turns === 0 ? null : (
    <p class="dim foot">The price of {counted(turns, "turn")} is unknown and counts as $0.</p>
  );
}

/** The last 30 days. A day without a run is empty. */
function Days({ rows }: { readonly rows: readonly UsageRow[] }): JSX.Element {
  const byDay = new Map(rows.map(({ key, costUsd }) => [key, costUsd]));
  const today = Date.now();
  const days = Array.from({ length: shownDays }, (_each, at) =>
    new Date(today - (shownDays - 1 - at) * dayMs).toISOString().slice(0, 10),
  );
  const highest = Math.max(...days.map((day) => byDay.get(day) ?? 0), 1e-9);
  return (
    <div class="facts days">
      <div>
        <span class="row between">
          <span class="label">Spend by day, last 30 days</span>
          <span class="label">highest day {usd(highest)}</span>
        </span>
        <svg
          viewBox="0 0 300 80"
          preserveAspectRatio="none"
          class="bars tall"
          role="img"
          aria-label={`Spend by day. The highest day has ${usd(highest)}.`}
        >
          {days.map((day, at) => {
            const height = Math.max(byDay.has(day) ? 2 : 0.5, (78 * (byDay.get(day) ?? 0)) / highest);
            return (
              <rect
                key={day}
                x={at * 10}
                y={80 - height}
                width="8"
                height={height}
                class={at === shownDays - 1 ? "last" : ""}
              >
                <title>
                  {day}: {usd(byDay.get(day) ?? 0)}
                </title>
              </rect>
            );
          })}
        </svg>
        <span class="row between">
          <span class="label">{days[0]}</span>
          <span class="label">{days.at(-1)}</span>
        </span>
      </div>
    </div>
  );
}
