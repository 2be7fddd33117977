import { Fault } from "../../../../kernel/index.ts";

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is exported. The names are those in the variables. */
export type Signal = "TRACES" | "METRICS";

type OtlpProtocol = "http/protobuf" | "http/json";

/** The variables of OpenTelemetry that Reeve reads itself. The exporters read endpoints, headers, timeouts and certificates. */
export interface OtlpSettings {
  /** The protocol of each signal that is exported. */
  readonly protocols: Readonly<Partial<Record<Signal, OtlpProtocol>>>;
  /** The fraction of traces that is exported, from 0 to 1. */
  readonly ratio: number;
  /** Whether spans contain inputs, answers, arguments and results. */
  readonly hasContent: boolean;
  /** Longest text of an attribute, in characters. */
  readonly maxText: number;
  /** Absent numbers have the defaults of the specification. Milliseconds, and numbers of spans. */
  readonly batch: {
    readonly scheduledDelayMillis: number;
    readonly exportTimeoutMillis: number;
    readonly maxQueueSize: number;
    readonly maxExportBatchSize: number;
  };
  /** How often metrics are exported, and how long that may take. Milliseconds. */
  readonly metrics: { readonly exportIntervalMillis: number; readonly exportTimeoutMillis: number };
}

const signals: readonly Signal[] = ["TRACES", "METRICS"];

/**
 * Reads the standard variables of OpenTelemetry. Returns `undefined` if they ask for no export: without an endpoint and without
 * `otlp` as an exporter, and with `OTEL_SDK_DISABLED=true`. Throws `invalid_argument` for a value that Reeve cannot follow.
 */
export function otlpSettings(env: Environment): OtlpSettings | undefined {
  if (env["OTEL_SDK_DISABLED"]?.trim().toLowerCase() === "true") return undefined;
  const exported = signals.filter((signal) => isExported(env, signal));
  if (exported.length === 0) return undefined;
  return {
    protocols: Object.fromEntries(exported.map((signal) => [signal, protocolOf(env, signal)])),
    ratio: samplingRatio(env),
    hasContent: capturesContent(env),
    maxText: numberOf(
      env,
      valueOf(env, "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT") === undefined
        ? "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
        : "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
      Infinity,
    ),
    batch: {
      scheduledDelayMillis: numberOf(env, "OTEL_BSP_SCHEDULE_DELAY", 5_000),
      exportTimeoutMillis: numberOf(env, "OTEL_BSP_EXPORT_TIMEOUT", 30_000),
      maxQueueSize: numberOf(env, "OTEL_BSP_MAX_QUEUE_SIZE", 2_048),
      maxExportBatchSize: numberOf(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
    },
    metrics: {
      exportIntervalMillis: numberOf(env, "OTEL_METRIC_EXPORT_INTERVAL", 60_000),
      exportTimeoutMillis: numberOf(env, "OTEL_METRIC_EXPORT_TIMEOUT", 30_000),
    },
  };
}

/** The value of a variable. An empty one counts as unset, as the specification demands. */
function valueOf(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

function isExported(env: Environment, signal: Signal): boolean {
  const chosen = `OTEL_${signal}_EXPORTER`;
  const exporter = valueOf(env, chosen);
  if (exporter === "none") return false;
  const endpoints = [`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, "OTEL_EXPORTER_OTLP_ENDPOINT"];
  const named = endpoints.filter((name) => valueOf(env, name) !== undefined);
  for (const name of named) checkEndpoint(name, valueOf(env, name) ?? "");
  if (exporter !== undefined && exporter !== "otlp" && named.length > 0)
    throw invalid(chosen, exporter, "otlp or none");
  return exporter === "otlp" || named.length > 0;
}

function checkEndpoint(name: string, address: string): void {
  if (URL.canParse(address) && /^https?:$/u.test(new URL(address).protocol)) return;
  throw invalid(name, address, "an address such as http://127.0.0.1:4318");
}

function protocolOf(env: Environment, signal: Signal): OtlpProtocol {
  const names = [`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, "OTEL_EXPORTER_OTLP_PROTOCOL"];
  const name = names.find((each) => valueOf(env, each) !== undefined);
  if (name === undefined) return "http/protobuf";
  const protocol = valueOf(env, name);
  if (protocol === "http/protobuf" || protocol === "http/json") return protocol;
  const hint = protocol === "grpc" ? "; a collector receives http/protobuf at port 4318" : "";
  throw invalid(name, protocol ?? "", `http/protobuf or http/json${hint}`);
}

/**
 * A trace has one decision, which follows from its id, so that all processes of a run decide alike. Samplers that ask the parent of
 * a span decide as their root does.
 */
function samplingRatio(env: Environment): number {
  const sampler = valueOf(env, "OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  switch (sampler.replace(/^parentbased_/u, "")) {
    case "always_on":
      return 1;
    case "always_off":
      return 0;
    case "traceidratio":
      return ratioOf(env);
    default:
      throw invalid(
        "OTEL_TRACES_SAMPLER",
        sampler,
        "always_on, always_off, traceidratio, or one of them after parentbased_",
      );
  }
}

function ratioOf(env: Environment): number {
  const text = valueOf(env, "OTEL_TRACES_SAMPLER_ARG") ?? "1";
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw invalid("OTEL_TRACES_SAMPLER_ARG", text, "a number from 0 to 1");
}

/** The values of the instrumentation of other languages. Reeve sends contents in spans, and no events. */
const contents: Readonly<Record<string, boolean>> = {
  true: true,
  span_only: true,
  span_and_event: true,
  false: false,
  no_content: false,
  event_only: false,
};

function capturesContent(env: Environment): boolean {
  const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
  const value = valueOf(env, name) ?? "false";
  const captures = contents[value.toLowerCase()];
  if (captures === undefined)
    throw invalid(name, value, "true, false, SPAN_ONLY, SPAN_AND_EVENT, EVENT_ONLY or NO_CONTENT");
  return captures;
}

function numberOf(env: Environment, name: string, fallback: number): number {
  const text = valueOf(env, name);
  if (text === undefined) return fallback;
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw invalid(name, text, "a whole number from 1");
}

function invalid(name: string, value: string, expected: string): Fault {
  return new Fault("invalid_argument", `invalid ${name} ${JSON.stringify(value)}: expected ${expected}`);
}
