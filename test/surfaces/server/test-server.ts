import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import type { HostedAgent, JsonValue, Runtime, Store } from "../../../src/kernel/index.ts";
import { memoryStore, sha256, type RuntimeOptions } from "../../../src/runtime/index.ts";
import { GatewayDesk } from "../../../src/capabilities/gateway/gateway-desk.ts";
import { GatewayTokens } from "../../../src/capabilities/gateway/gateway-tokens.ts";
import { publicAccess } from "../../../src/surfaces/http/access/access.ts";
import { callerSession } from "../../../src/surfaces/http/caller-session.ts";
import {
  createServer,
  listen,
  storedTokens,
  type Listening,
  type ListenOptions,
  type Server,
  type ServerOptions,
  type Tokens,
} from "../../../src/surfaces/server/index.ts";

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly server: Server;
  readonly tokens: Tokens;
  /** A token with the scope `admin` and no tenant. */
  readonly admin: string;
  readonly errors: unknown[];
  /** Method and path of each request that has reached the server. */
  readonly requests: string[];
  /** Sends a request as a program with a token would. Default token: `admin`. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Creates a token of a tenant. */
  tokenOf(tenantId: string, scope?: "read" | "run" | "admin", userId?: string): Promise<string>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly token?: string | null;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // The tests know the shape of each response and check it.
  readonly json: { readonly [key: string]: JsonValue };
}

export interface TestServerOptions extends Partial<ServerOptions> {
  readonly store?: Store;
  readonly runtimeOptions?: RuntimeOptions;
  readonly listen?: ListenOptions;
}

/** Starts a server on a free port of this machine, with a memory store unless another one is given. */
export async function startServer(
  agents: readonly HostedAgent[],
  options: TestServerOptions = {},
): Promise<TestServer> {
  const { store = memoryStore({ hash: sha256 }), runtimeOptions, listen: listening, ...more } = options;
  const runtime = await openRuntime({ store, ...runtimeOptions });
  const tokens = storedTokens(store.records);
  const errors: unknown[] = [];
  const server = createServer(runtime, {
    agents,
    tokens,
    onError: (error) => void errors.push(error),
    gateway: new GatewayDesk(new GatewayTokens(store.records)),
    ...more,
    limits: { requestsPerSecond: 10_000, requestBurst: 10_000, changesMs: 10, ...more.limits },
  });
  const requests: string[] = [];
  const counting: Server = {
    routes: server.routes,
    needsToken: server.needsToken,
    pageLink: () => server.pageLink(),
    drain: () => server.drain(),
    fetch: (request, bindings) => {
      requests.push(`${request.method} ${new URL(request.url).pathname}`);
      return server.fetch(request, bindings);
    },
  };
  const listens: Listening = await listen(counting, { port: 0, ...listening });
  const { url, port } = listens;
  const { token: admin } = await tokens.create({ name: "test", scope: "admin" });
  return {
    url,
    port,
    runtime,
    store,
    server,
    tokens,
    admin,
    errors,
    requests,
    call: (method, path, { token = admin, ...rest } = {}) =>
      callServer(url, method, path, { token, ...rest }),
    tokenOf: async (tenantId, scope = "run", userId) =>
      (await tokens.create({ name: tenantId, scope, tenantId, ...(userId !== undefined && { userId }) }))
        .token,
    close: async () => {
      await listens.close();
      await runtime.close();
    },
  };
}

/** The id under which the server stores a session that the user ann of acme names. */
export function sessionOfAnn(runtime: Runtime, name: string): Promise<string> {
  const access = { ...publicAccess, tenantId: "acme", userId: "ann" };
  return callerSession({ runtime: runtime.forTenant({ tenantId: "acme", userId: "ann" }), access }, name);
}

async function callServer(
  url: string,
  method: string,
  path: string,
  { token = null, body, headers }: CallOptions,
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    redirect: "manual",
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  const json = (isJson && text !== "" ? JSON.parse(text) : {}) as Answer["json"];
  return { status: response.status, headers: response.headers, text, json };
}
