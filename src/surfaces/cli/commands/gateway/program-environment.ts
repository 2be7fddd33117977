import { basename } from "node:path";
import { keyVariables } from "../../../../capabilities/gateway/known-upstreams.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A program that uses the gateway: its command line and its environment. */
export interface GatewayCommand {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

/**
 * Returns the command line and the environment with which a program uses the gateway. It inherits the variables of `env`
 * except the keys of providers.
 */
export function gatewayCommand(
  [program = "", ...args]: readonly string[],
  { url, token }: { readonly url: string; readonly token: string },
  env: Environment,
): GatewayCommand {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !keyVariables.includes(name)) kept[name] = value;
  const own = {
    REEVE_GATEWAY_URL: url,
    REEVE_GATEWAY_TOKEN: token,
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: token,
    // Claude Code would send some requests to other addresses.
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: token,
    GOOGLE_GEMINI_BASE_URL: url,
    GEMINI_API_KEY: token,
    NO_PROXY: withLoopback(env["NO_PROXY"] ?? env["no_proxy"]),
    no_proxy: withLoopback(env["no_proxy"] ?? env["NO_PROXY"]),
  };
  const name = basename(program).replace(/\.(?:cmd|exe|js)$/, "");
  return {
    args: [program, ...(name === "codex" ? codexOptions(url) : []), ...args],
    env: { ...kept, ...own, ...(name === "opencode" && openCodeSettings(url, token)) },
  };
}

/** The gateway is on loopback, which a proxy would not reach. */
function withLoopback(list: string | undefined): string {
  return [...(list === undefined || list === "" ? [] : [list]), "127.0.0.1", "localhost"].join(",");
}

/**
 * Codex reads its provider from its configuration. By default it repeats refused requests, and offers the search of the
 * provider, which the gateway refuses because tokens do not bound its cost.
 */
function codexOptions(url: string): readonly string[] {
  const settings = {
    model_provider: "reeve",
    "model_providers.reeve.name": "reeve",
    "model_providers.reeve.base_url": `${url}/v1`,
    "model_providers.reeve.env_key": "REEVE_GATEWAY_TOKEN",
    "model_providers.reeve.wire_api": "responses",
    web_search: "disabled",
  };
  const texts = Object.entries(settings).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const retries = ["request_max_retries", "stream_max_retries"].map(
    (name) => `model_providers.reeve.${name}=0`,
  );
  return [...texts, ...retries].flatMap((setting) => ["-c", setting]);
}

/** OpenCode reads the addresses of its providers from its configuration. */
function openCodeSettings(url: string, apiKey: string): Readonly<Record<string, string>> {
  const options = { baseURL: `${url}/v1`, apiKey };
  const provider = {
    anthropic: { options },
    openai: { options },
    google: { options: { apiKey, baseURL: `${url}/v1beta` } },
  };
  return { OPENCODE_CONFIG_CONTENT: JSON.stringify({ provider }) };
}
