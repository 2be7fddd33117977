import { type ProviderError, apiCallError, openAiSdkError, openRouterBody } from "./shapes.ts";

const creditSentence =
  "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford " +
  "27342. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account";
const freePerDay =
  "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day";
const freePerMinute = openRouterBody(429, "Rate limit exceeded: free-models-per-min. ", {
  headers: { "X-RateLimit-Limit": "20" },
});
const upstreamLimited = openRouterBody(429, "Provider returned error", {
  raw: "z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits",
  provider_name: "BaseTen",
  limit_source: "upstream_provider_shared_pool",
});
const endpointOverflow =
  "This endpoint's maximum context length is 131072 tokens. However, you requested about 141607 tokens (10535 of text " +
  'input, 131072 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress ' +
  "your prompt automatically.";
const upstreamOverflow =
  'ConnectionError: {"object":"error","message":"This model\'s maximum context length is 16000 tokens. However, you requested 17165 tokens (13069 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}';
const wrappedOverflow = openRouterBody(502, upstreamOverflow, {
  provider_name: "DeepInfra",
  raw: { error_type: "validation_error", error_message: upstreamOverflow },
});
const inFlight = openRouterBody(
  402,
  "This request would exceed your available credits given your current in-flight requests. Retry after in-flight requests settle, or add credits.",
  { reason: "in_flight_budget_exhausted", limit_source: "openrouter_in_flight_budget" },
);
const midStream = {
  id: "gen-1739458867",
  object: "chat.completion.chunk",
  error: {
    code: 502,
    message: "Worker local total request limit reached (33/32)",
    metadata: { error_type: "provider_unavailable" },
  },
  choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }],
};
const moderated = openRouterBody(403, "Your chosen model requires moderation and your input was flagged", {
  reasons: ["violence"],
  flagged_input: "…",
  provider_name: "OpenAI",
  model_slug: "openai/gpt-4o",
});

export const openRouterErrors: readonly ProviderError[] = [
  [
    "billing",
    "OpenRouter 402 needs more credits, AI SDK",
    apiCallError(402, openRouterBody(402, creditSentence, { provider_name: null })),
  ],
  [
    "billing",
    "OpenRouter 402 insufficient credits, raw body",
    openRouterBody(402, "Insufficient credits. Add more using https://openrouter.ai/settings/credits"),
  ],
  [
    "billing",
    "OpenRouter 403 key limit exceeded, openai SDK",
    openAiSdkError(
      403,
      openRouterBody(
        403,
        "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys",
      ),
    ),
  ],
  [
    "billing",
    "OpenRouter 429 free models per day, AI SDK",
    apiCallError(429, openRouterBody(429, freePerDay, { headers: { "X-RateLimit-Remaining": "0" } })),
  ],
  ["rate_limit", "OpenRouter 429 free models per minute, AI SDK", apiCallError(429, freePerMinute)],
  ["rate_limit", "OpenRouter 429 upstream limit, AI SDK", apiCallError(429, upstreamLimited)],
  ["rate_limit", "OpenRouter 429 inside a 200 body", upstreamLimited],
  [
    "billing",
    "OpenRouter 403 workspace budget spent, AI SDK",
    apiCallError(
      403,
      openRouterBody(403, "Budget limit exceeded (monthly limit)", {
        limit_source: "openrouter_workspace_budget",
      }),
    ),
  ],
  ["rate_limit", "OpenRouter 402 spending still in flight, AI SDK", apiCallError(402, inFlight)],
  [
    "context_overflow",
    "OpenRouter 400 endpoint context length, openai SDK",
    openAiSdkError(400, openRouterBody(400, endpointOverflow)),
  ],
  [
    "context_overflow",
    "OpenRouter 502 around an upstream overflow, AI SDK",
    apiCallError(502, wrappedOverflow),
  ],
  ["server_error", "OpenRouter 502 inside a 200 stream", midStream],
  [
    "server_error",
    "OpenRouter 500 inside a 200 body, AI SDK",
    apiCallError(200, openRouterBody(500, "Internal Server Error")),
  ],
  [
    "timeout",
    "OpenRouter 408 request timed out, AI SDK",
    apiCallError(408, openRouterBody(408, "Your request timed out")),
  ],
  [
    "overloaded",
    "OpenRouter 503 no provider available, AI SDK",
    apiCallError(
      503,
      openRouterBody(503, "There is no available model provider that meets your routing requirements"),
    ),
  ],
  [
    "auth",
    "OpenRouter 401 no credentials, AI SDK",
    apiCallError(401, openRouterBody(401, "No auth credentials found")),
  ],
  ["auth", "OpenRouter 401 user not found, raw body", openRouterBody(401, "User not found.")],
  ["content_blocked", "OpenRouter 403 moderation, AI SDK", apiCallError(403, moderated)],
  [
    "model_not_found",
    "OpenRouter 400 invalid model id, AI SDK",
    apiCallError(400, openRouterBody(400, "claude-sonnet-4-6 is not a valid model ID")),
  ],
  [
    "model_not_found",
    "OpenRouter 404 no endpoints for the model, raw body",
    openRouterBody(404, "No endpoints found for stepfun/step-3.5-flash:free."),
  ],
  [
    "format_error",
    "OpenRouter 404 no endpoint takes tools, AI SDK",
    apiCallError(
      404,
      openRouterBody(
        404,
        "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing",
      ),
    ),
  ],
];
