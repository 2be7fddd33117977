import { request as requestHttp, Agent as HttpAgent, type IncomingMessage } from "node:http";
import { request as requestHttps, Agent as HttpsAgent } from "node:https";
import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import type { CancelSignal } from "../../kernel/index.ts";
import type { OutputLimitName, Wire } from "./wire.ts";

/** A provider behind the gateway. */
export interface GatewayUpstream {
  /** Address of the provider, without `/v1`: `https://api.anthropic.com`. */
  readonly baseUrl: string;
  /** The key of the provider. Programs never receive it. */
  readonly apiKey: string;
  /** The provider, by its name in the price list. Default: the name of the protocol (wire), or `google` for Gemini. */
  readonly provider?: string;
  /**
   * The member of Chat Completions in which the provider reads an output limit. It matters because a provider
   * ignores an unknown member. Default: `max_completion_tokens` for `openai` and `azure`, and `max_tokens` for
   * other providers.
   */
  readonly outputLimit?: OutputLimitName;
  /** Whether `baseUrl` may be an http address of another machine, which would receive the key unencrypted. Default: `false`. */
  readonly allowHttp?: boolean;
}

/** Returns the member of Chat Completions by which a provider knows an output limit. */
export function outputLimitOf({ provider = "openai", outputLimit }: GatewayUpstream): OutputLimitName {
  const isOpenAi = provider === "openai" || provider.startsWith("azure");
  return outputLimit ?? (isOpenAi ? "max_completion_tokens" : "max_tokens");
}

/** A request that did not reach the provider, because no connection could be opened. */
export class UnsentError extends Error {}

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
  /^(content-type|content-encoding|retry-after|request-id|x-request-id|anthropic-ratelimit-.*|x-ratelimit-.*)$/;

/**
 * How long a connection without a request stays open, in milliseconds. It must be short: if the provider closes the
 * connection just when a request is sent, the call is lost and charged. Servers of models close after 5 seconds or
 * more. Node closes earlier if a provider announces a shorter time.
 */
const idleMs = 4_000;

/** The connections of one gateway to providers. Proxy variables and redirects have no effect on them. */
export class Upstreams {
  readonly #http = new HttpAgent({ keepAlive: true, timeout: idleMs });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: idleMs });

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
      let isConnected = false;
      outgoing.once("socket", (socket) => {
        // A socket of an earlier request is connected already.
        isConnected = outgoing.reusedSocket;
        if (!isConnected) socket.once(isTls ? "secureConnect" : "connect", () => (isConnected = true));
      });
      outgoing.once("error", (error) => {
        reject(isConnected || signal.aborted ? error : new UnsentError(error.message, { cause: error }));
      });
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

/** The answer of a provider for the program: the headers that the program may see, and the content. */
export interface ProviderAnswer {
  readonly headers: Record<string, string>;
  readonly content: AsyncIterable<Buffer>;
}

const decompressions: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** Reads an answer. If it is compressed although the request did not ask for this, it is decompressed. */
export function answerOf(answer: IncomingMessage): ProviderAnswer {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers))
    if (typeof value === "string" && returnedHeaders.test(name)) headers[name] = value;
  const open = decompressions[headers["content-encoding"] ?? ""];
  if (open === undefined) return { headers, content: answer };
  delete headers["content-encoding"];
  const content = open();
  // An error of either stream ends the content with it.
  pipeline(answer, content, () => undefined);
  return { headers, content };
}
