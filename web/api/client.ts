import { visibleText } from "../../src/kernel/index.ts";
import type { ServerRoute } from "../../src/surfaces/server/routes/table.ts";
import type { TypedRoute } from "../../src/surfaces/http/route.ts";
import { nameAgents } from "./agent-names.ts";

type Method = ServerRoute["method"];
type RouteOf<M extends Method, Path> = Extract<ServerRoute, { readonly method: M; readonly path: Path }>;
type PathOf<M extends Method> = Extract<ServerRoute, { readonly method: M }>["path"];
type ValuesOf<Of> =
  Of extends TypedRoute<unknown, unknown, infer P, infer Q, infer B, infer R>
    ? { readonly params: P; readonly query: Q; readonly body: B; readonly result: R }
    : never;

/** The value that a route of the server returns. */
export type Result<M extends Method, Path extends string> = ValuesOf<RouteOf<M, Path>>["result"];
/** The query that a route of the server accepts. */
export type Query<M extends Method, Path extends string> = ValuesOf<RouteOf<M, Path>>["query"];
/** The JSON body that a route of the server accepts. */
export type Body<M extends Method, Path extends string> = ValuesOf<RouteOf<M, Path>>["body"];

interface RequestValues<M extends Method, Path extends string> {
  readonly params?: ValuesOf<RouteOf<M, Path>>["params"];
  readonly query?: ValuesOf<RouteOf<M, Path>>["query"];
  readonly body?: Body<M, Path>;
  readonly signal?: AbortSignal;
}

/** A refusal of the server, with its fault code, or `offline` if the server did not answer. */
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

type Values = Readonly<Record<string, unknown>>;

/** The address of a route: path parameters are encoded, and a list in the query is repeated. */
export function addressOf(path: string, params: Values = {}, query: Values = {}): string {
  const filled = path.replaceAll(/\{(\w+)\}/gu, (_brace, name: string) =>
    encodeURIComponent(String(params[name])),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value])
      if (typeof each === "string" || typeof each === "number" || typeof each === "boolean")
        search.append(name, String(each));
  const text = search.toString();
  return text === "" ? filled : `${filled}?${text}`;
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
    readonly details?: Values;
  };
  const { code = "internal", detail = `The server answered with status ${status}.`, details = {} } = problem;
  return new RequestError(code, detail, status, details);
}

/** The words that a person sees for an error. */
export function errorText(error: unknown): string {
  // An error quotes names and texts of others.
  return visibleText(error instanceof Error ? error.message : String(error));
}
