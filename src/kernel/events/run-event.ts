import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { UnreportedSpend, RunStatus } from "../run/run-result.ts";
import type { SupervisionJson } from "../limits/supervision.ts";
import type { Usage } from "../messages/usage.ts";

/** Events of a run as a whole. */
export interface RunEvents {
  /** The run was created. The first event of every run, in the commit that creates it. */
  run_start: {
    readonly agentId: AgentId;
    readonly sessionId: SessionId;
    readonly input: JsonValue;
    readonly supervision: SupervisionJson;
    readonly metadata: JsonObject;
    /** The user who submitted the run, or the agent whose message started it. Absent if unknown. */
    readonly by?: string;
  };
  /**
   * A new owner took over the run and replays it. `recoveries` is the number of workers in a row, including the last one, that died while
   * they owned the run and recorded no progress. Absent if the last owner released the run.
   */
  run_recover: { readonly epoch: number; readonly recoveries?: number };
  /** A caller paused the run. */
  run_pause: { readonly by: string };
  /** A caller resumed the run. */
  run_resume: { readonly by: string };
  /** A caller cancelled the run. */
  run_cancel: { readonly reason: string; readonly by: string };
  /** A caller sent steering for the next turn, or a follow-up for after the last turn. */
  run_steer: {
    readonly kind: "steer" | "follow_up";
    readonly input: JsonValue;
    readonly by: string;
    /** S5: the id of the run that the input would have started. Absent if the input was not submitted. */
    readonly submittedAs?: RunId;
    /** The metadata of the submission. Absent if the input was not submitted, or without metadata. */
    readonly metadata?: JsonObject;
  };
  /**
   * S5: the run completed without reading this input. The input starts the run `runId`, or goes as input to the run
   * that is in progress in the session at that time.
   */
  run_carry_over: { readonly kind: "steer" | "follow_up"; readonly runId: RunId };
  /** The commit that ends this run submits the run `runId`. `key` is the key of its `NextRun`. */
  run_scheduled: { readonly key: string; readonly runId: RunId };
  /** The run was created as a fork. All events before this one are copies of the origin's. */
  run_fork: {
    readonly origin: RunId;
    /** The `at` of the caller. The last shared event is the one before this event; its seq is at most `at`. */
    readonly at: number;
    /** Session of the fork: a copy of the origin's session at the last shared event. */
    readonly sessionId: SessionId;
    /** Usage of the calls that the fork shares with the origin. The fork's own spend starts at 0. */
    readonly inherited: Usage;
    readonly by: string;
    /** The user message that follows the shared events. Absent if the fork adds none. */
    readonly input?: JsonValue;
    /** The main model of the root from here on. Absent if the fork changes none. */
    readonly model?: { readonly provider: string; readonly modelId: string };
  };
  /** The run ended. The last event, unless the run is resumed. */
  run_end: {
    readonly status: RunStatus;
    readonly usage: Usage;
    readonly costUsd: number | null;
    readonly turns: number;
    /** B3: charge for calls without reported usage. Included in `costUsd`, not in `usage`. */
    readonly lost?: UnreportedSpend;
  };
}
