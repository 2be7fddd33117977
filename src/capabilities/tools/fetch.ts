import { Fault, type Tool } from "../../kernel/index.ts";
import type { AddressCheckOptions } from "../web/address-check.ts";
import { pageText } from "../web/page-text.ts";
import { errorResult, fileResult, imageResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface FetchToolOptions extends AddressCheckOptions {
  /** Of the body, unpacked. */
  readonly maxBytes?: number;
  /** Of text that is shown, in characters. */
  readonly maxText?: number;
  readonly timeoutMs?: number;
  readonly maxRedirects?: number;
  /** Sent to whatever host the model names, so nothing secret; not to another that this one redirects to. */
  readonly headers?: Readonly<Record<string, string>>;
}

const input = {
  type: "object",
  properties: {
    url: { type: "string", description: "An http or https address" },
    raw: { type: "boolean", description: "HTML as it is, not as text" },
  },
  required: ["url"],
  additionalProperties: false,
} as const;

const shownImages = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * Gets a page of the open internet. A name is checked by what it resolves to, at every redirect, and the connection goes to the address
 * that was checked. Proxies of the environment are not used: they would resolve names themselves.
 */
export function fetchTool(options: FetchToolOptions = {}): Tool {
  const { maxBytes = 5 * 1024 * 1024, maxText = 50_000, timeoutMs = 30_000, maxRedirects = 5 } = options;
  const headers = { "user-agent": "reeve", accept: "text/html, text/*;q=0.9, */*;q=0.5", ...options.headers };
  return tool({
    name: "fetch",
    description: `Gets a web page and gives its text (up to ${maxText} characters), an image or a PDF. Only public addresses; only GET.`,
    inputSchema: input,
    // It changes nothing, and yet what is in the address goes out.
    risk: "high",
    destructive: false,
    timeoutMs: timeoutMs + 5_000,
    execute: async ({ url, raw = false }, { signal: stop }) => {
      const late = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([stop, late]);
      try {
        // What reaches the network is loaded by who does.
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
            `${page.url} is ${mediaType || "of no known type"}, ${body.length} bytes: it cannot be shown as text`,
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

/** A label that nobody knows is read as UTF-8. */
function decoderFor(label: string): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(label);
  } catch {
    // Only a label can be wrong here.
    return new TextDecoder();
  }
}
