import { isObject, readProperty } from "../base/read-property.ts";
import { readErrorFacts, type ErrorFacts } from "./error-facts.ts";
import { errorKinds, type ErrorKind } from "../base/error-kind.ts";
import { modelErrorKind } from "../base/fault-code.ts";
import { Fault } from "../base/fault.ts";
import { decisiveRules, fallbackRules, type ErrorRule } from "./error-rules.ts";
import { readRetryAfter } from "./retry-after.ts";

/**
 * Properties under which clients keep the status of the response. `code` is excluded, because bodies use it as well.
 */
const statusKeys = ["statusCode", "status", "status_code"] as const;
/** Properties that wrap a response's error and are not its body. */
const wrapperKeys = ["lastError", "response", "cause"] as const;
const maxDepth = 4;

/**
 * The HTTP status of the response that an error reports, independent of the body. Returns `undefined` if there was no
 * response or the error does not mention it. Never throws.
 */
function responseStatus(error: unknown, depth = 0): number | undefined {
  if (!isObject(error) || depth > maxDepth) return undefined;
  for (const key of statusKeys) {
    const status = readProperty(error, key);
    if (typeof status === "number" && status >= 100 && status < 600) return status;
  }
  for (const key of wrapperKeys) {
    const status = responseStatus(readProperty(error, key), depth + 1);
    if (status !== undefined) return status;
  }
  return undefined;
}

export interface ClassifiedError {
  readonly kind: ErrorKind;
  /** Whether a retry may help, as `errorKinds` defines for the kind. */
  readonly retryable: boolean;
  /** The wait that the provider asks for, in milliseconds. Present only for kinds that are retried after a wait. */
  readonly retryAfterMs?: number;
  /** The HTTP error status, also if it was reported inside the body of a successful response. */
  readonly status?: number;
  readonly providerCode?: string;
  /**
   * B3: the response had an error status, so nothing was generated. An error inside a successful response may have been
   * billed.
   */
  readonly refused: boolean;
  /** The most informative message, cut to a fixed length. It is not stable; do not compare it. */
  readonly message: string;
}

export interface ClassifyErrorOptions {
  /** The current time in epoch milliseconds, needed to convert a `Retry-After` date to a wait. */
  readonly now?: number;
}

/**
 * Determines the kind of a thrown value, SDK error, response body or stream error event. Never throws, and reads only a
 * bounded part of its input.
 *
 * - K1: Proof in codes or texts overrides the status; the status overrides weaker texts.
 * - K2: `auth_permanent` needs proof (blocked, revoked, wrong region, missing permission). Any other 401 or 403 is
 * `auth`.
 * - K3: An abort counts as `timeout`. The caller knows whether it cancelled, and checks that first.
 * - K4: An unreachable or dropped connection counts as `server_error`, because a local server may be starting.
 * - K5: A 404 that does not mention a model means a wrong address and counts as `format_error`.
 * - K6: A fault whose code names a kind, such as `model_auth`, has that kind.
 */
export function classifyError(error: unknown, options: ClassifyErrorOptions = {}): ClassifiedError {
  const facts = readErrorFacts(error);
  const kind = namedKind(error) ?? kindOf(facts);
  const { retry, retryable } = errorKinds[kind];
  const retryAfterMs = retry === "backoff" ? readRetryAfter(facts, { kind, ...options }) : undefined;
  return {
    kind,
    retryable,
    message: facts.message,
    refused: (responseStatus(error) ?? 0) >= 400,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(facts.status === undefined ? {} : { status: facts.status }),
    ...(facts.providerCode === undefined ? {} : { providerCode: facts.providerCode }),
  };
}

function namedKind(error: unknown): ErrorKind | undefined {
  return Fault.is(error) ? modelErrorKind(error.code) : undefined;
}

function kindOf({ evidence, status }: ErrorFacts): ErrorKind {
  const decided = firstMatch(decisiveRules, evidence);
  if (decided !== undefined) return decided;
  if (status !== undefined) return kindOfStatus(status);
  return firstMatch(fallbackRules, evidence) ?? "unknown";
}

function firstMatch(rules: readonly ErrorRule[], evidence: string): ErrorKind | undefined {
  return rules.find(({ words }) => words.some((pattern) => pattern.test(evidence)))?.kind;
}

const kindByStatus: Readonly<Record<number, ErrorKind>> = {
  401: "auth",
  402: "billing",
  403: "auth",
  408: "timeout",
  409: "unknown",
  413: "context_overflow",
  425: "unknown",
  429: "rate_limit",
  // 499 (nginx): the client closed the connection. 524 (Cloudflare): the origin did not answer.
  499: "timeout",
  503: "overloaded",
  504: "timeout",
  524: "timeout",
  529: "overloaded",
};

function kindOfStatus(status: number): ErrorKind {
  return kindByStatus[status] ?? (status < 500 ? "format_error" : "server_error");
}
