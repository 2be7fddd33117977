import type { Attributes, Metric, Span, SpanOptions, Telemetry } from "../../kernel/index.ts";

/** Maps each wrapping span to the span that it wraps. */
const inners = new WeakMap<Span, Span>();

/** Wraps a telemetry so that its errors go to `onError` and never affect the observed work. */
export function safeTelemetry(telemetry: Telemetry, onError: (error: unknown) => void): Telemetry {
  function guard<Value>(work: () => Value): Value | undefined {
    try {
      return work();
    } catch (error) {
      onError(error);
      return undefined;
    }
  }

  function safeSpan(inner: Span | undefined): Span {
    const span: Span = {
      set: (attributes) => guard(() => inner?.set(attributes)),
      fail: (error) => guard(() => inner?.fail(error)),
      end: () => guard(() => inner?.end()),
      during: (body) => during(inner, body),
    };
    if (inner !== undefined) inners.set(span, inner);
    return span;
  }

  function during<Result>(inner: Span | undefined, body: () => Result): Result {
    if (inner === undefined) return body();
    let outcome: { readonly value: Result } | { readonly error: unknown } | undefined;
    const once = (): void => {
      if (outcome !== undefined) return;
      try {
        outcome = { value: body() };
      } catch (error) {
        outcome = { error };
      }
    };
    guard(() => inner.during(once));
    once();
    // `once` has been called at this point, by the span or by this function.
    const settled = outcome as unknown as { readonly value: Result } | { readonly error: unknown };
    if ("error" in settled) throw settled.error;
    return settled.value;
  }

  return {
    startSpan: (name: string, { parent, ...options }: SpanOptions = {}) => {
      const inner = parent && (inners.get(parent) ?? parent);
      return safeSpan(
        guard(() => telemetry.startSpan(name, { ...options, ...(inner && { parent: inner }) })),
      );
    },
    count: (metric: Metric, amount: number, attributes?: Attributes) =>
      guard(() => telemetry.count(metric, amount, attributes)),
    measure: (metric: Metric, value: number, attributes?: Attributes) =>
      guard(() => telemetry.measure(metric, value, attributes)),
  };
}
