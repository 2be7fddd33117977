import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { runPath } from "../app/route.ts";
import { capUsd, counted, grouped, shortModel, usd } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { Purse } from "../parts/purse.tsx";
import { purseOf, spentOf, toneOf } from "./money.ts";
import type { RunModel } from "./run-model.ts";
import { inTreeOrder } from "./task-words.ts";

/** Number of rows that are drawn. The rest is one line with its sum. */
const mostRows = 200;

/** Where the money went: by agent, and by model. */
export function Money({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  if (view === null) return <></>;
  const { held } = model;
  const tasks = inTreeOrder(view);
  const shown = tasks.slice(0, mostRows);
  const rest = tasks.slice(mostRows);
  const [root] = tasks;
  const lost = root?.total.lost.costUsd ?? 0;
  return (
    <div class="canvas money">
      <table class="table dense figure-cards by-agent">
        <thead>
          <tr>
            <th>Agent</th>
            <th class="c-model">Model</th>
            <th class="c-small right">Calls</th>
            <th class="c-small right">Own</th>
            <th class="c-small right">Lost</th>
            <th class="c-purse">With its reports</th>
            <th class="c-small right">Allowance</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((task) => {
            const purse = purseOf(task, held);
            return (
              <tr key={task.taskId}>
                <td>
                  <a
                    class="agent-cell"
                    href={runPath(model.runId, "conversation", task.taskId)}
                    style={{ paddingLeft: `${Math.min(8, task.depth) * 14}px` }}
                  >
                    <Name text={task.agentId} />
                  </a>
                </td>
                <td class="dim cut">{task.model === null ? "–" : shortModel(task.model)}</td>
                <td class="right" data-head="Calls">
                  {task.own.calls}
                </td>
                <td class="right" data-head="Own">
                  {usd(task.own.costUsd === null ? null : purse.own)}
                </td>
                <td class={`right ${task.own.lost.calls > 0 ? "bad" : "dim"}`} data-head="Lost">
                  {task.own.lost.calls > 0 ? usd(task.own.lost.costUsd) : "–"}
                </td>
                <td>
                  <span class="row">
                    {purse.cap !== null && <Purse values={purse} tone={toneOf(task)} />}
                    <span class="amount">{usd(spentOf(purse))}</span>
                  </span>
                </td>
                <td class="right" data-head="Allowance">
                  {purse.cap === null ? "no limit" : capUsd(purse.cap)}
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
                {usd(rest.reduce((sum, { own }) => sum + (own.costUsd ?? 0), 0))}
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
                {usd(root.total.costUsd === null ? null : root.total.costUsd - lost)}
              </td>
              <td class={`right ${lost > 0 ? "bad" : ""}`} data-head="Lost">
                {lost > 0 ? usd(lost) : "–"}
              </td>
              <td class="right">{usd(root.total.costUsd)}</td>
              <td class="right" data-head="Allowance">
                {root.budget?.maxCostUsd == null ? "no limit" : capUsd(root.budget.maxCostUsd)}
              </td>
            </tr>
          )}
        </tbody>
      </table>
      <p class="dim foot">
        The rows of Own and Lost add up to the total. Replayed steps cost nothing and are not listed.
      </p>
      <Models view={view} />
    </div>
  );
}

function Models({ view }: { readonly view: RunView }): JSX.Element | null {
  const byModel = new Map<string, { calls: number; input: number; output: number; costUsd: number }>();
  for (const { model, calls, usage } of view.money) {
    const line = byModel.get(model) ?? { calls: 0, input: 0, output: 0, costUsd: 0 };
    line.calls += calls;
    line.input += usage.inputTokens;
    line.output += usage.outputTokens;
    line.costUsd += usage.costUsd ?? 0;
    byModel.set(model, line);
  }
  if (byModel.size === 0) return null;
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
        {[...byModel].map(([name, line]) => (
          <tr key={name}>
            <td class="cut">{name}</td>
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
              {usd(line.costUsd)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
