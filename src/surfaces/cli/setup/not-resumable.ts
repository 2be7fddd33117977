import { Fault, type RunSummary } from "../../../kernel/index.ts";

/** Statuses after which a run cannot be resumed, because there is nothing to repeat. Its session can be continued. */
export const notResumable: readonly string[] = ["max_turns", "max_output", "guardrail_tripped"];

/** Returns the error for a run that cannot be resumed. */
export function notResumed({ runId, sessionId, status }: RunSummary): Fault {
  const advice =
    sessionId === undefined
      ? "start another run with reeve start"
      : `continue its session with reeve run "..." --session ${sessionId}`;
  return new Fault("invalid_argument", `${runId} has ended (${status}) and cannot be resumed; ${advice}`);
}
