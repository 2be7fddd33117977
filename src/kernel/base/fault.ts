import { describeValue } from "./describe-value.ts";
import { nearestJson } from "./json-safe-copy.ts";
import type { JsonObject, JsonValue } from "./json-value.ts";
import { withoutSecrets, withoutSecretsIn } from "./text.ts";

/** Why a model call failed. Each kind stands for failures to which the caller reacts in the same way. */
export type ErrorKind =
  | "rate_limit"
  | "overloaded"
  | "server_error"
  | "timeout"
  | "context_overflow"
  | "unknown"
  | "auth"
  | "auth_permanent"
  | "billing"
  | "model_not_found"
  | "content_blocked"
  | "format_error";

export interface ErrorPolicy {
  /**
   * HTTP statuses that usually accompany the kind. Kinds share statuses, so a status alone does not identify a kind.
   */
  readonly status: readonly number[];
  readonly retryable: boolean;
  /**
   * What the caller may do. `compact` means: shorten the context before the retry, because the same request would fail
   * again.
   */
  readonly retry: "backoff" | "compact" | "never";
}

export const errorKinds: Readonly<Record<ErrorKind, ErrorPolicy>> = Object.freeze({
  /** The provider received too many requests or tokens in a short window. Wait, then retry. */
  rate_limit: policy([429], "backoff"),
  /** The provider has no capacity at the moment. Wait, then retry. */
  overloaded: policy([503, 529], "backoff"),
  /** The provider or the network connection to it failed. Retry. */
  server_error: policy([500, 502], "backoff"),
  /** No answer arrived in time, on either side. Retry. */
  timeout: policy([408, 504], "backoff"),
  /** The request exceeds what the model or the account accepts. Compact, then retry. */
  context_overflow: policy([400, 413], "compact"),
  /** The error was not recognised. Retry a few times, then report it. */
  unknown: policy([], "backoff"),
  /** The credential is missing, wrong or expired. Do not retry until it is replaced or refreshed. */
  auth: policy([401, 403], "never"),
  /**
   * The account, key or region is blocked, or lacks a permission. Do not retry; a refreshed credential does not help.
   */
  auth_permanent: policy([401, 403], "never"),
  /** Credit or a long-term quota is used up. Do not retry until it is paid or the quota period ends. */
  billing: policy([402, 429], "never"),
  /** The provider does not know the model, or the account has no access to it. Do not retry; choose another model. */
  model_not_found: policy([404], "never"),
  /** A content filter refused the prompt or the answer. Do not retry; the same content is refused again. */
  content_blocked: policy([400, 403], "never"),
  /** The provider rejects the request as malformed. Do not retry; fix the code that builds the request. */
  format_error: policy([400], "never"),
});

/**
 * Whether another model may succeed after a failure of this kind. A context overflow is compacted instead of sent to
 * another model.
 */
export function mayBeAnsweredElsewhere(kind: ErrorKind): boolean {
  return !metEverywhere.has(kind);
}

const metEverywhere: ReadonlySet<ErrorKind> = new Set<ErrorKind>([
  "content_blocked",
  "context_overflow",
  "format_error",
]);

function policy(status: readonly number[], retry: ErrorPolicy["retry"]): ErrorPolicy {
  return Object.freeze({ status: Object.freeze([...status]), retryable: retry !== "never", retry });
}

/**
 * How a caller may react to a fault: without a retry, with a retry after a pause, or with a retry after it has
 * shortened the context.
 */
export type Retry = "never" | "backoff" | "compact";

/**
 * Fault code of a failed model call: `model_` and the kind that `classifyError` determined. A kind that already
 * begins with `model_` is the code itself.
 */
export type ModelFaultCode = ErrorKind extends infer Kind extends ErrorKind
  ? Kind extends `model_${string}`
    ? Kind
    : `model_${Kind}`
  : never;

