import type { JSX } from "preact";
import {
  changeOf,
  costChange,
  measuresOf,
  rowName,
  type Dimension,
  type Measure,
  type Series,
  type SeriesRow,
} from "../../model/usage-series.ts";
import { highestOf, SmallLine } from "./usage-chart.tsx";

const heads: Readonly<Record<Dimension, string>> = {
  model: "Model",
  agent: "Agent",
  user: "User",
  tenant: "Tenant",
};
const columnHeads: Readonly<Record<Measure["id"], string>> = {
  cost: "Cost",
  tokens: "Tokens",
  runs: "Runs",
  failures: "Failed",
  latency: "Latency",
  cache: "Cache share",
};

interface TableOptions {
  readonly by: Dimension;
  readonly total: Series;
  readonly rows: readonly SeriesRow[];
  readonly chosen: SeriesRow | undefined;
  readonly onChoose: (row: SeriesRow | undefined) => void;
}

/** The values of a dimension with the measures of the panels as small lines. A row shows only itself in the panels. */
export function UsageTable({ by, total, rows, chosen, onChoose }: TableOptions): JSX.Element {
  const measures = measuresOf(by === "model").filter(({ id }) => id !== "runs" || by !== "model");
  return (
    <table class="table dense usage figure-cards">
      <thead>
        <tr>
          <th>{heads[by]}</th>
          {measures.map(({ id, title }) => (
            <th key={id} class="right">
              {id === "failures" && by === "model" ? title : columnHeads[id]}
              {id === "latency" && ", slowest 5 %"}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr
            key={JSON.stringify([row.key, row.tenantId])}
            class={row === chosen ? "chosen" : ""}
            onClick={() => onChoose(row === chosen ? undefined : row)}
          >
            <td class="cut">
              <button aria-pressed={row === chosen} title={rowName(by, row)}>
                {rowName(by, row)}
              </button>
            </td>
            {measures.map((measure) => (
              <Cell key={measure.id} measure={measure} series={row} isLined />
            ))}
          </tr>
        ))}
        <tr class="total">
          <td>Total</td>
          {measures.map((measure) => (
            <Cell key={measure.id} measure={measure} series={total} isLined={false} />
          ))}
        </tr>
      </tbody>
    </table>
  );
}

interface CellOptions {
  readonly measure: Measure;
  readonly series: Series;
  readonly isLined: boolean;
}

function Cell({ measure, series, isLined }: CellOptions): JSX.Element {
  const [now, before] = [measure.at(series.now), measure.at(series.before)];
  const value = measure.value(series.sum);
  const { words } = changeOf(measure, series);
  const isBad = measure.id === "failures" && (value ?? 0) > 0;
  return (
    <td class={`right${isBad ? " bad" : ""}`} data-head={columnHeads[measure.id]} title={`${words}.`}>
      <span class="figure">
        {isLined && <SmallLine now={now} before={before} highest={highestOf(now, before)} />}
        <b>{value === null ? "–" : measure.text(value)}</b>
        {measure.id === "cost" && isLined && <span class="dim shift">{costChange(series)}</span>}
      </span>
    </td>
  );
}
