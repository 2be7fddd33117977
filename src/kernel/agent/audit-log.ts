import type { LogVerdict } from "../stores/event-log.ts";
import type { EventType } from "../events/event.ts";
import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";

/** Who did what: one event of a run, read as an act. */
export interface AuditEntry {
  readonly runId: RunId;
  /** The event's. */
  readonly seq: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly taskId: TaskId;
  /** The name an order was given under; for everything else, the agent whose task it is. */
  readonly actor: string;
  /** An order to the run: its start, an approval, a cancel, a top-up and the like. */
  readonly fromOutside: boolean;
  readonly action: EventType;
  /** The event's data, with long texts shortened unless asked for in full. */
  readonly details: JsonObject;
}

export interface AuditReadOptions {
  readonly fromSeq?: number;
  /** Prompts, messages, arguments and results whole. */
  readonly full?: boolean;
  /** Only what came from outside the run. */
  readonly outsideOnly?: boolean;
}

/**
 * A run's event log, read as an audit. There is no second book: every order to a run is mail, and what an owner does about it is an
 * event, in one commit (P3), so an act cannot be done without being told.
 */
export interface AuditLog {
  read(runId: string, options?: AuditReadOptions): AsyncIterable<AuditEntry>;
  /** As `EventLog.verify`: finds an event that was edited, removed or reordered; a cut tail only against a head kept elsewhere (E1). */
  verify(runId: string, head?: string): Promise<LogVerdict>;
}
