import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { visibleLine } from "../../../src/kernel/index.ts";
import { get } from "../../api/client.ts";
import { facts } from "../../api/runs-feed.ts";
import type { UsageOverTime } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { go, place, setQuery } from "../../base/route.ts";
import { counted } from "../../base/format.ts";
import {
  dimensions,
  measuresOf,
  money,
  periodOf,
  periods,
  rowName,
  runsPath,
  timesOf,
  type Dimension,
  type SeriesRow,
} from "../../model/usage-series.ts";
import { UsagePanel } from "./usage-panel.tsx";
import { UsageTable } from "./usage-table.tsx";

const names: Readonly<Record<Dimension, string>> = {
  model: "By model",
  agent: "By agent",
  user: "By user",
  tenant: "By tenant",
};

/** Shows what runs have used over time, including deleted runs, compared with the previous period. */
export function UsagePage(): JSX.Element {
  const { query } = place.value;
  const by = dimensions.find((each) => each === query.get("by")) ?? "model";
  const name = periods.find((each) => each === query.get("period")) ?? "14d";
  const tenantId = query.get("tenant") ?? undefined;
  const [marked, setMarked] = useState<number | null>(null);
  const [isTable, setTable] = useState(false);
  const chosenKey = query.get("row");
  const { value, problem } = useRead(
    (signal) =>
      get("/api/usage/over-time", {
        query: { by, ...timesOf(name, Date.now()), ...(tenantId !== undefined && { tenantId }) },
        signal,
      }),
    [by, name, tenantId],
  );
  const tenants =
    useRead((signal) => get("/api/usage", { query: { by: "tenant" }, signal }), []).value?.rows ?? [];
  const chosen = value?.rows.find((row) => keyOf(row) === chosenKey);
  const period = periodOf[name];
  const isEmpty = value !== null && value.rows.length === 0 && value.total.sum.runs === 0;
  const measures = measuresOf(chosen !== undefined && by === "model");
  const series = chosen ?? value?.total;
  return (
    <main class="page" id="main">
      <div class="page-head">
        <h1>Usage</h1>
        <div class="segments" role="group" aria-label="Period">
          {periods.map((each) => (
            <button
              key={each}
              aria-pressed={each === name}
              onClick={() => setQuery("period", each === "14d" ? null : each)}
            >
              {periodOf[each].label}
            </button>
          ))}
        </div>
        {tenants.some(({ key }) => key !== null) && (
          <select
            class="tenants"
            aria-label="Tenant"
            value={tenantId ?? ""}
            onChange={(event) => setQuery("tenant", event.currentTarget.value || null)}
          >
            <option value="">All tenants</option>
            {tenants.flatMap(({ key }) =>
              key === null
                ? []
                : [
                    <option key={key} value={key}>
                      {visibleLine(key)}
                    </option>,
                  ],
            )}
          </select>
        )}
        <span class="dim before-key">{period.before}</span>
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      <svg class="defs" aria-hidden="true">
        <pattern id="usage-gap" width="4" height="4" patternUnits="userSpaceOnUse">
          <path d="M0 4L4 0" />
        </pattern>
      </svg>
      {chosen !== undefined && (
        <p class="row chosen-row">
          <span class="cut">
            Only <b>{rowName(by, chosen)}</b>
          </span>
          <button class="button" onClick={() => choose(undefined)}>
            Show all
          </button>
        </p>
      )}
      <div class="usage-panels">
        {measures.map((measure) =>
          value === null || series === undefined ? (
            <section key={measure.id} class="usage-panel" aria-label={measure.title}>
              <h2 class="label">{measure.title}</h2>
              <p class="dim waiting-figure">…</p>
            </section>
          ) : (
            <UsagePanel
              key={measure.id}
              measure={measure}
              series={series}
              times={value.times}
              open={value.open}
              marked={marked}
              isTable={isTable}
              onMark={setMarked}
              onOpen={(at) => go(runsPath(value.times[at] ?? "", measure.id === "failures", by, chosen))}
            />
          ),
        )}
      </div>
      {isEmpty && <p class="dim usage-none">No run in these {period.label}.</p>}
      <div class="row between usage-by">
        <div class="segments" role="group" aria-label="Sum up">
          {dimensions.map((each) => (
            <button
              key={each}
              aria-pressed={each === by}
              onClick={() => {
                setQuery("row", null);
                setQuery("by", each === "model" ? null : each);
              }}
            >
              {names[each]}
            </button>
          ))}
        </div>
        <button class="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? "Show as charts" : "Show as table"}
        </button>
      </div>
      {value !== null && !isEmpty && (
        <UsageTable by={by} total={value.total} rows={value.rows} chosen={chosen} onChoose={choose} />
      )}
      {value !== null && <Notes {...value} />}
    </main>
  );
}

function choose(row: SeriesRow | undefined): void {
  setQuery("row", row === undefined ? null : keyOf(row));
}

/** A row in the address. Rows of two tenants may have the same key. */
function keyOf({ key, tenantId }: SeriesRow): string {
  return JSON.stringify(tenantId == null ? [key] : [key, tenantId]);
}

/** Describes which usage the figures leave out, and which usage is unknown. */
function Notes({ total, otherRows, step }: UsageOverTime): JSX.Element {
  const { details, lostUsd, likelyUsd, unpricedTurns } = total.sum;
  const working = facts.value?.unrecordedUsd ?? 0;
  const isPartial = details?.isComplete !== true;
  return (
    <p class="dim foot">
      {otherRows > 0 &&
        `${counted(otherRows, "row")} with lower costs ${otherRows === 1 ? "is" : "are"} not shown. `}
      {isPartial &&
        "Hatched: not recorded. An earlier version kept usage by day, without failures and latency. "}
      {lostUsd > 0 &&
        `${money(lostUsd)} was charged for calls without reported usage. ${
          likelyUsd === null
            ? "What they cost is not known, because no other call was made"
            : `They likely cost ${money(likelyUsd)}`
        }. `}
      {unpricedTurns > 0 && `The price of ${counted(unpricedTurns, "turn")} is unknown and counts as $0. `}
      {working > 0 &&
        `Agents at work have spent ${money(working)} since their run waited last, which is not included. `}
      The figures contain the time that is not over, and their changes leave it out. Choose a row to see only
      it. A run counts when all its agents wait, or when it pauses or ends.{" "}
      {step === "day" ? "Days" : "Hours"} are UTC.
    </p>
  );
}
