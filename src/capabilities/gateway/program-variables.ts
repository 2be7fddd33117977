import { keyVariables } from "./known-upstreams.ts";

/**
 * Matches environment variables with a key or an account, or that make a program use another address. A program
 * with such a variable could spend money without the gateway.
 */
const away = [
  /(?:^|_)API_?(?:KEY|TOKEN)S?(?:_|$)/,
  /^(?:HF_TOKEN|HUGGING_FACE_HUB_TOKEN)$/,
  // Claude Code calls Bedrock, Vertex AI and Foundry with the account of the cloud, and its login with an account of Anthropic.
  /^CLAUDE_CODE_(?:USE|SKIP|OAUTH)_/,
  /^ANTHROPIC_(?:AUTH|BASE_URL|BEDROCK|VERTEX|FOUNDRY|AWS|CUSTOM_HEADERS|UNIX_SOCKET)/,
  /^(?:AWS_(?!CA_BUNDLE)|AZURE_|VERTEX_|VERTEXAI_|GCLOUD_|CLOUDSDK_(?:AUTH|CONFIG|CORE_(?:ACCOUNT|PROJECT)))/,
  /^GOOGLE_(?:GENAI_|CLOUD_|VERTEX|GEMINI_BASE_URL|APPLICATION_CREDENTIALS)/,
  /^GEMINI_(?:BASE_URL|CLI_CUSTOM_HEADERS)/,
  /^OPENAI_(?:API_(?:BASE|HOST|TYPE)|BASE_URL|ORG|ORGANIZATION|PROJECT)/,
  /^CODEX_(?:ACCESS_TOKEN|AGENT_IDENTITY)/,
] as const;

/** Whether a program with this environment variable could spend money without the gateway. */
export function leadsAway(name: string): boolean {
  return keyVariables.includes(name) || away.some((each) => each.test(name));
}

/**
 * Returns the environment variables by which programs find the gateway: those of the SDKs and of coding agents, and
 * two of Reeve itself.
 */
export function gatewayVariables({
  url,
  token,
}: {
  readonly url: string;
  readonly token: string;
}): Readonly<Record<string, string>> {
  return {
    REEVE_GATEWAY_URL: url,
    REEVE_GATEWAY_TOKEN: token,
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: token,
    // Claude Code would send some requests to other addresses.
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_BASE: `${url}/v1`,
    OPENAI_API_KEY: token,
    GOOGLE_GEMINI_BASE_URL: url,
    GEMINI_API_KEY: token,
  };
}
