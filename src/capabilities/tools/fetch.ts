import { Fault, type JsonValue, type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import type { AddressCheckOptions } from "../web/address-check.ts";
import { canonicalHost, hostList, webUrl } from "../web/host-name.ts";
import { pageText } from "../web/page-text.ts";
import { errorResult, fileResult, imageResult, textResult } from "./tool-result.ts";
import { durationKind, tool } from "./tool.ts";

/** Options of `fetchTool()`. */
export interface FetchToolOptions extends AddressCheckOptions {
  /**
   * Hosts that are fetched without a person's approval: `example.com`, `example.com:8080`, `*.example.com` for all names
   * below it, or `*` for all hosts. Where no person can be asked, only these hosts are reachable. Default: none.
   */
  readonly allow?: readonly string[];
  /** Maximum size of the decompressed body in bytes. Default: 5 MiB. */
  readonly maxBytes?: number;
  /** Maximum length of the text that the model sees, in characters. Default: 50_000. */
  readonly maxText?: number;
  /** Maximum duration of a call, in milliseconds. Default, also for `null`: 30_000. */
  readonly timeoutMs?: number | null;
  /** Maximum number of redirects of one call, all to the same host. Default: 5. */
  readonly maxRedirects?: number;
  /**
   * Headers of every request. They are sent to every approved host, so that they must not be secret. After a
   * redirect to another scheme, only the following of them are sent: `user-agent`, `accept` and `accept-language`.
   */
  readonly headers?: Readonly<Record<string, string>>;
}

const input = {
  type: "object",
  properties: {
    url: { type: "string", description: "An http or https URL" },
    raw: { type: "boolean", description: "Return the HTML source instead of its text" },
  },
  required: ["url"],
  additionalProperties: false,
} as const;

const shownImages = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

const defaultMs = 30_000;

const knownOptions = optionTable({
  allow: is.list({ of: is.text() }),
  maxBytes: is.number({ from: 0 }),
  maxText: is.number({ from: 0, default: 50_000 }),
  timeoutMs: durationKind(defaultMs),
  maxRedirects: is.number({ from: 0, default: 5 }),
  headers: is.any,
  allowPrivate: is.any,
  resolve: is.any,
} satisfies OptionKinds<FetchToolOptions>);

/**
 * Creates the tool `fetch`, which gets a page of the public internet. A person approves each host once, unless it is in `allow` or the
 * permissions allow the call. A redirect to another host is returned to the model and not followed. Every address to which the host name
 * resolves is checked, at every redirect, and the connection uses the address that was checked. Proxies from the environment are ignored,
 * because they would resolve names themselves.
 *
 * @example
 * ```ts
 * import { fetchTool } from "reeve/tools";
 *
 * const fetchPage = fetchTool({ allow: ["docs.example.com"], maxText: 20_000 });
 * ```
 */
export function fetchTool(options: FetchToolOptions = {}): Tool {
  const {
    maxBytes = 5 * 1024 * 1024,
    maxText,
    timeoutMs: limitMs,
    maxRedirects,
  } = knownOptions.read("fetchTool()", options);
  const timeoutMs = limitMs ?? defaultMs;
  const headers = { "user-agent": "reeve", accept: "text/html, text/*;q=0.9, */*;q=0.5", ...options.headers };
  const isAllowed = hostList(options.allow ?? []);
  const page = tool({
    name: "fetch",
    description: `Get a web page and return its text (at most ${maxText} characters), an image or a PDF. Only GET requests to public addresses. A redirect to another host is not followed: its URL is returned.`,
    inputSchema: input,
    // The call changes nothing, but the URL itself can carry data out.
    risk: "high",
    destructive: false,
    timeoutMs: timeoutMs + 5_000,
    approvalScope: ({ url }) => {
      const host = canonicalHost(webUrl(url));
      return isAllowed(host) ? null : host;
    },
    execute: async ({ url, raw = false }, { signal: stop }) => {
      const late = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([stop, late]);
      try {
        // Loaded on first use, so that importing the tools loads no network module.
        const { fetchPage } = await import("../web/fetched-page.ts");
        const found = await fetchPage({ ...options, url, maxBytes, maxRedirects, signal, headers });
        const { body, status, contentType, isCut, redirect } = found;
        const mediaType = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
        const metadata = { url: found.url, status, contentType, bytes: body.length, isCut, hops: found.hops };
        if (redirect !== undefined)
          return textResult(
            `[status ${status}] ${found.url} redirects to another host, which was not fetched. To follow it, call fetch with ${redirect}`,
            { ...metadata, redirect },
          );
        if (!isCut && status === 200 && shownImages.has(mediaType))
          return imageResult(body, mediaType, { metadata });
        if (!isCut && status === 200 && mediaType === "application/pdf")
          return fileResult(body, mediaType, { metadata });
        if (!isText(mediaType))
          return errorResult(
            `${found.url} has the type ${mediaType || "unknown"} and ${body.length} bytes: it cannot be shown as text`,
            metadata,
          );
        const text = decoded(body, contentType);
        const whole = mediaType.includes("html") && !raw ? pageText(text) : text;
        const cut = isCut || whole.length > maxText ? `\n[cut: ${body.length} bytes were read]` : "";
        const shown = `${whole.slice(0, maxText).toWellFormed()}${cut}`;
        const isGood = status >= 200 && status < 300;
        return isGood ? textResult(shown, metadata) : errorResult(`[status ${status}]\n${shown}`, metadata);
      } catch (error) {
        if (late.aborted && !stop.aborted)
          throw new Fault("tool_timeout", `${url} took longer than ${timeoutMs} ms`, { cause: error });
        throw error;
      }
    },
  });
  // Rules and people judge the URL that is fetched, whichever way the model wrote it.
  const parse = async (sent: JsonValue): Promise<FetchInput> => {
    const given = await page.parse(sent);
    return { ...given, url: webUrl(given.url).href };
  };
  return Object.freeze({ ...page, parse });
}

interface FetchInput {
  readonly url: string;
  readonly raw?: boolean;
}

function isText(mediaType: string): boolean {
  return (
    mediaType === "" ||
    mediaType.startsWith("text/") ||
    /^application\/(?:[\w.-]+\+)?(?:json|xml|javascript|yaml|x-ndjson)$/.test(mediaType) ||
    mediaType === "image/svg+xml"
  );
}

function decoded(body: Uint8Array, contentType: string): string {
  const label = /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  return decoderFor(label).decode(body);
}

/** Returns the decoder of a charset. An unknown charset is read as UTF-8. */
function decoderFor(label: string): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(label);
  } catch {
    // The constructor throws only for an unknown label.
    return new TextDecoder();
  }
}
