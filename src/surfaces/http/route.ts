import type { JsonValue, MaybePromise, Runtime } from "../../kernel/index.ts";
import type { Access, Scope } from "./access/access.ts";
import type { ErrorFormat } from "./problem.ts";
import type { Schema, ValueOf } from "./schema/schema.ts";
import type { ServerParts } from "./server-parts.ts";

/** One request to a route, after access and all schemas were checked. */
export interface RouteRequest<Params = unknown, Query = unknown, Body = unknown> {
  /**
   * The runtime restricted to the data that the caller may see: those of the token's tenant and user. For a token
   * without a tenant, which has the scope `admin`, this is the whole runtime.
   */
  readonly runtime: Runtime;
  readonly access: Access;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** The request. Its body is limited in size, and is unread only if the route declares no `body`. */
  readonly request: Request;
  /** What all routes of the server share. */
  readonly server: ServerParts;
  /** Closes the connection immediately. Absent if the host of the fetch handler cannot do this. */
  readonly disconnect?: () => void;
}

/** One kind of response of a route. */
export interface RouteResponse<Value = unknown> {
  readonly status: number;
  readonly description: string;
  /** If absent, the response has no body. */
  readonly schema?: Schema<Value>;
  /** Default: `application/json`. */
  readonly contentType?: string;
}

/**
 * One route. From this data the server derives the checks of access and values, the OpenAPI document, and the tests
 * of all routes. `createServer(runtime, { routes })` adds routes of other modules to the table.
 */
export interface Route {
  /** Unique name, such as `runs.list`. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with parameters in braces, such as `/api/runs/{runId}`. */
  readonly path: string;
  readonly summary: string;
  /** The scope that the token must have. `null` if the route needs no token. */
  readonly scope: Scope | null;
  /**
   * Whether the handler authenticates requests itself. Only allowed with `scope: null`. Requests that the handler
   * refuses as `unauthenticated` share one rate limit. Other requests are not counted, so that a flood of refused
   * requests does not affect them. Default: `false`.
   */
  readonly authenticates?: boolean;
  readonly params?: Schema;
  readonly query?: Schema;
  /** Schema of the JSON body. If absent, the handler reads the body itself. */
  readonly body?: Schema;
  /** Whether the body may be absent. The handler then receives an empty object. Default: `false`. */
  readonly isBodyOptional?: boolean;
  /**
   * Whether the body contains input of a run, such as a message with images. Its size is then limited by
   * `maxBodyBytes` of the server instead of `maxCommandBytes`. Default: `false`.
   */
  readonly carriesInput?: boolean;
  /**
   * Maximum number of JSON values of the body. Default: `maxJsonValues` for a body with run input, otherwise
   * `maxCommandValues`. The number is limited because each value takes time in every part of the process that reads
   * it.
   */
  readonly maxValues?: number;
  readonly responses: readonly RouteResponse[];
  /** Whether the response is a stream. A stream is counted for the limit of open streams, and remains open. */
  readonly isStream?: boolean;
  /** Format of all errors of the route. Default: problem+json (RFC 9457). */
  readonly errors?: ErrorFormat;
  handle(request: RouteRequest): MaybePromise<RouteResult>;
}

/** A response with its status. A value without a status is sent with the first status of the route. */
export interface Reply {
  readonly status: number;
  readonly value?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The return value of a handler: a reply, a complete response, or nothing for a response without a body. */
export type RouteResult = Reply | Response | undefined;

type NoValues = Readonly<Record<string, never>>;

declare const values: unique symbol;

/** A route with the types of its values. The page derives its requests from these types. */
export interface TypedRoute<Method, Path, Params, Query, Body, Result> extends Route {
  readonly method: Method & Route["method"];
  readonly path: Path & string;
  /** Exists only for the compiler; no route object has this property. */
  readonly [values]?: {
    readonly params: Params;
    readonly query: Query;
    readonly body: Body;
    readonly result: Result;
  };
}

/** The value of each response of a route. `undefined` for a response without a body. */
type ResultOf<Response> = Response extends { readonly schema: Schema<infer Value> } ? Value : undefined;

interface RouteOptions<
  Method,
  Path,
  P extends Schema,
  Q extends Schema,
  B extends Schema,
  R extends readonly RouteResponse[],
> extends Omit<Route, "method" | "path" | "params" | "query" | "body" | "responses" | "handle"> {
  readonly method: Method;
  readonly path: Path;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly responses: R;
  handle(request: RouteRequest<ValueOf<P>, ValueOf<Q>, ValueOf<B>>): MaybePromise<RouteResult>;
}

/** Declares a route. The handler receives values of the types that the schemas describe. */
export function route<
  const Method extends Route["method"],
  const Path extends string,
  const R extends readonly RouteResponse[],
  P extends Schema = Schema<NoValues>,
  Q extends Schema = Schema<NoValues>,
  B extends Schema = Schema<JsonValue>,
>(
  options: RouteOptions<Method, Path, P, Q, B, R>,
): TypedRoute<Method, Path, ValueOf<P>, ValueOf<Q>, ValueOf<B>, ResultOf<R[number]>> {
  // The server validates all values with the schemas before it calls the handler.
  return options;
}

/** Creates a reply whose value must have the type of a schema. */
export function reply<Value>(
  of: RouteResponse<Value>,
  value: NoInfer<Value>,
  headers?: Reply["headers"],
): Reply {
  return { status: of.status, value, ...(headers !== undefined && { headers }) };
}
