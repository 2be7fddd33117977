import {
  fromNanoUsd,
  rootTaskId,
  type EventDraft,
  type Headcount,
  type Ledger,
  type TaskId,
} from "../../kernel/index.ts";
import type { RunState } from "./run-state.ts";

/** What is to be told of the calls that the last owner left open (B3), of tasks that were pausing, of money that was waited for (H2); nothing if it left none. */
export function lostCallEvents(
  { ledger, headcount }: RunState,
  epoch: number,
): readonly { readonly taskId: TaskId; readonly draft: EventDraft }[] {
  const lost = ledger.open;
  if (lost.length === 0 && ledger.waiting.length === 0 && !anyPausing(headcount)) return none;
  return [
    { taskId: rootTaskId, draft: { type: "run_recover", data: { epoch } } },
    ...lost.map((each) => ({ taskId: each.taskId, draft: lostReservationEvent(each) })),
  ];
}

/** What is told of a reservation that is charged in full. */
export function lostReservationEvent({ id, attempt, held, priced }: Ledger["open"][number]): EventDraft {
  const costUsd = priced ? fromNanoUsd(held.nanoUsd) : null;
  return {
    type: "budget_lost",
    data: { reservationId: id, attempt, tokens: held.tokens, costUsd },
  };
}

const none: readonly never[] = [];

function anyPausing({ tasks }: Headcount): boolean {
  for (const taskId in tasks) if (tasks[taskId as TaskId]?.status === "pausing") return true;
  return false;
}
