import { type ErrorKind, errorKinds, Fault, modelErrorKind } from "../base/fault.ts";
import { isObject, readProperty } from "../base/read-property.ts";
import { type ErrorFacts, readErrorFacts } from "./error-facts.ts";
import { readRetryAfter } from "./retry.ts";

/**
 * An error kind and its patterns. An error has this kind if its lower-case evidence matches one of the patterns.
 * Rules are tried in list order.
 */
interface ErrorRule {
  readonly kind: ErrorKind;
  readonly words: readonly RegExp[];
}

/**
 * Rules that take precedence over the HTTP status of an error. The order matters, because providers use the same
 * statuses and even the same sentences for different errors: a rule comes before all rules whose patterns also
 * match its errors.
 */
const decisiveRules: readonly ErrorRule[] = [
  {
    // OpenRouter sends a 402 that resolves itself as running requests settle.
    kind: "rate_limit",
    words: [/in_flight_budget/],
  },
  {
    kind: "context_overflow",
    words: [
      /context_length_exceeded|context_window_exceeded|exceed_context_size|request_too_large/,
      /maximum context length|context size has been exceeded|model max length exceeded/,
      /exceeds? (?:the |the available |maximum )?context (?:length|window|size|limit)/,
      /prompt is too long|input is too long for/,
      /input token count[^\n]{0,60}(?:exceeds the maximum|but model only supports)/,
      // The body exceeds the byte limit, or one string exceeds its own. Ids and names that are too long are format
      // errors.
      /request exceeds the maximum size|'(?:messages|input)\[\d+\]\.content[^']{0,40}': string too long/,
      // OpenAI, 429: one request exceeds the whole limit per minute, so waiting does not help.
      /request too large for [^\n]{0,200}must be reduced/,
      // Anthropic, 429: the account may use the standard context, not the long one.
      /extra usage is required for long context/,
    ],
  },
  {
    kind: "content_blocked",
    words: [
      /content_policy_violation|\bcontent_filter\b|responsibleaipolicyviolation|moderation_blocked/,
      /content management policy|content filtering policy|rejected as a result of our safety system/,
      /flagged as potentially violating|violate our usage polic|\bflagged_input: yes|input was flagged/,
      /\bblockreason: |blocked due to (?:safety|recitation|prohibited|blocklist|other)|\bstop_reason: refusal/,
      /\bfinishreason: (?:\w+_)?(?:safety|recitation|prohibited_content|blocklist|spii)\b/,
    ],
  },
  {
    kind: "billing",
    words: [
      /billing_(?:error|not_active|disabled|hard_limit_reached)|billing hard limit|account is not active/,
      /billing to be enabled|enable billing|payment_required|payment required/,
      /credit balance is too low|specified api usage limits|insufficient balance/,
      /insufficient[_ ]credits|requires more credits|(?:key|budget) limit exceeded/,
      /openrouter_(?:credits|key_limit|guardrail_budget|workspace_budget|free_tier_daily)|free-models-per-day/,
      // Google: a daily quota, or a quota of zero in this plan. Its per-minute quotas use the same sentence.
      /\bquotaid\W{1,6}\w*perday|limit '[^'\n]{0,100}per day|quota exceeded for metric: [^,\n]+, limit: 0\b/,
    ],
  },
  {
    kind: "rate_limit",
    words: [/\bquotaid\W{1,6}\w*perminute/, /exceeded your current quota[\s\S]{0,1000}please retry in \d/],
  },
  { kind: "billing", words: [/insufficient_quota|exceeded your current quota/] },
  {
    kind: "auth_permanent",
    words: [
      /account_deactivated|deactivated account|has been (?:deactivated|revoked|suspended|denied access)/,
      /unsupported_country|territory not supported|location is not supported/,
      /organization has been (?:disabled|restricted)|disabled in this account|reported as leaked/,
      /consumer_suspended|service_disabled/,
    ],
  },
  {
    kind: "model_not_found",
    words: [
      /model_not_found|deploymentnotfound|nosuchmodelerror|invalid_model/,
      /try pulling it first|not a valid model id|invalid model name|does not have access to model/,
      /no endpoints (?:found for|(?:found|available) matching)/,
      /\bmodels?[ /:]\s?['"`]?[\w./:@-]{1,120}['"`]? (?:does not exist|(?:was |is )?not found|is no longer available)/,
      /\bnot_found_error\b[\s\S]{0,80}\bmodel: /,
    ],
  },
  {
    kind: "auth",
    words: [
      /api_key_invalid|invalid_api_key|authentication_error|\bunauthenticated\b|token_expired|loadapikeyerror/,
      /(?:invalid|incorrect) (?:x-)?api[ -]key|api key (?:not valid|not found|expired|is missing)/,
      /didn't provide an api key|unregistered callers|no (?:cookie )?auth credentials|token has expired/,
    ],
  },
  {
    kind: "auth_permanent",
    words: [
      /permission_error|permission_denied|request_forbidden/,
      /insufficient permissions|missing scopes|does not have permission/,
    ],
  },
  {
    kind: "overloaded",
    words: [/overloaded|experiencing high demand|server busy|maximum pending requests|slow_down/],
  },
];