const retryByCode = {
  /** The caller passed invalid input. The message says what is wrong, where, and how to fix it. */
  invalid_argument: "never",
  /** J10: a value to be stored or sent is not JSON. */
  not_json: "never",
  /** A value to be stored or sent is larger than `maxValueBytes` of the runtime. */
  too_large: "never",
  not_found: "never",
  already_exists: "never",
  /** S5: the session is busy with an invocation or a compaction. The details name the run and what it waits for. */
  agent_busy: "backoff",
  /** The task was cancelled or its deadline passed (`CancellationError`). */
  cancelled: "never",
  /** A cap on tokens, dollars, turns or seats was reached (`BudgetExhaustedError`). */
  budget_exhausted: "never",
  /** A guardrail or middleware stopped the run (`MiddlewareTermination`). */
  guardrail_tripped: "never",
  /** A request to a server carries no valid token or cookie. */
  unauthenticated: "never",
  permission_denied: "never",
  /** A caller sent more requests, or opened more streams, than a server allows. */
  rate_limited: "backoff",
  /** B4: the task has a budget in dollars and the model has no known price. */
  unknown_price: "never",
  /** J2: a scope made a second journaled call while the first was in flight. */
  journal_ambiguous: "never",
  /** J4: on replay, the code requested a different step than the journal recorded. */
  journal_mismatch: "never",
  /** J3: another worker owns the run. This worker writes nothing and starts no effect. */
  lease_lost: "never",
  /** L15: a live worker owns the run. Another worker may claim the run when it is released or its lease has ended. */
  run_owned: "backoff",
  /** J9: the run was started by another version of its agent. */
  version_mismatch: "never",
  /** G5: the store records another kind of engine than that of the runtime. */
  engine_mismatch: "never",
  /**
   * The engine of the runtime cannot be reached. Submitted runs are stored, and are executed when the engine can be
   * reached again.
   */
  engine_unavailable: "backoff",
  /** The run ended its worker's process several times in a row without progress. No worker executes it again until it is resumed. */
  crash_loop: "never",
  /** The run was submitted with a live context, and this worker has no factory for it. No step was executed. */
  context_missing: "never",
  tool_failed: "never",
  tool_not_found: "never",
  tool_timeout: "never",
  /** An attempt of a step took longer than its `timeoutMs`. */
  step_timeout: "backoff",
  /** A workflow did not accept an update: `validate` of `ctx.handleUpdate` threw an error. The run has not changed. */
  update_refused: "never",
  /** Work inside `ctx.timeout` took longer than its limit. */
  timeout: "never",
  /**
   * H2: the task of a program lost its seat, and the program could not wait until the task got one again. The next
   * attempt continues when the task has a seat.
   */
  seat_lost: "never",
  /** The conversation of a hired agent cannot be continued after its process has ended. The message says what is kept. */
  cannot_resume: "never",
  /**
   * The program of a hired agent could not be started: it is not installed, or it is not at the path that its
   * command names.
   */
  agent_not_found: "never",
  /**
   * A hired agent asks for a login. It needs an API key instead, because usage under a subscription has no price
   * for the budget.
   */
  agent_login_required: "never",
  /** A hired agent does not speak the protocol, or violates it. */
  agent_protocol: "never",
  /** The process of a hired agent ended, or did not answer. The details have its exit code and its last output. */
  agent_crashed: "never",
  /** Code threw a `FatalError`: neither the step nor the run is retried. */
  fatal: "never",
  /** A child task, or an agent that was asked, ended without an answer. */
  child_failed: "never",
  /** Middleware called `next` while an earlier call was in flight, or after `process` had returned. */
  middleware_misuse: "never",
  /** A package or program that the feature needs is not installed. The message names it. */
  dependency_missing: "never",
  unsupported: "never",
  /** The runtime or the store is closed and accepts no more calls. */
  closed: "never",
  /** The store is locked or unreachable for the moment. A write whose answer was lost may have taken effect. */
  store_unavailable: "backoff",
  store_read_only: "never",
  store_full: "never",
  store_corrupt: "never",
  /**
   * The file of the store was deleted or replaced while it was open. The runtime stores nothing more, and the
   * worker has stopped.
   */
  store_lost: "never",
  /** Code threw something other than a fault, or Reeve has a bug. */
  internal: "never",
} as const satisfies Record<string, Retry>;

export type FaultCode = keyof typeof retryByCode | ModelFaultCode;

/** Fault codes that only a subclass of `Fault` may carry. Each has one subclass. */
export type SubclassCode = "cancelled" | "budget_exhausted" | "guardrail_tripped" | "fatal";

export function isFaultCode(value: unknown): value is FaultCode {
  if (typeof value !== "string") return false;
  return Object.hasOwn(retryByCode, value) || modelErrorKind(value) !== undefined;
}

function retryOf(code: FaultCode): Retry {
  const kind = modelErrorKind(code);
  return kind === undefined ? retryByCode[code as keyof typeof retryByCode] : errorKinds[kind].retry;
}

/** Returns the fault code of a failed model call. */
export function modelFaultCode(kind: ErrorKind): ModelFaultCode {
  return (kind.startsWith("model_") ? kind : `model_${kind}`) as ModelFaultCode;
}

/** Returns the kind of a failed model call by its fault code. `undefined` for any other code. */
export function modelErrorKind(code: string): ErrorKind | undefined {
  return (Object.keys(errorKinds) as ErrorKind[]).find((kind) => modelFaultCode(kind) === code);
}

/**
 * The serialised form of a fault, as it is stored in the journal and sent to clients. Secrets are removed from its
 * texts.
 */
