import { Fault, type CancelSignal, type ChatMessage, type ImagePart } from "../../kernel/index.ts";
import type { AddressCheckOptions } from "../web/address-check.ts";
import { fetchesUrl, type SupportedUrls } from "./inline-media.ts";

/** Maximum size of an image, in bytes. */
const maxBytes = 20 * 1024 * 1024;
const timeoutMs = 30_000;
const maxRedirects = 5;
/** Maximum number of images that are kept for the next requests of the same model. */
const maxKept = 16;

/**
 * Downloads images for a provider that does not fetch URLs itself, by the rules of the tool `fetch`: only from public
 * addresses, with limits for size and time, and with redirects only to the same host. The latest images are kept,
 * because each turn sends the whole conversation again.
 */
export class ImageDownloads {
  readonly #provider: string;
  readonly #options: AddressCheckOptions;
  /** Base64 data by URL, the image that was downloaded last at the end. */
  readonly #kept = new Map<string, string>();

  constructor(provider: string, options: AddressCheckOptions) {
    this.#provider = provider;
    this.#options = options;
  }

  /** Returns the base64 data of the images in the messages that the provider does not fetch itself, by URL. */
  async load(
    messages: readonly ChatMessage[],
    supported: SupportedUrls,
    signal: CancelSignal | undefined,
  ): Promise<ReadonlyMap<string, string>> {
    const loaded = new Map<string, string>();
    for (const { source, mediaType } of messages.flatMap(imagesOf)) {
      if (source.kind !== "url" || !/^https?:/iu.test(source.url) || loaded.has(source.url)) continue;
      if (fetchesUrl(source.url, mediaType, supported)) continue;
      const data = this.#kept.get(source.url) ?? (await this.#download(source.url, signal));
      loaded.set(source.url, data);
      this.#keep(source.url, data);
    }
    return loaded;
  }

  #keep(url: string, data: string): void {
    this.#kept.delete(url);
    this.#kept.set(url, data);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > maxKept && oldest !== undefined) this.#kept.delete(oldest);
  }

  async #download(url: string, signal: CancelSignal | undefined): Promise<string> {
    const late = AbortSignal.timeout(timeoutMs);
    const either = signal === undefined ? late : AbortSignal.any([signal, late]);
    const headers = { "user-agent": "reeve", accept: "image/*" };
    try {
      // Loaded on first use, so that importing models loads no network module.
      const { fetchPage } = await import("../web/fetched-page.ts");
      const page = await fetchPage({
        ...this.#options,
        url,
        maxBytes,
        maxRedirects,
        signal: either,
        headers,
      });
      const problem = problemOf(page);
      if (problem !== undefined) throw new Fault("tool_failed", problem);
      return page.body.toString("base64");
    } catch (cause) {
      signal?.throwIfAborted();
      const reason = late.aborted ? `it took longer than ${timeoutMs} ms` : Fault.from(cause).message;
      throw new Fault(
        "unsupported",
        `${this.#provider} does not fetch images, and ${shortened(url)} cannot be downloaded: ${reason}; send the bytes as { kind: "base64", data }`,
        { cause },
      );
    }
  }
}

interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly isCut: boolean;
  readonly redirect?: string;
}

function problemOf({ status, contentType, isCut, redirect }: Page): string | undefined {
  if (redirect !== undefined) return "it redirects to another host";
  if (status !== 200) return `the server returned status ${status}`;
  if (!contentType.toLowerCase().startsWith("image/")) return `its type is ${contentType || "unknown"}`;
  return isCut ? `it is larger than ${maxBytes} bytes` : undefined;
}

function imagesOf(message: ChatMessage): readonly ImagePart[] {
  if (message.role === "user") return message.content.filter((part) => part.type === "image");
  if (message.role !== "tool") return [];
  return message.content.flatMap(({ output }) =>
    output.type === "content" ? output.parts.filter((part) => part.type === "image") : [],
  );
}

function shortened(url: string): string {
  return url.length > 200 ? `${url.slice(0, 200)}...` : url;
}
