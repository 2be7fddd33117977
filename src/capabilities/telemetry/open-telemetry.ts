import type * as OpenTelemetryApi from "@opentelemetry/api";
import {
  Fault,
  withoutSecrets,
  type Attributes,
  type Metric,
  type Span,
  type SpanOptions,
  type Telemetry,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

/** Options of `openTelemetry()`. */
export interface OpenTelemetryOptions {
  /** Name of the instrumentation scope. Default: `reeve`. */
  readonly name?: string;
  /** Version of the instrumentation scope. */
  readonly version?: string;
  /**
   * What to do if the package `@opentelemetry/api` is missing: `throw` a fault, or `ignore` and return a telemetry that
   * records nothing. Default: `throw`.
   */
  readonly ifMissing?: "throw" | "ignore";
}

type Api = typeof OpenTelemetryApi;

const knownOptions = optionTable({
  name: is.text({ default: "reeve" }),
  version: is.text(),
  ifMissing: is.choice(["throw", "ignore"], { default: "throw" }),
} satisfies OptionKinds<OpenTelemetryOptions>);

/**
 * Returns telemetry over the OpenTelemetry API, which is loaded by this call. Spans and metrics go to the SDK that the
 * program has registered; without one they are dropped.
 */
export async function openTelemetry(options: OpenTelemetryOptions = {}): Promise<Telemetry> {
  const { name, version, ifMissing } = knownOptions.read("openTelemetry()", options);
  let api: Api;
  try {
    api = await import("@opentelemetry/api");
  } catch (cause) {
    if (ifMissing === "ignore") return silence;
    throw new Fault(
      "dependency_missing",
      'openTelemetry() needs the package @opentelemetry/api: npm install @opentelemetry/api, or use openTelemetry({ ifMissing: "ignore" }) to run without telemetry',
      { cause },
    );
  }
  return new ApiTelemetry(api, name, version);
}

class ApiTelemetry implements Telemetry {
  readonly #api: Api;
  readonly #name: string;
  readonly #version: string | undefined;
  readonly #spans = new WeakMap<Span, OpenTelemetryApi.Span>();
  /** Meter provider to which the cached instruments belong. A program may register another one later. */
  #provider: unknown;
  #counters = new Map<Metric, OpenTelemetryApi.Counter>();
  #histograms = new Map<Metric, OpenTelemetryApi.Histogram>();

  constructor(api: Api, name: string, version: string | undefined) {
    this.#api = api;
    this.#name = name;
    this.#version = version;
  }

  startSpan(name: string, { attributes = {}, parent, kind = "internal" }: SpanOptions = {}): Span {
    const { context, trace, SpanKind } = this.#api;
    const above = parent && this.#spans.get(parent);
    const active = context.active();
    const started = trace
      .getTracer(this.#name, this.#version)
      .startSpan(
        name,
        { attributes: mutable(attributes), kind: kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL },
        above === undefined ? active : trace.setSpan(active, above),
      );
    const span = this.#wrap(started);
    this.#spans.set(span, started);
    return span;
  }

  #wrap(span: OpenTelemetryApi.Span): Span {
    const { context, trace, SpanStatusCode } = this.#api;
    return {
      set: (attributes) => {
        span.setAttributes(mutable(attributes));
      },
      fail: (error) => {
        const { message, name, stack = "" } = Fault.from(error);
        const shown =
          error instanceof Error ? { name: error.name, stack: error.stack ?? stack } : { name, stack };
        span.recordException({ name: shown.name, message, stack: withoutSecrets(shown.stack) });
        span.setStatus({ code: SpanStatusCode.ERROR, message });
      },
      end: () => span.end(),
      during: (body) => context.with(trace.setSpan(context.active(), span), body),
    };
  }

  count(metric: Metric, amount: number, attributes: Attributes = {}): void {
    this.#refresh();
    let counter = this.#counters.get(metric);
    if (counter === undefined) {
      counter = this.#meter().createCounter(metric.name, described(metric));
      this.#counters.set(metric, counter);
    }
    counter.add(amount, mutable(attributes));
  }

  measure(metric: Metric, value: number, attributes: Attributes = {}): void {
    this.#refresh();
    let histogram = this.#histograms.get(metric);
    if (histogram === undefined) {
      const { boundaries } = metric;
      const advice = boundaries && { advice: { explicitBucketBoundaries: [...boundaries] } };
      histogram = this.#meter().createHistogram(metric.name, { ...described(metric), ...advice });
      this.#histograms.set(metric, histogram);
    }
    histogram.record(value, mutable(attributes));
  }

  /**
   * Drops the cached instruments if another meter provider was registered, because the old instruments record nothing.
   */
  #refresh(): void {
    const provider = this.#api.metrics.getMeterProvider();
    if (provider === this.#provider) return;
    this.#provider = provider;
    this.#counters = new Map();
    this.#histograms = new Map();
  }

  #meter(): ReturnType<Api["metrics"]["getMeter"]> {
    return this.#api.metrics.getMeter(this.#name, this.#version);
  }
}

function described({ unit, description }: Metric): { unit: string; description?: string } {
  return description === undefined ? { unit } : { unit, description };
}

/**
 * Returns the attributes with another type. The API's types require mutable arrays, although it does not change
 * them.
 */
function mutable(attributes: Attributes): Record<string, string | number | boolean | string[]> {
  return attributes as Record<string, string | number | boolean | string[]>;
}

const silentSpan: Span = Object.freeze({
  set: () => {},
  fail: () => {},
  end: () => {},
  during: <Result>(body: () => Result) => body(),
});

const silence: Telemetry = Object.freeze({ startSpan: () => silentSpan, count: () => {}, measure: () => {} });
