import {
  Fault,
  withoutSecrets,
  type Attributes,
  type Metric,
  type Span,
  type SpanOptions,
  type Telemetry,
} from "../../../kernel/index.ts";

/** Maps each wrapping span to the span that it wraps. */
const inners = new WeakMap<Span, Span>();

/**
 * Wraps a telemetry so that its errors go to `onError` and never affect the observed work. It also removes secrets
 * in usual forms from attributes and errors.
 */
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
      set: (attributes) => guard(() => inner?.set(redacted(attributes))),
      fail: (error) => guard(() => inner?.fail(redactedError(error))),
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
    startSpan: (name: string, { parent, attributes, ...options }: SpanOptions = {}) => {
      const inner = parent && (inners.get(parent) ?? parent);
      const shown = attributes && { attributes: redacted(attributes) };
      return safeSpan(
        guard(() => telemetry.startSpan(name, { ...options, ...shown, ...(inner && { parent: inner }) })),
      );
    },
    count: (metric: Metric, amount: number, attributes?: Attributes) =>
      guard(() => telemetry.count(metric, amount, attributes)),
    measure: (metric: Metric, value: number, attributes?: Attributes) =>
      guard(() => telemetry.measure(metric, value, attributes)),
  };
}

function redacted(attributes: Attributes): Attributes {
  const entries = Object.entries(attributes).map(([name, value]) => [name, redactedValue(value)] as const);
  return Object.fromEntries(entries);
}

function redactedValue(value: Attributes[string]): Attributes[string] {
  if (typeof value === "string") return withoutSecrets(value);
  return typeof value === "object" ? value.map(withoutSecrets) : value;
}

/**
 * Returns a copy of an error with its name, code, message and stack. Other properties are left out, such as a
 * request that a client attaches with its headers.
 */
function redactedError(error: unknown): Error {
  const { code, message, name, stack = "" } = Fault.from(error);
  const shown = error instanceof Error ? { name: error.name, stack: error.stack ?? stack } : { name, stack };
  const copy = Object.assign(new Error(withoutSecrets(message)), { name: shown.name, code });
  copy.stack = withoutSecrets(shown.stack);
  return copy;
}
