import { emptyView } from "../../src/surfaces/view/empty-view.ts";
import type { RunView, TaskView } from "../../src/surfaces/view/run-view.ts";
import { noSpend } from "../../src/surfaces/view/spend.ts";
import { VersionedMap } from "../../src/surfaces/view/versioned-map.ts";

/**
 * The run as its views draw it. Two facts of the whole run hold for each of its agents: none works while the run is paused,
 * and a fork has not paid for what it shares. `live` is the run at its newest event, which says whether it is a fork. Costs
 * O(tasks) while one of the two holds.
 */
export function shownView(view: RunView, live: RunView | null): RunView {
  const forkedFrom = live?.forkedFrom ?? null;
  const isShared = forkedFrom !== null && view.seq <= forkedFrom.at;
  const isPaused = view.status === "paused";
  if (!isShared && !isPaused) return view;
  const shown = [...view.tasks].map((task) => {
    const free = isShared ? { ...task, own: noSpend, total: noSpend } : task;
    return isPaused ? pausedTask(free) : free;
  });
  return {
    ...view,
    ...(isShared && { forkedFrom, money: emptyView.money }),
    tasks: VersionedMap.of(shown, ({ taskId }) => taskId),
  };
}

/** A task of a paused run. It ends its calls in flight first. A question can be answered all the same. */
function pausedTask(task: TaskView): TaskView {
  if (task.endedAt !== null || task.questions > 0 || task.status === "pausing") return task;
  const isBusy = task.status === "running" && task.openCalls > 0;
  return { ...task, status: isBusy ? "pausing" : "paused" };
}
