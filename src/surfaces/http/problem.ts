import { modelErrorKind, type Fault, type FaultCode } from "../../kernel/index.ts";
import {
  anyObject,
  integer,
  named,
  object,
  optional,
  text,
  type Schema,
  type ValueOf,
} from "./schema/schema.ts";

/** The HTTP status of each fault. A fault that is not listed is an error of the server: 500. */
const statuses: { readonly [Code in FaultCode]?: number } = {
  invalid_argument: 400,
  not_json: 400,
  model_not_found: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  tool_not_found: 404,
  already_exists: 409,
  update_refused: 409,
  agent_busy: 409,
  cancelled: 409,
  budget_exhausted: 409,
  version_mismatch: 409,
  context_missing: 409,
  too_large: 413,
  guardrail_tripped: 422,
  rate_limited: 429,
  unsupported: 501,
  dependency_missing: 501,
  closed: 503,
  store_unavailable: 503,
  store_read_only: 503,
  store_lost: 503,
  store_full: 507,
};

function statusOf(code: FaultCode): number {
  return statuses[code] ?? (modelErrorKind(code) === undefined ? 500 : 502);
}

/** A problem as in RFC 9457. The fault code is in `code`, and in `type` as a URN. */
const problemSchema = named(
  "Problem",
  object({
    type: text({ description: "urn:reeve:fault: and the code." }),
    title: text({ description: "The code in words." }),
    status: integer(),
    detail: text({ description: "What is wrong, where, and how to fix it." }),
    code: text({ description: "The fault code. Compare this, not the texts." }),
    details: optional(anyObject()),
  }),
);

/** What a caller learns about an error. */
export type Problem = ValueOf<typeof problemSchema>;

/**
 * Defines how the routes of a protocol write errors. Every error of the route has this format, including the error
 * for a missing token.
 */
export interface ErrorFormat {
  readonly contentType: string;
  readonly schema: Schema;
  /** Returns the body of an error. */
  body(problem: Problem): unknown;
  /** Returns the HTTP status of an error. Default: the status of the problem. */
  status?(problem: Problem): number;
}

/** The format of routes that name no other. */
export const problemFormat: ErrorFormat = Object.freeze({
  contentType: "application/problem+json",
  schema: problemSchema,
  body: (problem: Problem) => problem,
});

interface ErrorOptions {
  /** Default: the status of the fault's code. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The response for a fault. */
export function errorResponse(
  fault: Fault,
  format: ErrorFormat = problemFormat,
  { status: own, headers = {} }: ErrorOptions = {},
): Response {
  const problem = problemOf(fault, own);
  const status = format.status?.(problem) ?? problem.status;
  return new Response(JSON.stringify(format.body({ ...problem, status })), {
    status,
    headers: { ...extraHeaders(fault), ...headers, "content-type": format.contentType },
  });
}

/**
 * Returns the data about a fault that a caller receives. The text of an unexpected error may contain secrets, so
 * the caller receives only its code; the server reports the text to `onError`.
 */
export function problemOf(fault: Fault, status: number = statusOf(fault.code)): Problem {
  const { message, details } = fault.toJSON();
  const isOurs = fault.code !== "internal";
  return {
    type: `urn:reeve:fault:${fault.code}`,
    title: fault.code.replaceAll("_", " "),
    status,
    detail: isOurs ? message : "an internal error; the log of the server has the details",
    code: fault.code,
    ...(isOurs && details !== undefined && { details }),
  };
}

function extraHeaders({ code, details }: Fault): Record<string, string> {
  if (code === "unauthenticated") return { "www-authenticate": 'Bearer realm="reeve"' };
  // The rest of the body may not have been read, so that the connection cannot be used again.
  if (code === "too_large") return { connection: "close" };
  const retryAfter = details?.["retryAfter"];
  if (typeof retryAfter === "number") return { "retry-after": String(retryAfter) };
  return code === "closed" || code === "store_unavailable" ? { "retry-after": "1" } : {};
}
