import { type ProviderError, anthropicBody, anthropicSdkError, apiCallError } from "./shapes.ts";

const invalid = "invalid_request_error";

const anthropicMinute = anthropicBody(
  "rate_limit_error",
  "This request would exceed the rate limit for your organization of 30,000 input tokens per minute. For details, " +
    "refer to: https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please " +
    "reduce the prompt length or the maximum tokens requested, or try again later.",
);
const anthropicOverloaded = anthropicBody("overloaded_error", "Overloaded");
const anthropicTooLong = anthropicBody(invalid, "prompt is too long: 202609 tokens > 200000 maximum");
const anthropicFiltered = anthropicBody(invalid, "Output blocked by content filtering policy");
const anthropicCredit = anthropicBody(
  invalid,
  "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
);
const anthropicTooLarge = {
  error: { type: "request_too_large", message: "Request exceeds the maximum size" },
};
const anthropicUsageLimit =
  "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.";
const anthropicToolResult =
  "messages.63: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. Each `tool_use` " +
  "block must have a corresponding `tool_result` block in the next message.";
const anthropicMaxTokens =
  "max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620";
const anthropicBothLimits =
  "input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or `max_tokens` " +
  "and try again";
const anthropicExpired = "OAuth token has expired. Please obtain a new token or refresh your existing token.";
const anthropicRevoked = "OAuth token has been revoked. Please obtain a new token.";
const anthropicPermission = "Your API key does not have permission to use the specified resource.";

export const anthropicErrors: readonly ProviderError[] = [
  ["rate_limit", "Anthropic 429 tokens per minute, Anthropic SDK", anthropicSdkError(429, anthropicMinute)],
  ["rate_limit", "Anthropic 429 tokens per minute, AI SDK", apiCallError(429, anthropicMinute)],
  ["rate_limit", "Anthropic rate limit inside a stream", anthropicMinute],
  ["overloaded", "Anthropic 529 overloaded, Anthropic SDK", anthropicSdkError(529, anthropicOverloaded)],
  ["overloaded", "Anthropic 529 overloaded, AI SDK", apiCallError(529, anthropicOverloaded)],
  ["overloaded", "Anthropic overloaded, stream event", anthropicOverloaded],
  [
    "overloaded",
    "Anthropic 500 worded overloaded, SDK",
    anthropicSdkError(500, anthropicBody("api_error", "Overloaded")),
  ],
  [
    "server_error",
    "Anthropic 500 api_error, SDK",
    anthropicSdkError(500, anthropicBody("api_error", "Internal server error")),
  ],
  ["server_error", "Anthropic api_error, stream event", anthropicBody("api_error", "Internal server error")],
  [
    "context_overflow",
    "Anthropic 400 prompt too long, Anthropic SDK",
    anthropicSdkError(400, anthropicTooLong),
  ],
  ["context_overflow", "Anthropic 400 prompt too long, AI SDK", apiCallError(400, anthropicTooLong)],
  [
    "context_overflow",
    "Anthropic 400 input plus max_tokens, SDK",
    anthropicSdkError(400, anthropicBody(invalid, anthropicBothLimits)),
  ],
  ["context_overflow", "Anthropic 413 request_too_large, AI SDK", apiCallError(413, anthropicTooLarge)],
  ["context_overflow", "Anthropic request_too_large, raw body", anthropicTooLarge],
  [
    "context_overflow",
    "Anthropic 429 long context not in the plan, SDK",
    anthropicSdkError(
      429,
      anthropicBody("rate_limit_error", "Extra usage is required for long context requests."),
    ),
  ],
  [
    "format_error",
    "Anthropic 400 max_tokens above the output limit, AI SDK",
    apiCallError(400, anthropicBody(invalid, anthropicMaxTokens)),
  ],
  [
    "format_error",
    "Anthropic 400 tool_use without tool_result, SDK",
    anthropicSdkError(400, anthropicBody(invalid, anthropicToolResult)),
  ],
  ["format_error", "Anthropic invalid request inside a stream", anthropicBody(invalid, anthropicToolResult)],
  ["billing", "Anthropic 400 credit balance too low, SDK", anthropicSdkError(400, anthropicCredit)],
  ["billing", "Anthropic 400 credit balance too low, AI SDK", apiCallError(400, anthropicCredit)],
  [
    "billing",
    "Anthropic 400 own spend limit reached, AI SDK",
    apiCallError(400, anthropicBody(invalid, anthropicUsageLimit)),
  ],
  [
    "content_blocked",
    "Anthropic 400 output filtered, Anthropic SDK",
    anthropicSdkError(400, anthropicFiltered),
  ],
  ["content_blocked", "Anthropic output filtered, stream event", anthropicFiltered],
  [
    "content_blocked",
    "Anthropic answer that stopped with a refusal",
    { type: "message", stop_reason: "refusal", content: [] },
  ],
  [
    "auth",
    "Anthropic 401 invalid key, SDK",
    anthropicSdkError(401, anthropicBody("authentication_error", "invalid x-api-key")),
  ],
  [
    "auth",
    "Anthropic 401 expired token, AI SDK",
    apiCallError(401, anthropicBody("authentication_error", anthropicExpired)),
  ],
  [
    "auth_permanent",
    "Anthropic 403 revoked token, SDK",
    anthropicSdkError(403, anthropicBody("permission_error", anthropicRevoked)),
  ],
  [
    "auth_permanent",
    "Anthropic 403 permission_error, AI SDK",
    apiCallError(403, anthropicBody("permission_error", anthropicPermission)),
  ],
  [
    "auth_permanent",
    "Anthropic 400 organization disabled, SDK",
    anthropicSdkError(400, anthropicBody(invalid, "This organization has been disabled.")),
  ],
  [
    "model_not_found",
    "Anthropic 404 unknown model, SDK",
    anthropicSdkError(404, anthropicBody("not_found_error", "model: claude-4-sonnet")),
  ],
  [
    "model_not_found",
    "Anthropic 404 unknown model, AI SDK",
    apiCallError(404, anthropicBody("not_found_error", "model: claude-4-sonnet")),
  ],
  [
    "format_error",
    "Anthropic 404 that names no model, AI SDK (K5)",
    apiCallError(404, anthropicBody("not_found_error", "Not Found")),
  ],
  [
    "timeout",
    "Anthropic 504 page of its gateway, AI SDK",
    {
      name: "AI_APICallError",
      message: "Gateway Time-out",
      statusCode: 504,
      responseBody: "<html><head><title>504 Gateway Time-out</title></head></html>",
    },
  ],
  [
    "timeout",
    "Anthropic timeout_error, stream event",
    anthropicBody("timeout_error", "The request timed out while processing."),
  ],
  [
    "auth",
    "Anthropic 403 that gives no reason, SDK (K2)",
    anthropicSdkError(403, { error: { type: "forbidden", message: "Request not allowed" } }),
  ],
  [
    "unknown",
    "Anthropic 409 conflict_error, AI SDK",
    apiCallError(409, anthropicBody("conflict_error", "Conflict")),
  ],
];
