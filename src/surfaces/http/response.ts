import { sha256 } from "../../runtime/index.ts";
import type { Reply, Route } from "./route.ts";

/**
 * Returns the content security policy of a page: it may load its own files and call its own API, but it may use no
 * inline scripts and no frames. Only inline styles with the given hashes are allowed.
 */
export function pagePolicy(hashes: readonly string[]): string {
  const styles = ["'self'", ...hashes.map((hash) => `'sha256-${hash}'`)].join(" ");
  return `default-src 'none'; script-src 'self'; style-src ${styles}; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`;
}

/** Returns the hashes of the inline styles of a page, for its policy. */
export function styleHashes(html: string): readonly string[] {
  return [...html.matchAll(/<style>(?<text>.*?)<\/style>/gsu)].map(({ groups }) =>
    Buffer.from(sha256(groups?.["text"] ?? ""), "base64url").toString("base64"),
  );
}

const noPolicy = "default-src 'none'; frame-ancestors 'none'";

/** Adds the headers with which browsers protect their users. Policies that the response already has are kept. */
export function secured(response: Response, policy?: string): Response {
  const { headers } = response;
  headers.set("content-security-policy", policy ?? headers.get("content-security-policy") ?? noPolicy);
  headers.set("x-content-type-options", "nosniff");
  if (!headers.has("referrer-policy")) headers.set("referrer-policy", "no-referrer");
  headers.set("cross-origin-resource-policy", "same-origin");
  headers.set("cross-origin-opener-policy", "same-origin");
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  return response;
}

/** Creates the response for the return value of a handler. */
export function resultResponse({ responses }: Route, result: Reply | undefined): Response {
  const { status = responses[0]?.status ?? 200, value, headers } = result ?? {};
  if (value === undefined) return new Response(null, { status, ...(headers !== undefined && { headers }) });
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...headers, "content-type": "application/json" },
  });
}
