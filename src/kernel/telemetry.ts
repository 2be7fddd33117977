export type Attributes = { readonly [name: string]: string | number | boolean | readonly string[] };

export interface Span {
  set(attributes: Attributes): void;
  fail(error: unknown): void;
  end(): void;
}

/** Spans and metrics for an operator's dashboards. Never part of what a run does: it cannot fail it or slow it. */
export interface Telemetry {
  /** The caller ends the span, also when the work throws. `parent`: of the same run, else the active one. */
  startSpan(name: string, attributes?: Attributes, parent?: Span): Span;
  count(metric: string, amount: number, attributes?: Attributes): void;
  /** A value whose distribution matters, such as a duration. */
  measure(metric: string, value: number, attributes?: Attributes): void;
}
