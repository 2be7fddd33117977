import type { TaskId } from "../../../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import type { RunModel } from "../../../model/run-model.ts";

/** What the levels of the chart share. */
export interface LevelProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly root: TaskView;
  readonly selected: TaskId;
  readonly select: (taskId: TaskId) => void;
  /** Whether the run has no owner at this event, because the worker died. */
  readonly isDead: boolean;
}
