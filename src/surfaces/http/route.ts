import type { JsonValue, MaybePromise, Runtime } from "../../kernel/index.ts";
import type { Access, Scope } from "./access/access.ts";
import type { ErrorFormat } from "./problem.ts";
import type { Schema, ValueOf } from "./schema/schema.ts";
import type { ServerParts } from "./server-parts.ts";

/** One request to a route, after access and all schemas were checked. */
export interface RouteRequest<Params = unknown, Query = unknown, Body = unknown> {
  /**
   * The runtime as the caller may see it: the view of the tenant and user of the token. For a token without a tenant,
   * which has the scope `admin`, the whole runtime.
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
  /** Ends the connection at once. Absent if the host of the fetch handler offers no way to do it. */
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
 * One route. The server derives the check of the access and of the values, the OpenAPI document and the tests of all
 * routes from it. `createServer(runtime, { routes })` adds routes of other modules to the table.
 */
export interface Route {
  /** Unique name, such as `runs.list`. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with parameters in braces, such as `/api/runs/{runId}`. */
  readonly path: string;
  readonly summary: string;
  /** The scope that the token must have. `null`: the route needs no token. */
  readonly scope: Scope | null;
  /**
   * Whether the handler authenticates requests itself. With `scope: null` only: requests that it refuses as
   * `unauthenticated` share one rate limit, and others are not counted, so that a flood does not affect them. Default: `false`.
   */
  readonly authenticates?: boolean;
  readonly params?: Schema;
  readonly query?: Schema;
  /** The JSON body. If absent, the handler reads the body itself. */
  readonly body?: Schema;
  /** Whether a request may lack the body. The handler then receives an empty object. Default: `false`. */
  readonly isBodyOptional?: boolean;
  /**
   * Whether the body carries input of a run, such as a message with images. Its size is then limited by `maxBodyBytes` of the
   * server instead of `maxCommandBytes`. Default: `false`.
   */
  readonly carriesInput?: boolean;
  /**
   * Maximum number of JSON values of the body: `maxJsonValues` for a body that carries input, otherwise `maxCommandValues`. Each
   * value costs time in every part of the process that reads it.
   */
  readonly maxValues?: number;
  readonly responses: readonly RouteResponse[];
  /** Whether the response is a stream. It counts against the limit of streams and has no end of its own. */
  readonly isStream?: boolean;
  /** Format of all errors of the route. Default: problem+json. */
  readonly errors?: ErrorFormat;
  handle(request: RouteRequest): MaybePromise<RouteResult>;
}

/** A response with its status. A value without a status has the first status of the route. */
export interface Reply {
  readonly status: number;
  readonly value?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a handler returns: a reply, a whole response, or nothing for a response without a body. */
export type RouteResult = Reply | Response | undefined;

type NoValues = Readonly<Record<string, never>>;

declare const values: unique symbol;

/** A route with the types of its values, from which the page derives its requests. */
export interface TypedRoute<Method, Path, Params, Query, Body, Result> extends Route {
  readonly method: Method & Route["method"];
  readonly path: Path & string;
  /** Only the compiler uses this property; no route has it. */
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

/** A reply whose value must have the type of a schema. */
export function reply<Value>(
  of: RouteResponse<Value>,
  value: NoInfer<Value>,
  headers?: Reply["headers"],
): Reply {
  return { status: of.status, value, ...(headers !== undefined && { headers }) };
}
