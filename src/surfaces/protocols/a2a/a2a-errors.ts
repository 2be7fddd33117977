import { Fault, type FaultCode, type JsonObject, type JsonValue } from "../../../kernel/index.ts";
import { problemOf, type ErrorFormat, type Problem } from "../../http/problem.ts";
import { integer, list, named, object, optional, schemaOf, text } from "../../http/schema/schema.ts";

/** Id of a request of JSON-RPC. `null` if the request could not be read. */
export type RpcId = string | number | null;

/** The errors of A2A by their reason, with their codes of JSON-RPC. */
const codes = {
  PARSE_ERROR: -32_700,
  INVALID_REQUEST: -32_600,
  METHOD_NOT_FOUND: -32_601,
  INVALID_PARAMS: -32_602,
  TASK_NOT_FOUND: -32_001,
  TASK_NOT_CANCELABLE: -32_002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32_003,
  UNSUPPORTED_OPERATION: -32_004,
  CONTENT_TYPE_NOT_SUPPORTED: -32_005,
  VERSION_NOT_SUPPORTED: -32_009,
} as const;

type Reason = keyof typeof codes;

/** The code of faults that A2A has no error for. The reason names the fault. */
const otherCode = -32_000;

const reasons: Readonly<Partial<Record<string, Reason>>> = {
  not_json: "PARSE_ERROR",
  invalid_argument: "INVALID_PARAMS",
  already_exists: "INVALID_PARAMS",
  not_found: "TASK_NOT_FOUND",
} satisfies Partial<Record<FaultCode, Reason>>;

/** An error of A2A. Its code of JSON-RPC follows from the reason. */
export function a2aFault(reason: Reason, message: string, details: JsonObject = {}): Fault {
  const code = reason === "TASK_NOT_FOUND" ? "not_found" : "invalid_argument";
  return new Fault(code, message, { details: { ...details, reason } });
}

const errorSchema = named(
  "A2aError",
  object({
    jsonrpc: schemaOf<string>({ const: "2.0" }),
    id: schemaOf<RpcId>({ type: ["string", "integer", "null"] }),
    error: object({
      code: integer({ description: "The code of the error, as A2A and JSON-RPC number them." }),
      message: text({ description: "What is wrong, where, and how to fix it." }),
      data: optional(list(schemaOf<JsonObject>({ type: "object" }))),
    }),
  }),
);

/** Writes errors as A2A does over JSON-RPC. Errors of requests that could be read have the id of the request. */
export const a2aErrors: ErrorFormat = Object.freeze({
  contentType: "application/json",
  schema: errorSchema,
  body: (problem: Problem) => errorBody(null, problem),
});

/** The error of a request in the form of JSON-RPC, with the details that A2A asks for. */
function errorBody(id: RpcId, { code, detail, details = {} }: Problem): JsonObject {
  const { reason: own, ...metadata } = details;
  const reason = typeof own === "string" ? own : (reasons[code] ?? code.toUpperCase());
  const info = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason,
    domain: "a2a-protocol.org",
    // The code of the fault, for clients that know Reeve.
    metadata: { ...textsOf(metadata), fault: code },
  };
  return {
    jsonrpc: "2.0",
    id,
    error: { code: reason in codes ? codes[reason as Reason] : otherCode, message: detail, data: [info] },
  };
}

/** The metadata of an error may contain only texts. */
function textsOf(details: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [name, typeof value === "string" ? value : textOf(value)]),
  );
}

function textOf(value: JsonValue): string {
  return JSON.stringify(value);
}

/** The error of a request that was read, with its id. */
export function rpcError(id: RpcId, fault: Fault): JsonObject {
  return errorBody(id, problemOf(fault));
}

/**
 * The response to a request that was read and fails. Clients of JSON-RPC read the error from a response with the status 200;
 * a failure of the server and a refusal because of its load keep their status, because proxies and clients act on it.
 */
export function rpcFailure(id: RpcId, fault: Fault): Response {
  const { status } = problemOf(fault);
  return Response.json(rpcError(id, fault), {
    status: status >= 500 || status === 429 ? status : 200,
    ...(fault.code === "closed" && { headers: { "retry-after": "1" } }),
  });
}