/** Rules for errors without a status: stream events, network faults and errors of client libraries. */
const fallbackRules: readonly ErrorRule[] = [
  { kind: "rate_limit", words: [/rate[_ -]?limit|too many requests|resource_exhausted/] },
  {
    kind: "timeout",
    words: [
      /\bname: (?:aborterror|timeouterror)|timeout_error|deadline[_ ]exceeded|deadline expired/,
      /etimedout|esockettimedout|und_err_(?:headers|body|connect)_timeout/,
      /timed out|request was aborted|operation was aborted/,
    ],
  },
  {
    kind: "format_error",
    words: [
      /invalid_request_error|invalid_argument|failed_precondition/,
      /ai_(?:invalidprompt|invalidargument|invaliddatacontent|messageconversion|unsupportedfunctionality)error/,
    ],
  },
  {
    kind: "server_error",
    words: [
      /server_error|\bapi_error\b|internal server error|\bstatus: internal\b|provider_unavailable/,
      /econnreset|econnrefused|econnaborted|epipe|enotfound|eai_again|enetunreach|ehostunreach|und_err_socket/,
      /socket hang up|fetch failed|failed to fetch|other side closed|connection error|network error/,
      /\bmessage: terminated\n|premature close|unexpected eof|invalid json response|ended without a finish|runner (?:process )?has (?:terminated|unexpectedly)/,
    ],
  },
];

/**
 * Properties in which clients store the HTTP status of the response. `code` is not in the list, because error
 * bodies use it too.
 */
const statusKeys = ["statusCode", "status", "status_code"] as const;
/** Properties that wrap a response's error and are not its body. */
const wrapperKeys = ["lastError", "response", "cause"] as const;
const maxDepth = 4;

/**
 * Returns the HTTP status of the response that an error reports, without regard to the body. `undefined` if there
 * was no response or the error does not report a status. Never throws.
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

/** The kind of an error of a model call, with what a caller needs to react to it. See `classifyError`. */
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
   * B3: whether the model generated nothing, because the response had an error status, or because the provider or
   * its package refused the credential, the account or the model before it executed the request. Another error
   * inside a successful response may have been billed.
   */
  readonly refused: boolean;
  /** The most informative message of the error, cut to a fixed length. Do not compare it: its text may change. */
  readonly message: string;
}

/** Kinds of errors that a provider detects before it executes a request, wherever it reports them. */
const refusals: ReadonlySet<ErrorKind> = new Set(["auth", "auth_permanent", "billing", "model_not_found"]);

export interface ClassifyErrorOptions {
  /** The current time in epoch milliseconds, needed to convert a `Retry-After` date to a wait. */
  readonly now?: number;
}

/**
 * Determines the kind of a thrown value, SDK error, response body or stream error event. Never throws, and reads
 * only a bounded part of its input.
 *
 * - K1: A code or text that proves a kind takes precedence over the status, and the status over other texts.
 * - K2: `auth_permanent` needs proof (blocked, revoked, wrong region, missing permission). Any other 401 or 403 is
 *   `auth`.
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
    refused: (responseStatus(error) ?? 0) >= 400 || refusals.has(kind),
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
