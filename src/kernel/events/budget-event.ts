import type { Exhaustion, Overrun, TopUp } from "../limits/ledger.ts";
import type { TaskId } from "../base/identity.ts";

/** Money (B1-B6). What each call cost stands in its `message_end`. */
export interface BudgetEvents {
  budget_warning: Exhaustion;
  budget_exhausted: Exhaustion;
  /** A provider billed above its bound; the run stops. */
  budget_overrun: Overrun;
  /** An attempt ended without reported usage and was charged in full (B3). */
  budget_lost: {
    readonly reservationId: string;
    readonly attempt: number;
    readonly tokens: number;
    readonly costUsd: number | null;
  };
  budget_top_up: { readonly taskId: TaskId; readonly add: Partial<TopUp>; readonly by: string };
}
