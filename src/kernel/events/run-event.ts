import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { UnreportedSpend, RunStatus } from "../run/run-result.ts";
import type { SupervisionJson } from "../limits/supervision.ts";
import type { Usage } from "../messages/usage.ts";

/** The life of a run as a whole. */
export interface RunEvents {
  /** The first event of every run, in the commit that creates it. */
  run_start: {
    readonly agentId: AgentId;
    readonly sessionId: SessionId;
    readonly input: JsonValue;
    readonly supervision: SupervisionJson;
    readonly metadata: JsonObject;
    /** The user, or the agent whose message it answers; absent where nobody said. */
    readonly by?: string;
  };
  /** A new owner took the run over and replays it. */
  run_recover: { readonly epoch: number };
  run_pause: { readonly by: string };
  run_resume: { readonly by: string };
  run_cancel: { readonly reason: string; readonly by: string };
  /** Something was said to it from outside: for the next turn, or for after the last. */
  run_steer: { readonly kind: "steer" | "follow_up"; readonly input: JsonValue; readonly by: string };
  /** S5: nobody heard it before the run completed. It starts that run, or is said to the one under way in the session by then. */
  run_carry_over: { readonly kind: "steer" | "follow_up"; readonly runId: RunId };
  /** The first event of a fork's own: everything before it is the origin's. */
  run_fork: {
    readonly origin: RunId;
    readonly at: number;
    /** What it goes on with: the origin's session as it was there. */
    readonly sessionId: SessionId;
    /** What the calls it shares with the origin used; its own spend starts at 0. */
    readonly inherited: Usage;
    readonly by: string;
  };
  /** The last event, unless the run is resumed. */
  run_end: {
    readonly status: RunStatus;
    readonly usage: Usage;
    readonly costUsd: number | null;
    readonly turns: number;
    /** Contained in `costUsd`, not in `usage` (B3). */
    readonly lost?: UnreportedSpend;
  };
}