export interface Failure {
  readonly code: FaultCode;
  readonly message: string;
  readonly details?: JsonObject;
  readonly cause?: Failure;
}

export interface FaultOptions {
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

const mark: unique symbol = Symbol.for("reeve.fault");
/** Maximum number of causes that are stored. A longer or circular chain is cut. */
export const causesKept = 8;

/**
 * The only error class that Reeve throws. Compare `code`, never `message`. `instanceof` checks a brand, and for
 * subclasses also the code, so it works across duplicate copies of the package and across realms.
 *
 * @example
 * ```ts
 * import { Agent, Fault } from "reeve";
 *
 * async function ask(agent: Agent, question: string): Promise<string> {
 *   try {
 *     return (await agent.invoke(question, { sessionId: "support" })).output;
 *   } catch (error) {
 *     if (Fault.is(error) && error.code === "agent_busy") return "The agent still works on the last question.";
 *     throw error;
 *   }
 * }
 * ```
 */
export class Fault extends Error {
  readonly [mark]: true = true;
  readonly code: FaultCode;
  readonly details: JsonObject | undefined;

  constructor(code: Exclude<FaultCode, SubclassCode>, message: string, options?: FaultOptions);
  /** Constructor for the subclasses, each of which has a fixed code. */
  constructor(code: FaultCode, message: string, options: FaultOptions, subclass: true);
  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = new.target.name;
    this.code = code;
    this.details = options.details;
  }

  get retry(): Retry {
    return retryOf(this.code);
  }

  /** Whether a value is a `Fault`. Never throws. */
  static is(value: unknown): value is Fault {
    try {
      return (
        typeof value === "object" &&
        value !== null &&
        mark in value &&
        "code" in value &&
        isFaultCode(value.code)
      );
    } catch {
      return false;
    }
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === Fault ? Fault.is(value) : Function.prototype[Symbol.hasInstance].call(this, value);
  }

  /** Converts any thrown value to a fault. A value that is not a fault becomes the cause of an `internal` fault. */
  static from(value: unknown): Fault {
    if (Fault.is(value)) return value;
    return new Fault("internal", messageOf(value), { cause: value });
  }

  toJSON(): Failure {
    return toFailure(this, causesKept);
  }
}

/** Implements `instanceof` for the subclasses: checks the brand and the code. */
export function hasCode(value: unknown, code: SubclassCode): boolean {
  return Fault.is(value) && value.code === code;
}

function toFailure(error: unknown, causesLeft: number): Failure {
  const own = ownFailure(error);
  const cause = read(error, "cause");
  if (cause === undefined || cause === null || causesLeft === 0) return own;
  return { ...own, cause: toFailure(cause, causesLeft - 1) };
}

function ownFailure(error: unknown): Failure {
  if (Fault.is(error)) {
    const { code, details } = error;
    const message = storedMessage(error.message);
    // Details come from arbitrary code. Only JSON can be stored, and without this conversion the run could not be
    // written (J10).
    const stored = details === undefined ? undefined : withoutSecretsIn(withCutTexts(nearestJson(details)));
    return isObject(stored) ? { code, message, details: stored } : { code, message };
  }
  const name = read(error, "name");
  const details = typeof name === "string" && isError(error) ? { details: { name } } : {};
  return { code: "internal", message: messageOf(error), ...details };
}

/**
 * Length in characters at which a message, or a text in the details, is cut. Such texts come from arbitrary code
 * and are stored several times.
 */
const longMessage = 65_536;

/** Returns the message as it may be stored: without secrets, and cut if it is very long. */
function storedMessage(message: string): string {
  return withoutSecrets(cut(message));
}

function cut(text: string): string {
  return text.length > longMessage ? `${text.slice(0, longMessage)} [cut]` : text;
}

/**
 * Cuts the texts in details to the maximum length of messages, because the search for secrets reads every
 * character.
 */
function withCutTexts(value: JsonValue): JsonValue {
  if (typeof value === "string") return cut(value);
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(withCutTexts);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withCutTexts(member)]));
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function messageOf(value: unknown): string {
  if (!isError(value)) return typeof value === "string" ? storedMessage(value) : describeValue(value);
  const [message, name] = [read(value, "message"), read(value, "name")];
  if (typeof message === "string" && message !== "") return storedMessage(message);
  return typeof name === "string" ? name : "an error without a message";
}

function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** Reads a property of an unknown value; returns `undefined` if the getter throws. */
function read(value: unknown, key: "cause" | "message" | "name"): unknown {
  try {
    return typeof value === "object" && value !== null ? (value as Partial<Error>)[key] : undefined;
  } catch {
    return undefined;
  }
}
