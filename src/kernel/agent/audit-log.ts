import type { LogVerdict } from "../stores/event-log.ts";
import type { EventType } from "../events/event.ts";
import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";

/** One event of a run, read as an action of an actor. */
export interface AuditEntry {
  /** Id of the run that the event belongs to. */
  readonly runId: RunId;
  /** Sequence number of the event in its run. */
  readonly seq: number;
  /** Time of the event, in epoch milliseconds. */
  readonly at: number;
  /** Id of the task that the event belongs to. */
  readonly taskId: TaskId;
  /** Name of the user or caller who sent a command from outside the run. For any other event, the agent of the task. */
  readonly actor: string;
  /** Whether the event is a command from outside the run: its start, an approval, a cancel, a top-up and the like. */
  readonly fromOutside: boolean;
  /** Type of the event. */
  readonly action: EventType;
  /** Data of the event. Long texts are shortened unless `AuditReadOptions.full` is set. */
  readonly details: JsonObject;
}

/** Which entries `AuditLog.read` returns, and in how much detail. */
export interface AuditReadOptions {
  /** Sequence number of the first event to read. Default: 0. */
  readonly fromSeq?: number;
  /** Whether prompts, messages, arguments and results are returned in full length. Default: `false`. */
  readonly full?: boolean;
  /** Whether to return only commands from outside the run. Default: `false`. */
  readonly outsideOnly?: boolean;
}

/**
 * The event log of a run, read as an audit log. There is no second log: every command to a run is a mailbox message,
 * and the owner records its effect and its event in one commit (P3), so no command takes effect without an event.
 */
export interface AuditLog {
  /** Reads the entries of a run, oldest first. */
  read(runId: string, options?: AuditReadOptions): AsyncIterable<AuditEntry>;
  /**
   * E1: verifies the hash chain of a run's log, like `EventLog.verify`. Detects edited, removed and reordered events.
   * Detects a truncated tail only if `head`, a chain head stored elsewhere, is given.
   */
  verify(runId: string, head?: string): Promise<LogVerdict>;
}
