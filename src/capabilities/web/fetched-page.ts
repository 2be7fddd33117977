import type { IncomingMessage } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { Fault, type CancelSignal } from "../../kernel/index.ts";
import { checkedAddress, type AddressCheckOptions, type HostAddress } from "./address-check.ts";
import { canonicalHost, webUrl } from "./host-name.ts";

/** Request for `fetchPage()`. */
export interface PageRequest extends AddressCheckOptions {
  readonly url: string;
  /** Maximum size of the decompressed body in bytes. */
  readonly maxBytes: number;
  readonly maxRedirects: number;
  readonly signal: CancelSignal;
  readonly headers: Readonly<Record<string, string>>;
}

/** Response of `fetchPage()`. */
export interface FetchedPage {
  /** URL after all redirects. */
  readonly url: string;
  /** URL on another host to which the page redirects. It was not fetched. */
  readonly redirect?: string;
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  /** Whether the body was longer than `maxBytes`. */
  readonly isCut: boolean;
  /** URL and IP address of each request, in order. */
  readonly hops: readonly { readonly url: string; readonly address: string }[];
}

const redirects = new Set([301, 302, 303, 307, 308]);

/**
 * Gets a page and follows redirects to the same host. A redirect to another host is returned, because only the host of
 * the request was approved. Each URL is checked, and the connection uses the address that was checked.
 */
export async function fetchPage(request: PageRequest): Promise<FetchedPage> {
  const hops: { url: string; address: string }[] = [];
  let url = webUrl(request.url);
  const { origin } = url;
  for (;;) {
    request.signal.throwIfAborted();
    const at = await checkedAddress(url, request);
    hops.push({ url: url.href, address: at.address });
    const response = await answer(
      url,
      at,
      url.origin === origin ? request : { ...request, headers: elsewhere(request) },
    );
    const status = response.statusCode ?? 0;
    const { location } = response.headers;
    if (!redirects.has(status) || location === undefined) {
      const { body, isCut } = await read(await unpacked(response), response, request);
      const contentType = response.headers["content-type"] ?? "";
      return { url: url.href, status, contentType, body, isCut, hops };
    }
    response.destroy();
    const next = webUrl(location, url);
    if (canonicalHost(next) !== canonicalHost(url))
      return { ...emptyPage, url: url.href, redirect: next.href, status, hops };
    if (hops.length > request.maxRedirects)
      throw new Fault("tool_failed", `${request.url} redirects more than ${request.maxRedirects} times`);
    url = next;
  }
}

const emptyPage = { contentType: "", body: Buffer.alloc(0), isCut: false } as const;

/** Returns the headers for a request to another origin: only those that contain no data of the caller. */
function elsewhere({ headers }: PageRequest): PageRequest["headers"] {
  const harmless = Object.entries(headers).filter(([name]) =>
    /^(?:user-agent|accept(?:-language)?)$/iu.test(name),
  );
  return Object.fromEntries(harmless);
}

/**
 * Sends one request. It uses no keep-alive agent, whose open connection to the same host may lead to another address.
 */
async function answer(url: URL, at: HostAddress, { signal, headers }: PageRequest): Promise<IncomingMessage> {
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      agent: false,
      signal,
      headers: { ...headers, "accept-encoding": "identity" },
      // The checked address is the answer to every lookup of the host name.
      lookup: (_hostname, options, give) => {
        if (options.all === true) give(null, [at]);
        else give(null, at.address, at.family);
      },
    });
    asked.once("response", resolve);
    asked.once("error", (error) => {
      if (signal.aborted) reject(signal.reason as Error);
      else
        reject(new Fault("tool_failed", `${url.host} cannot be reached: ${error.message}`, { cause: error }));
    });
    asked.end();
  });
}

/** Decompresses the body of a response, because some servers ignore `accept-encoding: identity`. */
async function unpacked(response: IncomingMessage): Promise<Readable> {
  const coding = response.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (coding === "identity" || coding === "") return response;
  const { createBrotliDecompress, createGunzip, createInflate } = await import("node:zlib");
  const make = {
    gzip: createGunzip,
    "x-gzip": createGunzip,
    deflate: createInflate,
    br: createBrotliDecompress,
  }[coding];
  // If the response breaks off, the decompressor ends as well, and the reader gets the error.
  if (make !== undefined) return pipeline(response, make(), () => {});
  response.destroy();
  throw new Fault("unsupported", `the response is encoded as ${coding}, which cannot be decoded`);
}

/** Reads the body and stops at the limit, because a small compressed body may decompress to an endless one. */
async function read(
  stream: Readable,
  response: IncomingMessage,
  { maxBytes, signal }: PageRequest,
): Promise<{ readonly body: Buffer; readonly isCut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) break;
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new Fault("tool_failed", `the response broke off after ${size} bytes`, { cause: error });
  } finally {
    response.destroy();
    stream.destroy();
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), isCut: size > maxBytes };
}
