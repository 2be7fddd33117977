import type { JSX } from "preact";
import { capUsd, counted, usd } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
import { Name } from "../parts/name.tsx";
import { Purse } from "../parts/purse.tsx";
import { lookOfTask } from "../parts/status.ts";
import { runPath } from "../app/route.ts";
import { purseOf, spentOf, toneOf } from "../run/money.ts";
import { doing } from "../run/task-words.ts";
import type { LevelProps } from "./level-props.ts";
import { nodesOf, orgTree } from "./org-tree.ts";

/** The chart as a table: the same tree, one line per agent. */
export function Rows({ model, view, root, selected, select, isDead }: LevelProps): JSX.Element {
  const { held } = model;
  const tree = orgTree(view, root);
  return (
    <div class="org-rows">
      <table class="table dense">
        <thead>
          <tr>
            <th>Agent</th>
            <th class="c-doing">Now</th>
            <th class="c-purse wide-only">Purse</th>
            <th class="c-small right">Spent</th>
            <th class="c-small right wide-only">Allowance</th>
          </tr>
        </thead>
        <tbody>
          {nodesOf(tree).map(({ task, rest }) => {
            const purse = purseOf(task, held);
            return (
              <>
                <tr
                  key={task.taskId}
                  class={task.taskId === selected ? "selected" : ""}
                  data-task={task.taskId}
                >
                  <td>
                    <button
                      class="agent-cell"
                      style={{ paddingLeft: `${Math.min(10, task.depth - root.depth) * 16}px` }}
                      onClick={() => select(task.taskId)}
                    >
                      <Glyph look={lookOfTask(task)} />
                      <Name text={task.agentId} />
                    </button>
                  </td>
                  <td class="cut mid">{isDead && task.endedAt === null ? "no owner" : doing(task, view)}</td>
                  <td class="wide-only">
                    {purse.cap !== null && <Purse values={purse} tone={toneOf(task)} />}
                  </td>
                  <td class="right">{usd(spentOf(purse))}</td>
                  <td class="right wide-only">{purse.cap === null ? "no limit" : capUsd(purse.cap)}</td>
                </tr>
                {rest.length > 0 && (
                  <tr key={`${task.taskId} rest`}>
                    <td colSpan={5}>
                      <a
                        class="link"
                        href={`${runPath(model.runId, "chart")}?root=${task.taskId}&zoom=seats`}
                      >
                        and {counted(rest.length, "more report")} of {task.agentId}
                      </a>
                    </td>
                  </tr>
                )}
              </>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
