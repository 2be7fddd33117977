import { request as requestHttp, Agent as HttpAgent, type IncomingMessage } from "node:http";
import { request as requestHttps, Agent as HttpsAgent } from "node:https";
import type { CancelSignal } from "../../kernel/index.ts";
import type { Wire } from "./wire.ts";

/** A provider behind the gateway. */
export interface GatewayUpstream {
  /** Address of the provider, without `/v1`: `https://api.anthropic.com`. */
  readonly baseUrl: string;
  /** The key of the provider. Programs never receive it. */
  readonly apiKey: string;
  /** The provider, by its name in the price list. Default: the name of the wire; `google` for Gemini. */
  readonly provider?: string;
}

/** The name of a provider in the price list. */
export function providerOf(wire: string, { provider }: GatewayUpstream): string {
  return provider ?? (wire === "gemini" ? "google" : wire);
}

/** Headers of a program that reach the provider. Every other header is dropped. */
const sentHeaders = [
  "content-type",
  "accept",
  "user-agent",
  "anthropic-version",
  "anthropic-beta",
  "openai-beta",
];

/** Headers of the provider that reach the program. */
const returnedHeaders =
  /^(content-type|retry-after|request-id|x-request-id|anthropic-ratelimit-.*|x-ratelimit-.*)$/;

/** A connection pool per gateway. No proxy variable and no redirect applies. */
export class Upstreams {
  readonly #http = new HttpAgent({ keepAlive: true });
  readonly #https = new HttpsAgent({ keepAlive: true });

  /** Sends a request and resolves to the answer when its headers have arrived. */
  send(
    wire: Wire,
    { baseUrl, apiKey }: GatewayUpstream,
    path: string,
    headers: Readonly<Record<string, string | readonly string[] | undefined>>,
    body: Uint8Array,
    signal: CancelSignal,
  ): Promise<IncomingMessage> {
    const url = new URL(`${baseUrl.replace(/\/+$/, "")}${path}`);
    const isTls = url.protocol === "https:";
    const sent: Record<string, string | number> = {
      ...wire.authorize(apiKey),
      "accept-encoding": "identity",
      "content-length": body.byteLength,
    };
    for (const name of sentHeaders) {
      const value = headers[name];
      if (typeof value === "string") sent[name] = value;
    }
    return new Promise((resolve, reject) => {
      const options = { method: "POST", headers: sent, agent: isTls ? this.#https : this.#http };
      const outgoing = (isTls ? requestHttps : requestHttp)(url, options, resolve);
      outgoing.once("error", reject);
      const abort = (): void => void outgoing.destroy(new Error("the call was cancelled"));
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort);
      outgoing.once("close", () => signal.removeEventListener("abort", abort));
      outgoing.end(body);
    });
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }
}

export function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const returned: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (typeof value === "string" && returnedHeaders.test(name)) returned[name] = value;
  return returned;
}
