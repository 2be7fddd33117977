import { readErrorFacts, type ErrorFacts } from "./error-facts.ts";
import { errorKinds, type ErrorKind } from "../base/error-kind.ts";
import { Fault } from "../base/fault.ts";
import { decisiveRules, fallbackRules, type ErrorRule } from "./error-rules.ts";
import { responseStatus } from "./response-status.ts";
import { readRetryAfter } from "./retry-after.ts";

export interface ClassifiedError {
  readonly kind: ErrorKind;
  /** Always what `errorKinds` says of the kind. */
  readonly retryable: boolean;
  /** The provider's own wait; only on kinds that are retried after a wait. */
  readonly retryAfterMs?: number;
  /** The HTTP error status, also when it came inside the body of a success. */
  readonly status?: number;
  readonly providerCode?: string;
  /** B3: the response itself had an error status, so nothing was generated. An error inside a success may have been billed. */
  readonly refused: boolean;
  /** The most telling message found, cut to a fixed length; not stable, never switch on it. */
  readonly message: string;
}

export interface ClassifyErrorOptions {
  /** Epoch milliseconds, to turn a `Retry-After` date into a wait. */
  readonly now?: number;
}

/**
 * Names the kind of any thrown value, SDK error, response body or stream error event. Never throws, and reads a
 * bounded part of what it is given.
 *
 * - K1 Proof in codes or words overrules the status; the status overrules weaker words.
 * - K2 `auth_permanent` needs proof (barred, revoked, wrong place, missing right); any other 401 or 403 is `auth`.
 * - K3 An abort counts as `timeout`: the caller knows whether it cancelled, and checks that first.
 * - K4 An unreachable or dropped connection counts as `server_error`, since a local server may be starting.
 * - K5 A 404 that does not speak of a model is a wrong address, hence `format_error`.
 * - K6 A fault that names a kind (`model_auth`) is of that kind.
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
  const kind = Fault.is(error) && error.code.startsWith("model_") ? error.code.slice("model_".length) : "";
  return Object.hasOwn(errorKinds, kind) ? (kind as ErrorKind) : undefined;
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
  // nginx: the client closed the connection; 524, Cloudflare: the origin did not answer.
  499: "timeout",
  503: "overloaded",
  504: "timeout",
  524: "timeout",
  529: "overloaded",
};

function kindOfStatus(status: number): ErrorKind {
  return kindByStatus[status] ?? (status < 500 ? "format_error" : "server_error");
}
