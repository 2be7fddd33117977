import { sha256 } from "../../runtime/index.ts";
import type { Reply, Route } from "./route.ts";

/**
 * What a page of the server may load: its own files and its own API, no inline scripts, no frames. Of inline styles, only
 * those whose hashes are given.
 */
export function pagePolicy(hashes: readonly string[]): string {
  const styles = ["'self'", ...hashes.map((hash) => `'sha256-${hash}'`)].join(" ");
  return `default-src 'none'; script-src 'self'; style-src ${styles}; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`;
}

/** The hashes of the styles inside a page, for its policy. */
export function styleHashes(html: string): readonly string[] {
  return [...html.matchAll(/<style>(?<text>.*?)<\/style>/gsu)].map(({ groups }) =>
    Buffer.from(sha256(groups?.["text"] ?? ""), "base64url").toString("base64"),
  );
}

const noPolicy = "default-src 'none'; frame-ancestors 'none'";

/** Adds the headers with which browsers protect their users. A response with policies of its own keeps them. */
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

/** The response for what a handler returned. */
export function resultResponse({ responses }: Route, result: Reply | undefined): Response {
  const { status = responses[0]?.status ?? 200, value, headers } = result ?? {};
  if (value === undefined) return new Response(null, { status, ...(headers !== undefined && { headers }) });
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...headers, "content-type": "application/json" },
  });
}
