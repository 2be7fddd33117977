import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Fault, readProperty, type MaybePromise } from "../kernel/index.ts";

/** A running scorer, with its refused requests. */
interface Watched {
  readonly scorer: string;
  refused: Fault | undefined;
}

const watched = new AsyncLocalStorage<Watched>();
let watchers = 0;
/** Whether no code of this process may send a request. */
let isOffline = false;

/**
 * Matches a token of the gateway. The gateway reserves the possible cost of a request before it sends it, or
 * refuses it.
 */
const gatewayToken = /\brvg_[\w-]{43}/u;

/**
 * Runs a scorer that must not spend money that no ledger counts. HTTP requests of `fetch` and `node:http` without a
 * gateway token are refused before they are sent. The work then fails, even if the scorer catches the error. Child
 * processes, worker threads, HTTP/2 and plain sockets are not checked.
 */
export async function withoutOutsideCalls<Value>(
  scorer: string,
  work: () => MaybePromise<Value>,
): Promise<Value> {
  const state: Watched = { scorer, refused: undefined };
  watch();
  try {
    const value = await watched.run(state, async () => work());
    if (state.refused === undefined) return value;
  } catch (error) {
    throw state.refused ?? error;
  } finally {
    unwatch();
  }
  throw state.refused;
}

/**
 * Refuses all HTTP requests of this process, for experiments that must need no network. The returned function
 * allows requests again.
 */
export function refuseRequests(): () => void {
  isOffline = true;
  watch();
  return () => {
    isOffline = false;
    unwatch();
  };
}

function watch(): void {
  watchers += 1;
  if (watchers > 1) return;
  subscribe("undici:request:create", refuseFetch);
  subscribe("http.client.request.created", refuseRequest);
}

function unwatch(): void {
  watchers -= 1;
  if (watchers > 0) return;
  unsubscribe("undici:request:create", refuseFetch);
  unsubscribe("http.client.request.created", refuseRequest);
}

/** Refuses a request of `fetch`. Its `onError` ends it before a connection is used. */
function refuseFetch(message: unknown): void {
  const request = readProperty(message, "request");
  const headers = readProperty(request, "headers");
  const text = Array.isArray(headers) ? headers.join("\n") : String(headers);
  const fault = refusal(String(readProperty(request, "origin")), text);
  const end = readProperty(request, "onError");
  if (fault !== undefined && typeof end === "function") Reflect.apply(end, request, [fault]);
}

/** Refuses a request of `node:http` or `node:https`. */
function refuseRequest(message: unknown): void {
  const request = readProperty(message, "request");
  const destroy = readProperty(request, "destroy");
  const headers = readProperty(request, "getHeaders");
  if (typeof destroy !== "function" || typeof headers !== "function") return;
  const sent = Object.values(Reflect.apply(headers, request, []) as Record<string, unknown>);
  const fault = refusal(String(readProperty(request, "host")), sent.map(String).join("\n"));
  if (fault !== undefined) Reflect.apply(destroy, request, [fault]);
}

/** Returns the error of a request, or `undefined` for one that may be sent. */
function refusal(address: string, headers: string): Fault | undefined {
  if (isOffline)
    return new Fault(
      "permission_denied",
      `a request to ${address} is refused, because --offline allows none; use a scripted or a recorded model, or leave the option out`,
    );
  const state = watched.getStore();
  if (state === undefined || gatewayToken.test(headers)) return undefined;
  state.refused ??= new Fault(
    "permission_denied",
    `scorer ${state.scorer} sent a request to ${address}, and the budget of the experiment cannot count what that costs; use judge(), a scorer with ctx.agent(), or a client that points at the gateway with a token of reeve gateway token`,
  );
  return state.refused;
}
