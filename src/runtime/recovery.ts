import { formatTaskId, fromNanoUsd, type EventDraft, type TaskId } from "../kernel/index.ts";
import type { RunState } from "./run-state.ts";

/** What is to be told of the calls that the last owner left open (B3), of tasks that were pausing, of money that was waited for (H2); nothing if it left none. */
export function lossesOf(
  { ledger, headcount }: RunState,
  epoch: number,
): readonly { readonly taskId: TaskId; readonly draft: EventDraft }[] {
  const lost = ledger.open;
  const pausing = Object.values(headcount.tasks).some(({ status }) => status === "pausing");
  if (lost.length === 0 && !pausing && ledger.waiting.length === 0) return [];
  return [
    { taskId: formatTaskId(0), draft: { type: "run_recover", data: { epoch } } },
    ...lost.map(({ id, taskId, attempt, held, priced }) => {
      const costUsd = priced ? fromNanoUsd(held.nanoUsd) : null;
      const data = { reservationId: id, attempt, tokens: held.tokens, costUsd };
      return { taskId, draft: { type: "budget_lost", data } as const };
    }),
  ];
}
