import { checkOptions, Fault, optionNames, type Tool } from "../../kernel/index.ts";
import type { AddressCheckOptions } from "../web/address-check.ts";
import { pageText } from "../web/page-text.ts";
import { errorResult, fileResult, imageResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `fetchTool()`. */
export interface FetchToolOptions extends AddressCheckOptions {
  /** Maximum size of the decompressed body in bytes. Default: 5 MiB. */
  readonly maxBytes?: number;
  /** Maximum length of the text that the model sees, in characters. Default: 50_000. */
  readonly maxText?: number;
  /** Maximum duration of a call, in milliseconds. Default: 30_000. */
  readonly timeoutMs?: number;
  /** Maximum number of redirects of one call. Default: 5. */
  readonly maxRedirects?: number;
  /**
   * Headers of every request. They go to any host that the model names, so they must not be secret. Of these, a
   * redirect to another origin receives only `user-agent`, `accept` and `accept-language`.
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

const knownOptions = optionNames<FetchToolOptions>({
  maxBytes: true,
  maxText: true,
  timeoutMs: true,
  maxRedirects: true,
  headers: true,
  allowPrivate: true,
  resolve: true,
});

/**
 * Creates the tool `fetch`, which gets a page of the public internet. Every address to which the host name resolves is checked, at every
 * redirect, and the connection uses the address that was checked. Proxies from the environment are ignored, because they would resolve
 * names themselves.
 *
 * @example
 * ```ts
 * import { fetchTool } from "reeve/tools";
 *
 * const fetchPage = fetchTool({ maxText: 20_000, allowPrivate: ["wiki.internal:8080"] });
 * ```
 */
export function fetchTool(options: FetchToolOptions = {}): Tool {
  checkOptions("fetchTool()", options, knownOptions);
  const { maxBytes = 5 * 1024 * 1024, maxText = 50_000, timeoutMs = 30_000, maxRedirects = 5 } = options;
  const headers = { "user-agent": "reeve", accept: "text/html, text/*;q=0.9, */*;q=0.5", ...options.headers };
  return tool({
    name: "fetch",
    description: `Get a web page and return its text (at most ${maxText} characters), an image or a PDF. Only GET requests to public addresses.`,
    inputSchema: input,
    // The call changes nothing, but the URL itself can carry data out.
    risk: "high",
    destructive: false,
    timeoutMs: timeoutMs + 5_000,
    execute: async ({ url, raw = false }, { signal: stop }) => {
      const late = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([stop, late]);
      try {
        // Loaded on first use, so that importing the tools loads no network module.
        const { fetchPage } = await import("../web/fetched-page.ts");
        const page = await fetchPage({ ...options, url, maxBytes, maxRedirects, signal, headers });
        const { body, status, contentType, isCut } = page;
        const mediaType = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
        const metadata = { url: page.url, status, contentType, bytes: body.length, isCut, hops: page.hops };
        if (!isCut && status === 200 && shownImages.has(mediaType))
          return imageResult(body, mediaType, { metadata });
        if (!isCut && status === 200 && mediaType === "application/pdf")
          return fileResult(body, mediaType, { metadata });
        if (!isText(mediaType))
          return errorResult(
            `${page.url} has the type ${mediaType || "unknown"} and ${body.length} bytes: it cannot be shown as text`,
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
