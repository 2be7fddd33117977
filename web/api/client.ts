import { visibleText } from "../../src/kernel/index.ts";
import type {
  Body,
  Method,
  PathOf,
  Query,
  RequestValues,
  Result,
} from "../../src/surfaces/server/route-values.ts";
import { nameAgents } from "../../src/surfaces/view/agent-names.ts";
import { addressOf } from "../../src/surfaces/view/request-address.ts";

export { addressOf, type Body, type Query, type Result };

/** An error of a request: a refusal by the server, with its fault code, or `offline` if the server did not answer. */
export class RequestError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    status: number,
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

/** Sends a request. Paths, values and the result have the types of the server's schemas. */
async function request<M extends Method, Path extends string>(
  method: M,
  path: Path,
  values: RequestValues<M, Path> = {},
): Promise<Result<M, Path>> {
  const { params, query, body, signal } = values;
  const url = addressOf(path, { ...params }, { ...query });
  const response = await answer(url, {
    method,
    credentials: "same-origin",
    ...(signal !== undefined && { signal }),
    ...(body !== undefined && {
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    }),
  });
  const text = await response.text();
  const value: unknown = text === "" ? undefined : JSON.parse(text);
  if (!response.ok) throw refusal(response.status, value);
  return nameAgents(value) as Result<M, Path>;
}

export function get<Path extends PathOf<"GET">>(
  path: Path,
  values: RequestValues<"GET", Path> = {},
): Promise<Result<"GET", Path>> {
  return request("GET", path, values);
}

export function patch<Path extends PathOf<"PATCH">>(
  path: Path,
  values: RequestValues<"PATCH", Path> = {},
): Promise<Result<"PATCH", Path>> {
  return request("PATCH", path, values);
}

export function post<Path extends PathOf<"POST">>(
  path: Path,
  values: RequestValues<"POST", Path> = {},
): Promise<Result<"POST", Path>> {
  return request("POST", path, values);
}

export function put<Path extends PathOf<"PUT">>(
  path: Path,
  values: RequestValues<"PUT", Path> = {},
): Promise<Result<"PUT", Path>> {
  return request("PUT", path, values);
}

export function remove<Path extends PathOf<"DELETE">>(
  path: Path,
  values: RequestValues<"DELETE", Path> = {},
): Promise<Result<"DELETE", Path>> {
  return request("DELETE", path, values);
}

async function answer(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    throw new RequestError("offline", "The server does not answer.", 0);
  }
}

function refusal(status: number, value: unknown): RequestError {
  const problem = (typeof value === "object" && value !== null ? value : {}) as {
    readonly code?: string;
    readonly detail?: string;
    readonly details?: Readonly<Record<string, unknown>>;
  };
  const { code = "internal", detail = `The server answered with status ${status}.`, details = {} } = problem;
  return new RequestError(code, detail, status, details);
}

/** Returns the text that a person sees for an error. */
export function errorText(error: unknown): string {
  // An error quotes names and texts of others.
  return visibleText(error instanceof Error ? error.message : String(error));
}
