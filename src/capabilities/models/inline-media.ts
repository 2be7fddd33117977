import { Fault, type FilePart, type ImagePart } from "../../kernel/index.ts";

/** URLs that a provider fetches itself, by media type or pattern such as `image/*`. */
export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** An image or file in the form in which it is sent: base64 data, or a URL that the provider fetches. */
export type InlineMedia = { readonly data: string } | { readonly url: string };

interface MediaReader {
  readonly provider: string;
  readonly supportedUrls: SupportedUrls;
  /** Base64 data of downloaded images, by URL. */
  readonly downloaded: ReadonlyMap<string, string>;
}

const dataUrl = /^data:[^,]*,/;

/**
 * Returns an image or file in the form in which it is sent: its bytes in base64, or a URL that the provider fetches
 * itself.
 */
export function inlineMedia(part: ImagePart | FilePart, reader: MediaReader): InlineMedia {
  const { source, mediaType } = part;
  if (source.kind === "base64") return { data: source.data };
  const { url } = source;
  const head = dataUrl.exec(url)?.[0];
  if (head !== undefined) {
    const body = url.slice(head.length);
    const data = head.endsWith(";base64,") ? body : Buffer.from(decodeURIComponent(body)).toString("base64");
    return { data };
  }
  if (fetchesUrl(url, mediaType, reader.supportedUrls)) return { url };
  const data = reader.downloaded.get(url);
  if (data !== undefined) return { data };
  throw new Fault(
    "unsupported",
    `${reader.provider} does not fetch ${mediaType} from ${shown(url)}: fetch it first and send the bytes as { kind: "base64", data }`,
  );
}

/** Whether the provider fetches this URL itself. */
export function fetchesUrl(url: string, mediaType: string, supported: SupportedUrls): boolean {
  if (!URL.canParse(url)) return false;
  const [address, type] = [url.toLowerCase(), mediaType.toLowerCase()];
  return Object.entries(supported).some(
    ([pattern, addresses]) =>
      fits(type, pattern.toLowerCase()) && addresses.some((known) => known.test(address)),
  );
}

function fits(mediaType: string, pattern: string): boolean {
  if (pattern === "*" || pattern === "*/*") return true;
  return pattern.endsWith("/*") ? mediaType.startsWith(pattern.slice(0, -1)) : mediaType === pattern;
}

function shown(url: string): string {
  return url.length > 200 ? `${url.slice(0, 200)}...` : url;
}
