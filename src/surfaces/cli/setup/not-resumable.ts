import { Fault, type RunHandle } from "../../../kernel/index.ts";

/** Ends after which a run has nothing left to repeat; its session can be continued. */
export const notResumable: readonly string[] = ["max_turns", "max_output", "guardrail_tripped"];

/** The error for a run that cannot be resumed. */
export function notResumed({ runId, sessionId }: RunHandle, status: string): Fault {
  return new Fault(
    "invalid_argument",
    `${runId} has ended (${status}) and cannot be resumed; continue its session with reeve run "..." --session ${sessionId}`,
  );
}
