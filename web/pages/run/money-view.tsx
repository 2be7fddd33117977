import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import { likelyLossUsd } from "../../../src/surfaces/view/spend.ts";
import type { JSX } from "preact";
import { place, runPath, setQuery } from "../../base/route.ts";
import { columnUsd, counted, grouped, shortModel } from "../../base/format.ts";
import { Name, shownName } from "../../parts/name.tsx";
import { BudgetMeter } from "../../parts/budget-meter.tsx";
import { capWords, modelLines, budgetUseOf, rootId, spentOf, toneOf } from "../../model/money.ts";
import type { RunModel } from "../../model/run-model.ts";
import { inTreeOrder } from "../../../src/surfaces/view/task-words.ts";

/** Number of rows that are drawn. The rest is one line with its sum. */
const mostRows = 200;

/** The amounts by which agents are sorted. If none is chosen, they are in the order of the company. */
const orders = ["own", "total"] as const;
type Order = (typeof orders)[number];

interface SortHeadProps {
  readonly order: Order;
  readonly by: Order | null;
  readonly place: string;
  readonly children: string;
}

/** The head of a column of amounts. It sorts by them, and a second time in the order of the company again. */
function SortHead({ order, by, place: classes, children }: SortHeadProps): JSX.Element {
  const isSorted = by === order;
  return (
    <th class={classes} aria-sort={isSorted ? "descending" : "none"}>
      <button
        class="sort-head"
        title={isSorted ? "Show the company again" : "The most expensive first"}
        onClick={() => setQuery("by", isSorted ? null : order)}
      >
        {children}
        {isSorted ? " ↓" : " ↕"}
      </button>
    </th>
  );
}

/** Where the money went: by agent, and by model. */
export function Money({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  if (view === null) return <></>;
  const { held } = model;
  const company = inTreeOrder(view);
  const [root] = company;
  const by = orders.find((each) => each === place.value.query.get("by")) ?? null;
  const tasks =
    by === null
      ? company
      : company.toSorted((one, other) => (other[by].costUsd ?? 0) - (one[by].costUsd ?? 0));
  const shown = tasks.slice(0, mostRows);
  const rest = tasks.slice(mostRows);
  const lost = root?.total.lost.costUsd ?? 0;
  return (
    <div class="canvas money">
      <table class="table dense figure-cards by-agent">
        <thead>
          <tr>
            <th>Agent</th>
            <th class="c-model">Model</th>
            <th class="c-small right">Calls</th>
            <SortHead order="own" by={by} place="c-small right">
              Own
            </SortHead>
            <th class="c-small right">Unreported</th>
            <SortHead order="total" by={by} place="c-meter">
              With its reports
            </SortHead>
            <th class="c-small right">Budget</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((task) => {
            const use = budgetUseOf(task, held);
            return (
              <tr key={task.taskId}>
                <td>
                  <a
                    class="agent-cell"
                    href={runPath(model.runId, "conversation", task.taskId)}
                    style={{ paddingLeft: by === null ? `${Math.min(8, task.depth) * 14}px` : "0" }}
                  >
                    <Name text={task.agentId} />
                  </a>
                </td>
                <td class="dim cut">{task.model === null ? "–" : shortModel(task.model)}</td>
                <td class="right" data-head="Calls">
                  {task.own.calls}
                </td>
                <td class="right" data-head="Own">
                  {columnUsd(task.own.costUsd === null ? null : use.own)}
                </td>
                <td class={`right ${task.own.lost.calls > 0 ? "bad" : "dim"}`} data-head="Unreported">
                  {task.own.lost.calls > 0 ? columnUsd(task.own.lost.costUsd) : "–"}
                </td>
                <td>
                  <span class="row">
                    {use.cap === null ? (
                      <span class="meter none" />
                    ) : (
                      <BudgetMeter values={use} tone={toneOf(task)} />
                    )}
                    <span class="amount">{columnUsd(spentOf(use))}</span>
                  </span>
                </td>
                <td class="right" data-head="Budget">
                  {capWords(task)}
                </td>
              </tr>
            );
          })}
          {rest.length > 0 && (
            <tr>
              <td class="dim">and {counted(rest.length, "more agent")}</td>
              <td />
              <td class="right" data-head="Calls">
                {rest.reduce((sum, { own }) => sum + own.calls, 0)}
              </td>
              <td class="right" data-head="Own">
                {columnUsd(rest.reduce((sum, { own }) => sum + (own.costUsd ?? 0), 0))}
              </td>
              <td />
              <td />
              <td />
            </tr>
          )}
          {root !== undefined && (
            <tr class="total">
              <td>Total</td>
              <td />
              <td class="right" data-head="Calls">
                {root.total.calls}
              </td>
              <td class="right" data-head="Own">
                {columnUsd(root.total.costUsd === null ? null : root.total.costUsd - lost)}
              </td>
              <td class={`right ${lost > 0 ? "bad" : ""}`} data-head="Unreported">
                {lost > 0 ? columnUsd(lost) : "–"}
              </td>
              <td class="right">{columnUsd(root.total.costUsd)}</td>
              <td class="right" data-head="Budget">
                {capWords(root)}
              </td>
            </tr>
          )}
        </tbody>
      </table>
      <p class="dim foot">
        The rows of Own and Unreported add up to the total. Replayed steps cost nothing and are not listed.
      </p>
      <Models view={view} />
    </div>
  );
}

/** What each model was called for. */
export function Models({ view }: { readonly view: RunView }): JSX.Element | null {
  const lines = modelLines(view);
  const root = view.tasks.get(rootId);
  if (root === undefined || (lines.length === 0 && root.total.lost.calls === 0)) return null;
  const { lost } = root.total;
  const likelyUsd = likelyLossUsd(root.total);
  return (
    <table class="table dense models figure-cards">
      <thead>
        <tr>
          <th>Model</th>
          <th class="c-small right">Calls</th>
          <th class="c-model right">Input tokens</th>
          <th class="c-model right">Output tokens</th>
          <th class="c-small right">Spent</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(([name, line]) => (
          <tr key={name}>
            <td class="cut">{shownName(name)}</td>
            <td class="right" data-head="Calls">
              {line.calls}
            </td>
            <td class="right" data-head="Input tokens">
              {grouped(line.input)}
            </td>
            <td class="right" data-head="Output tokens">
              {grouped(line.output)}
            </td>
            <td class="right" data-head="Spent">
              {columnUsd(line.costUsd)}
            </td>
          </tr>
        ))}
        {lost.calls > 0 && (
          <tr>
            <td class="bad">calls without an answer, charged in full</td>
            <td class="right" data-head="Calls">
              {lost.calls}
            </td>
            <td class="right dim">–</td>
            <td class="right dim">–</td>
            <td class="right bad" data-head="Spent">
              {columnUsd(lost.costUsd)}
            </td>
          </tr>
        )}
        {lost.calls > 0 && (
          <tr>
            <td class="dim">
              {likelyUsd === null && lost.costUsd !== null
                ? "what these calls likely cost is not known, because no other call was made"
                : "what these calls likely cost, like the others on average"}
            </td>
            <td />
            <td />
            <td />
            <td class="right dim" data-head="Likely">
              {likelyUsd === null && lost.costUsd !== null ? "not known" : columnUsd(likelyUsd)}
            </td>
          </tr>
        )}
        <tr class="total">
          <td>Total</td>
          <td class="right" data-head="Calls">
            {root.total.calls}
          </td>
          <td />
          <td />
          <td class="right" data-head="Spent">
            {columnUsd(root.total.costUsd)}
          </td>
        </tr>
      </tbody>
    </table>
  );
}
