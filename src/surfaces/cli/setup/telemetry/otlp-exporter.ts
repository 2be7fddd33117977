import type { Counter, Histogram, Meter, SpanContext } from "@opentelemetry/api";
import type * as Resources from "@opentelemetry/resources";
import type * as MetricSdk from "@opentelemetry/sdk-metrics";
import type * as TraceSdk from "@opentelemetry/sdk-trace";
import { cost, durations, genAi, tokenUsage } from "../../../../agents/index.ts";
import { Fault, withoutSecrets, type Attributes, type Metric } from "../../../../kernel/index.ts";
import { isMissingPackage } from "../../../../capabilities/optional-package.ts";
import type { OtlpSettings, Signal } from "./otlp-variables.ts";
import type { RunSpan } from "./run-spans.ts";

/** The ids of a span, as hexadecimal digits. */
export interface SpanPlace {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
}

/** Sends spans and measurements to a collector. Nothing that happens there can fail or delay a run. */
export interface OtlpExporter {
  /** Whether this trace is one of those that are exported. */
  isSampled(traceId: string): boolean;
  addSpan(span: RunSpan, place: SpanPlace): void;
  /** Adds a span to the metrics of this process. */
  measure(span: RunSpan): void;
  /** Sends what is waiting, soon. Calls during an export are answered together. */
  flushSoon(): void;
  /** Sends what is waiting. Ends after a few seconds, whatever the collector does. */
  close(): Promise<void>;
}

export interface OtlpExporterOptions {
  readonly settings: OtlpSettings;
  /** Version of this package. */
  readonly version: string;
  /** Receives the first failure of each signal. */
  readonly onWarning: (text: string) => void;
  /** Called when an export is still in progress after the time that `close` gives it. */
  readonly onAbandoned: () => void;
}

/** How long the end of a command waits for the collector, in milliseconds. */
const closeMs = 3_000;

/** The packages of the exporters. The names are no literals of an import, because nothing needs their types. */
const exporters = {
  TRACES: {
    "http/protobuf": "@opentelemetry/exporter-trace-otlp-proto",
    "http/json": "@opentelemetry/exporter-trace-otlp-http",
  },
  METRICS: {
    "http/protobuf": "@opentelemetry/exporter-metrics-otlp-proto",
    "http/json": "@opentelemetry/exporter-metrics-otlp-http",
  },
} as const satisfies Record<Signal, object>;

/** Loads the exporters and starts them. Throws `dependency_missing` with what to install if a package is missing. */
export async function openOtlpExporter(options: OtlpExporterOptions): Promise<OtlpExporter> {
  const { settings, version } = options;
  const { TRACES: traces, METRICS: metrics } = settings.protocols;
  const wanted = {
    api: "@opentelemetry/api",
    resources: "@opentelemetry/resources",
    ...(traces !== undefined && { trace: "@opentelemetry/sdk-trace", spans: exporters.TRACES[traces] }),
    ...(metrics !== undefined && {
      metric: "@opentelemetry/sdk-metrics",
      meters: exporters.METRICS[metrics],
    }),
  };
  const loaded = (await loadAll(wanted)) as Packages;
  const resource = resourceOf(loaded.resources, version);
  return new LoadedExporter(options, resource, loaded);
}

/** What is loaded. Without traces or without metrics, their packages are absent. */
interface Packages {
  readonly resources: typeof Resources;
  readonly trace?: typeof TraceSdk;
  readonly spans?: { readonly OTLPTraceExporter: new () => TraceSdk.SpanExporter };
  readonly metric?: typeof MetricSdk;
  readonly meters?: { readonly OTLPMetricExporter: new () => MetricSdk.PushMetricExporter };
}

async function loadAll(wanted: Readonly<Record<string, string>>): Promise<unknown> {
  const missing: string[] = [];
  const loaded: Record<string, unknown> = {};
  for (const [key, name] of Object.entries(wanted)) {
    try {
      loaded[key] = await import(name);
    } catch (error) {
      if (!isMissingPackage(error, name)) throw error;
      missing.push(name);
    }
  }
  if (missing.length === 0) return loaded;
  throw new Fault(
    "dependency_missing",
    `the variables of OpenTelemetry ask for an export, and packages are missing: npm install ${missing.join(" ")}; set OTEL_SDK_DISABLED=true to run without`,
  );
}

