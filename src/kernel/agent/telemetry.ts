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
