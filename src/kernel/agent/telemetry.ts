export type Attributes = { readonly [name: string]: string | number | boolean | readonly string[] };

export interface Span {
  set(attributes: Attributes): void;
  fail(error: unknown): void;
  end(): void;
  /** Calls `body`, once. Spans that others start meanwhile, of a tool's HTTP calls for instance, are below this one. */
  during<Result>(body: () => Result): Result;
}

export interface SpanOptions {
  readonly attributes?: Attributes;
  /** Absent: the active one. */
  readonly parent?: Span;
  /** `client`: a call to somebody else's service. `internal` unless told. */
  readonly kind?: "internal" | "client";
}

/** What is counted or measured. One object for each, so that its instrument is made once. */
export interface Metric {
  readonly name: string;
  /** As UCUM writes it: `s`, `{token}`. */
  readonly unit: string;
  readonly description?: string;
  /** Where a distribution's buckets end. */
  readonly boundaries?: readonly number[];
}

/** Spans and metrics for an operator's dashboards. Never part of what a run does: it cannot fail it or slow it. */
export interface Telemetry {
  /** The caller ends the span, also when the work throws. */
  startSpan(name: string, options?: SpanOptions): Span;
  count(metric: Metric, amount: number, attributes?: Attributes): void;
  /** A value whose distribution matters, such as a duration. */
  measure(metric: Metric, value: number, attributes?: Attributes): void;
}
