import type { TypedRoute } from "../http/route.ts";
import type { ServerRoute } from "./routes/table.ts";

/** The method of a route of the server. */
export type Method = ServerRoute["method"];
type RouteOf<M extends Method, Path> = Extract<ServerRoute, { readonly method: M; readonly path: Path }>;
/** The path of a server route, with its parameters in braces. */
export type PathOf<M extends Method> = Extract<ServerRoute, { readonly method: M }>["path"];
type ValuesOf<Of> =
  Of extends TypedRoute<unknown, unknown, infer P, infer Q, infer B, infer R>
    ? { readonly params: P; readonly query: Q; readonly body: B; readonly result: R }
    : never;

/** The value that a server route returns. */
export type Result<M extends Method, Path extends string> = ValuesOf<RouteOf<M, Path>>["result"];
/** The query that a server route accepts. */
export type Query<M extends Method, Path extends string> = ValuesOf<RouteOf<M, Path>>["query"];
/** The JSON body that a server route accepts. */
export type Body<M extends Method, Path extends string> = ValuesOf<RouteOf<M, Path>>["body"];

/** The values of a request. Clients of the server (the page, `reeve chat`) derive these types from its routes. */
export interface RequestValues<M extends Method, Path extends string> {
  readonly params?: ValuesOf<RouteOf<M, Path>>["params"];
  readonly query?: ValuesOf<RouteOf<M, Path>>["query"];
  readonly body?: Body<M, Path>;
  readonly signal?: AbortSignal;
}
