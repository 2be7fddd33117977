import { providerDirectory } from "../models/provider-directory.ts";
import type { GatewayOptions } from "./gateway-options.ts";

/** The providers that each wire reaches if the configuration names none. */
const known = {
  anthropic: { provider: "anthropic", baseUrl: "https://api.anthropic.com" },
  openai: { provider: "openai", baseUrl: "https://api.openai.com" },
  gemini: { provider: "google", baseUrl: "https://generativelanguage.googleapis.com" },
} as const;

/** Environment variables with a key of a provider. A program behind the gateway must not inherit them. */
export const keyVariables: readonly string[] = [
  ...new Set(Object.values(providerDirectory).flatMap(({ keys }) => keys)),
  "GOOGLE_API_KEY",
];

/**
 * Returns the providers whose key is in the environment, at their public addresses. The environment cannot change
 * an address.
 */
export function upstreamsFrom(
  env: Readonly<Record<string, string | undefined>>,
): GatewayOptions["upstreams"] {
  const found: Record<string, { baseUrl: string; apiKey: string; provider: string }> = {};
  for (const [wire, { provider, baseUrl }] of Object.entries(known)) {
    const keys = providerDirectory[provider]?.keys ?? [];
    const apiKey = keys.map((name) => env[name]).find((key) => key !== undefined && key !== "");
    if (apiKey !== undefined) found[wire] = { baseUrl, apiKey, provider };
  }
  return found;
}
