import * as agents from "../agents/interception/middleware/index.ts";
import type { Layer } from "../agents/interception/middleware/index.ts";
import { textPattern } from "../capabilities/tools/text-pattern.ts";
import type { Schema } from "../kernel/index.ts";
import { sha256, systemClock, systemRandom } from "../runtime/index.ts";
import { standardSchema } from "./standard-schema.ts";

export {
  auditLogger,
  contentTruncator,
  fileValidator,
  historyTruncator,
  humanApproval,
  injectionMarking,
  MiddlewarePipeline,
  modelFallback,
  type AuditBook,
  type AuditLine,
  type AuditLoggerOptions,
  type ContentTruncatorOptions,
  type FileValidatorOptions,
  type HistoryTruncatorOptions,
  type HumanApprovalOptions,
  type InjectionMarkingOptions,
  type Layer,
  type LevelMiddleware,
  type ModelFallbackOptions,
  type OwnPattern,
  type PiiKind,
  type Stage,
  type ToolSelection,
} from "../agents/interception/middleware/index.ts";

export {
  MiddlewareTermination,
  type AgentRunContext,
  type ChatContext,
  type DeltaFilter,
  type FunctionContext,
  type UpdateFilter,
} from "../kernel/index.ts";

/** Makes those options optional for which the platform provides values. */
type Given<Options, Names extends keyof Options> = Omit<Options, Names> & Partial<Pick<Options, Names>>;

/** Options of `cache`. */
export type CacheOptions = Given<agents.CacheOptions, "clock">;
/** Options of `piiRedaction`. */
export type PiiRedactionOptions = Omit<agents.PiiRedactionOptions, "compile">;
/** Options of `rateLimiter`. */
export type RateLimiterOptions = Given<agents.RateLimiterOptions, "clock">;
/** Options of `retry`. */
export type RetryOptions = Given<agents.RetryOptions, "clock" | "random">;
/** Options of `schemaValidator`. */
export type SchemaValidatorOptions = Omit<agents.SchemaValidatorOptions, "schema"> & {
  /** A Standard Schema, such as a zod schema, or a JSON Schema. */
  readonly schema: Schema;
};
/** Options of `tracing`. */
export type TracingOptions = Given<agents.TracingOptions, "clock">;

/** Creates a layer that answers a repeated call with the earlier result. */
export function cache(options: CacheOptions = {}): Layer {
  return agents.cache({ clock: systemClock, hash: sha256, ...options });
}

/**
 * Creates a layer that redacts personal data in the data that models and tools receive and return. Custom patterns
 * are searched in time linear in the length of the text.
 */
export function piiRedaction(options: PiiRedactionOptions = {}): Layer {
  return agents.piiRedaction({ compile: textPattern, ...options });
}

/** Creates a layer that limits the rate of calls with a token bucket per tenant. */
export function rateLimiter(options: RateLimiterOptions): Layer {
  return agents.rateLimiter({ clock: systemClock, ...options });
}

/** Creates a layer that repeats a call after a temporary failure, with growing delays. */
export function retry(options: RetryOptions = {}): Layer {
  return agents.retry({ clock: systemClock, random: systemRandom, ...options });
}

/** Creates a layer that records spans and metrics for every run, model call and tool call. */
export function tracing(options: TracingOptions): Layer {
  return agents.tracing({ clock: systemClock, ...options });
}

/** Creates a layer that validates the model's answer as JSON, and asks the model again if it does not match. */
export function schemaValidator({ schema, ...options }: SchemaValidatorOptions): Layer {
  return agents.schemaValidator({
    ...options,
    schema: standardSchema("the schema of schemaValidator", schema),
  });
}