/** What the variables say about this process. They take precedence over the name and the version of Reeve. */
function resourceOf(
  { defaultResource, detectResources, envDetector, resourceFromAttributes }: Packages["resources"],
  version: string,
): Resources.Resource {
  return defaultResource()
    .merge(resourceFromAttributes({ "service.name": "reeve", "service.version": version }))
    .merge(detectResources({ detectors: [envDetector] }));
}

class LoadedExporter implements OtlpExporter {
  readonly #options: OtlpExporterOptions;
  readonly #resource: Resources.Resource;
  readonly #spans: TraceSdk.BatchSpanProcessor | undefined;
  readonly #isSampled: (traceId: string) => boolean;
  readonly #meters: MetricSdk.MeterProvider | undefined;
  readonly #meter: Meter | undefined;
  readonly #histograms = new Map<Metric, Histogram>();
  readonly #counters = new Map<Metric, Counter>();
  /** The flush in progress. */
  #flushing: Promise<void> | undefined;
  #mustFlushAgain = false;

  constructor(
    options: OtlpExporterOptions,
    resource: Resources.Resource,
    { trace, spans, metric, meters }: Packages,
  ) {
    const { settings, version } = options;
    this.#options = options;
    this.#resource = resource;
    this.#isSampled = () => false;
    if (trace !== undefined && spans !== undefined) {
      const exporter = this.#warning("traces", new spans.OTLPTraceExporter());
      this.#spans = new trace.BatchSpanProcessor({ exporter, ...settings.batch });
      const sampler = new trace.TraceIdRatioBasedSampler(settings.ratio);
      const { RECORD_AND_SAMPLED } = trace.SamplingDecision;
      // The sampler reads only the id of the trace.
      this.#isSampled = (traceId) =>
        (
          sampler as {
            shouldSample(
              context: undefined,
              traceId: string,
            ): { readonly decision: TraceSdk.SamplingDecision };
          }
        ).shouldSample(undefined, traceId).decision === RECORD_AND_SAMPLED;
    }
    if (metric === undefined || meters === undefined) return;
    const { exportIntervalMillis, exportTimeoutMillis } = settings.metrics;
    const reader = new metric.PeriodicExportingMetricReader({
      exporter: this.#warning("metrics", new meters.OTLPMetricExporter()),
      exportIntervalMillis,
      exportTimeoutMillis: Math.min(exportIntervalMillis, exportTimeoutMillis),
    });
    this.#meters = new metric.MeterProvider({ resource, readers: [reader] });
    this.#meter = this.#meters.getMeter("reeve", version);
  }

  isSampled(traceId: string): boolean {
    return this.#isSampled(traceId);
  }

  addSpan(span: RunSpan, place: SpanPlace): void {
    this.#spans?.onEnd(this.#readable(span, place));
  }

