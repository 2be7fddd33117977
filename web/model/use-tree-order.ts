import { useRef } from "preact/hooks";
import type { TaskId } from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import { inTreeOrder } from "../../src/surfaces/view/task-words.ts";

/** The tasks below a task, in the order of the tree. Tasks never move, so only a hired agent makes the list again. */
export function useTreeOrder(view: RunView, root: TaskId): readonly TaskId[] {
  const known = useRef<{
    readonly tasks: RunView["tasks"];
    readonly root: TaskId;
    readonly order: readonly TaskId[];
  } | null>(null);
  const { current } = known;
  if (current !== null && current.root === root && view.tasks.hasKeysOf(current.tasks)) return current.order;
  const order = inTreeOrder(view, root).map(({ taskId }) => taskId);
  known.current = { tasks: view.tasks, root, order };
  return order;
}
