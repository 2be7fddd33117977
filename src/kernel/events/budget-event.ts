import type { Exhaustion, Overrun, TopUp } from "../limits/ledger.ts";
import type { TaskId } from "../base/identity.ts";

/** Events of the budget (B1 to B6). The cost of each call is in its `message_end`. */
export interface BudgetEvents {
  /** B5: the use of a budget passed its soft threshold. */
  budget_warning: Exhaustion;
  /** B5: a budget is exhausted. */
  budget_exhausted: Exhaustion;
  /** B1: a provider billed more than the reserved upper bound. The run stops. */
  budget_overrun: Overrun;
  /** B3: an attempt ended without reported usage and was charged in full. */
  budget_lost: {
    readonly reservationId: string;
    readonly attempt: number;
    readonly tokens: number;
    readonly costUsd: number | null;
  };
  /** A caller raised the budget of a task. */
  budget_top_up: { readonly taskId: TaskId; readonly add: Partial<TopUp>; readonly by: string };
}
