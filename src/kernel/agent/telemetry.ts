import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";
import type { EventType } from "../events/event.ts";
import type { LogVerdict } from "../stores/event-log.ts";

/** Attributes of a span or measurement, by name. */
export type Attributes = { readonly [name: string]: string | number | boolean | readonly string[] };

/** A timed operation in a trace. */
export interface Span {
  /** Adds attributes to the span. */
  set(attributes: Attributes): void;
  /** Marks the span as failed with this error. */
  fail(error: unknown): void;
  /** Ends the span. */
  end(): void;
  /**
   * Calls `body` once and returns its result. Spans that are started inside, for example for HTTP calls of a tool,
   * become children.
   */
  during<Result>(body: () => Result): Result;
}

/** Options of `Telemetry.startSpan`. */
export interface SpanOptions {
  /** Attributes of the span. */
  readonly attributes?: Attributes;
  /** Parent of the span. Default: the active span. */
  readonly parent?: Span;
  /** Kind of the span. `client` marks a call to another service. Default: `internal`. */
  readonly kind?: "internal" | "client";
}

/** Something that is counted or measured. Use one object per metric: an instrument is created once per object. */
export interface Metric {
  /** Name of the metric. */
  readonly name: string;
  /** Unit in UCUM notation, for example `s` or `{token}`. */
  readonly unit: string;
  /** What the metric measures. */
  readonly description?: string;
  /** Upper bounds of the histogram buckets. */
  readonly boundaries?: readonly number[];
}

/** Spans and metrics for dashboards. Telemetry cannot fail or delay a run. */
export interface Telemetry {
  /** Starts a span. The caller must end it, also if the work throws. */
  startSpan(name: string, options?: SpanOptions): Span;
  /** Adds an amount to a counter. */
  count(metric: Metric, amount: number, attributes?: Attributes): void;
  /** Records a value of a distribution, for example a duration. */
  measure(metric: Metric, value: number, attributes?: Attributes): void;
}

/** One event of a run in the form of an audit log: who did what, and when. */
export interface AuditEntry {
  /** Id of the run that the event belongs to. */
  readonly runId: RunId;
  /** Sequence number of the event in its run. `null` for a score, which is not an event. */
  readonly seq: number | null;
  /** Time of the event, in epoch milliseconds. */
  readonly at: number;
  /** Id of the task that the event belongs to. */
  readonly taskId: TaskId;
  /** Name of the user or caller who sent a command from outside the run. For any other event, the agent of the task. */
  readonly actor: string;
  /** Whether the event is a command from outside the run, such as its start, an approval, a cancel or a top-up. */
  readonly fromOutside: boolean;
  /** Type of the event, or `run_score` for a score of the run (Z2). */
  readonly action: EventType | "run_score";
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
 * Reads the event log of a run as an audit log. There is no second log: every command to a run is a mailbox
 * message, and the owner of the run records the effect and the event of the command in one commit (P3). So no
 * command takes effect without an event.
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