  measure({ call, attributes, startAt, endAt, error }: RunSpan): void {
    if (call === undefined || this.#meter === undefined) return;
    const labels = {
      ...labelsOf(attributes),
      ...(error !== undefined && { [genAi.errorType]: error.type }),
    };
    this.#histogram(durations[call.operation]).record(Math.max(0, endAt - startAt) / 1_000, labels);
    const { usage } = call;
    if (usage === undefined) return;
    this.#histogram(tokenUsage).record(usage.inputTokens, { ...labels, [genAi.tokenType]: "input" });
    this.#histogram(tokenUsage).record(usage.outputTokens, { ...labels, [genAi.tokenType]: "output" });
    if (usage.costUsd !== null && usage.costUsd > 0) this.#counter(cost).add(usage.costUsd, labels);
  }

  flushSoon(): void {
    if (this.#flushing !== undefined) {
      this.#mustFlushAgain = true;
      return;
    }
    this.#mustFlushAgain = false;
    this.#flushing = this.#flush();
  }

  async #flush(): Promise<void> {
    // The exporter has reported a failure.
    await Promise.allSettled([this.#spans?.forceFlush()]);
    this.#flushing = undefined;
    if (this.#mustFlushAgain) this.flushSoon();
  }

  async close(): Promise<void> {
    const sent = Promise.allSettled([this.#spans?.shutdown(), this.#meters?.shutdown()]);
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const timer = setTimeout(() => resolve("late"), closeMs);
    const outcome = await Promise.race([sent, late]);
    clearTimeout(timer);
    if (outcome !== "late") return;
    this.#options.onWarning(
      `telemetry: the collector has not answered within ${closeMs / 1_000} seconds; what was not sent is lost, and the runs are not affected`,
    );
    this.#options.onAbandoned();
  }

  /** Reports the first failure of an exporter. Its SDK would drop it without a word. */
  #warning<Exporter extends TraceSdk.SpanExporter | MetricSdk.PushMetricExporter>(
    what: string,
    exporter: Exporter,
  ): Exporter {
    const send = exporter.export.bind(exporter) as (items: unknown, done: Done) => void;
    let hasWarned = false;
    exporter.export = (items: unknown, done: Done): void =>
      send(items, (result) => {
        if (result.code !== 0 && !hasWarned) {
          hasWarned = true;
          const reason = withoutSecrets(result.error?.message ?? "unknown error");
          this.#options.onWarning(
            `telemetry: ${what} were not exported (${reason}); the runs are not affected, and further failures are not reported`,
          );
        }
        done(result);
      });
    return exporter;
  }

  #readable(span: RunSpan, { traceId, spanId, parentSpanId }: SpanPlace): TraceSdk.ReadableSpan {
    const context: SpanContext = { traceId, spanId, traceFlags: sampled };
    const { name, isClient, startAt, endAt, error } = span;
    return {
      name,
      kind: isClient ? clientKind : internalKind,
      spanContext: () => context,
      ...(parentSpanId !== undefined && {
        parentSpanContext: { traceId, spanId: parentSpanId, traceFlags: sampled, isRemote: true },
      }),
      startTime: timeOf(startAt),
      endTime: timeOf(endAt),
      duration: timeOf(endAt - startAt),
      status: error === undefined ? { code: 0 } : { code: errorStatus, message: this.#text(error.message) },
      attributes: this.#readableAttributes(span.attributes),
      links: [],
      events: [],
      ended: true,
      resource: this.#resource,
      instrumentationScope: { name: "reeve", version: this.#options.version },
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
  }

  #readableAttributes(attributes: Attributes): TraceSdk.ReadableSpan["attributes"] {
    const entries = Object.entries(attributes).map(([name, value]) => [name, this.#shown(value)] as const);
    return Object.fromEntries(entries);
  }

  #shown(value: Attributes[string]): string | number | boolean | string[] {
    if (typeof value === "string") return this.#text(value);
    return typeof value === "object" ? value.map((each) => this.#text(each)) : value;
  }

  #text(text: string): string {
    const shown = withoutSecrets(text);
    const { maxText } = this.#options.settings;
    return shown.length <= maxText ? shown : shown.slice(0, maxText);
  }

  #histogram(metric: Metric): Histogram {
    let histogram = this.#histograms.get(metric);
    if (histogram === undefined) {
      const { boundaries } = metric;
      const advice = boundaries && { advice: { explicitBucketBoundaries: [...boundaries] } };
      histogram = meterOf(this.#meter).createHistogram(metric.name, { unit: metric.unit, ...advice });
      this.#histograms.set(metric, histogram);
    }
    return histogram;
  }

  #counter(metric: Metric): Counter {
    let counter = this.#counters.get(metric);
    if (counter === undefined) {
      const { name, unit, description = "" } = metric;
      counter = meterOf(this.#meter).createCounter(name, { unit, description });
      this.#counters.set(metric, counter);
    }
    return counter;
  }
}

type Done = (result: { readonly code: number; readonly error?: Error }) => void;

/** Numbers of the API, which is loaded on demand. They are part of the protocol and never change. */
const sampled = 1;
const internalKind = 0;
const clientKind = 2;
const errorStatus = 2;

function meterOf(meter: Meter | undefined): Meter {
  if (meter === undefined) throw new Fault("internal", "the metrics are not exported");
  return meter;
}

/** Attributes with few distinct values. */
function labelsOf(attributes: Attributes): Record<string, string> {
  const names = [
    genAi.operation,
    genAi.provider,
    genAi.requestModel,
    genAi.responseModel,
    genAi.agentName,
    genAi.workflowName,
    genAi.toolName,
  ];
  const found = names.flatMap((name) => {
    const value = attributes[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(found);
}

/** Seconds and nanoseconds. */
function timeOf(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}
