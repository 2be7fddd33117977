import { type ProviderError, apiCallError, openAiBody, openAiSdkError } from "./shapes.ts";

const invalid = "invalid_request_error";

const openAiQuota = openAiBody(
  "You exceeded your current quota, please check your plan and billing details. For more information on this " +
    "error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
  "insufficient_quota",
  "insufficient_quota",
);
const openAiTokensPerMinute = openAiBody(
  "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 14567, " +
    "Requested 24754. Please try again in 18.642s. Visit https://platform.openai.com/account/rate-limits to learn more.",
  "tokens",
  "rate_limit_exceeded",
);
const openAiRequestsPerDay = openAiBody(
  "Rate limit reached for o4-mini in organization org-x on requests per day (RPD): Limit 200, Used 200, Requested 1. " +
    "Please try again in 7m12s. You can increase your rate limit by adding a payment method to your account at " +
    "https://platform.openai.com/account/billing.",
  "requests",
  "rate_limit_exceeded",
);
const openAiTooLarge = openAiBody(
  "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 31538. The " +
    "input or output tokens must be reduced in order to run successfully.",
  "tokens",
  "rate_limit_exceeded",
);
const openAiChatOverflow = openAiBody(
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. Please reduce " +
    "the length of the messages.",
  "invalid_request_error",
  "context_length_exceeded",
);
const openAiFlagged = openAiBody(
  "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a " +
    "different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting",
  "invalid_request_error",
  "invalid_prompt",
);
const azureFiltered = {
  error: {
    message:
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please " +
      "modify your prompt and retry.",
    type: null,
    param: "prompt",
    code: "content_filter",
    status: 400,
    innererror: {
      code: "ResponsibleAIPolicyViolation",
      content_filter_result: { jailbreak: { filtered: true, detected: true } },
    },
  },
};
const openAiOverloadedEvent = {
  type: "error",
  sequence_number: 2,
  error: {
    type: "service_unavailable_error",
    code: "server_is_overloaded",
    message: "Our servers are currently overloaded. Please try again later.",
    param: null,
  },
};
const openAiFailedResponse = {
  type: "response.failed",
  sequence_number: 5,
  response: {
    status: "failed",
    error: {
      code: "server_error",
      message:
        "An error occurred while processing your request. You can retry your request, or contact us through our help " +
        "center at help.openai.com if the error persists.",
    },
  },
};
const openAiOverflowEvent = {
  type: "error",
  sequence_number: 2,
  error: {
    type: "invalid_request_error",
    code: "context_length_exceeded",
    message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
    param: "input",
  },
};
const openAiDeactivated = openAiBody(
  "The OpenAI account associated with this API key has been deactivated. If you are the developer for this OpenAI " +
    "app, please check your email for more information.",
  "invalid_request_error",
  "account_deactivated",
);
const openAiMissingKey = openAiBody(
  "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth " +
    "(i.e. Authorization: Bearer YOUR_KEY).",
  "invalid_request_error",
);
const openAiScopes = openAiBody(
  "You have insufficient permissions for this operation. Missing scopes: model.request. Check that you have the " +
    "correct role in your organization (Reader, Writer, Owner) and project (Member, Owner).",
  "invalid_request_error",
);
const openAiWrongKey = openAiBody(
  "Incorrect API key provided: sk-proj-********21sA. You can find your API key at " +
    "https://platform.openai.com/account/api-keys.",
  "invalid_request_error",
  "invalid_api_key",
);
const openAiToolOrder =
  "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
const openAiBusy =
  "That model is currently overloaded with other requests. You can retry your request, or contact us through our " +
  "help center at help.openai.com if the error persists.";
const openAiSorry =
  "The server had an error while processing your request. Sorry about that! You can retry your request, or contact us " +
  "through our help center at help.openai.com if the error persists.";
const unknownGpt = "The model `gpt-5.9` does not exist or you do not have access to it.";

export const openAiErrors: readonly ProviderError[] = [
  ["billing", "OpenAI 429 insufficient_quota, raw body with its status", { status: 429, ...openAiQuota }],
  ["billing", "OpenAI 429 insufficient_quota, openai SDK", openAiSdkError(429, openAiQuota)],
  ["billing", "OpenAI 429 insufficient_quota, AI SDK", apiCallError(429, openAiQuota)],
  [
    "billing",
    "OpenAI 429 billing_not_active, openai SDK",
    openAiSdkError(
      429,
      openAiBody(
        "Your account is not active, please check your billing details on our website.",
        "billing_not_active",
        "billing_not_active",
      ),
    ),
  ],
  [
    "billing",
    "OpenAI 400 billing hard limit, AI SDK",
    apiCallError(
      400,
      openAiBody("Billing hard limit has been reached", invalid, "billing_hard_limit_reached"),
    ),
  ],
  ["rate_limit", "OpenAI 429 tokens per minute, AI SDK", apiCallError(429, openAiTokensPerMinute)],
  ["rate_limit", "OpenAI Responses tokens per minute inside a stream", openAiTokensPerMinute],
  [
    "rate_limit",
    "OpenAI 429 requests per day with a short wait, SDK",
    openAiSdkError(429, openAiRequestsPerDay),
  ],
  [
    "context_overflow",
    "OpenAI 429 one request above the limit per minute, SDK",
    openAiSdkError(429, openAiTooLarge),
  ],
  [
    "context_overflow",
    "OpenAI chat 400 maximum context length, openai SDK",
    openAiSdkError(400, openAiChatOverflow),
  ],
  [
    "context_overflow",
    "OpenAI chat 400 maximum context length, AI SDK",
    apiCallError(400, openAiChatOverflow),
  ],
  ["context_overflow", "OpenAI Responses input over the context window, stream event", openAiOverflowEvent],
  [
    "context_overflow",
    "OpenAI Responses 400 content string too long, AI SDK",
    apiCallError(
      400,
      openAiBody(
        "Invalid 'input[0].content': string too long. Expected a string with maximum length 10485760, but got a " +
          "string with length 62114761 instead.",
        invalid,
        "string_above_max_length",
      ),
    ),
  ],
  [
    "format_error",
    "OpenAI Responses 400 call id string too long, AI SDK",
    apiCallError(
      400,
      openAiBody(
        "Invalid 'input[95].call_id': string too long. Expected a string with maximum length 64, but got a string " +
          "with length 116 instead.",
        invalid,
        "string_above_max_length",
      ),
    ),
  ],
  [
    "format_error",
    "OpenAI chat 400 max_tokens above the output limit, AI SDK",
    apiCallError(
      400,
      openAiBody(
        "max_tokens is too large: 20480. This model supports at most 16384 completion tokens, whereas you provided 20480.",
        invalid,
        "invalid_value",
      ),
    ),
  ],
  [
    "format_error",
    "OpenAI chat 400 tool message out of place, SDK",
    openAiSdkError(400, openAiBody(openAiToolOrder, invalid)),
  ],
  [
    "format_error",
    "OpenAI 404 wrong address, openai SDK",
    openAiSdkError(404, openAiBody("Invalid URL (POST /v1/chat/completions/chat/completions)", invalid)),
  ],
  ["content_blocked", "OpenAI 400 prompt flagged, openai SDK", openAiSdkError(400, openAiFlagged)],
  ["content_blocked", "OpenAI prompt flagged, stream event", openAiFlagged],
  ["content_blocked", "Azure OpenAI 400 content_filter, raw body", azureFiltered],
  ["content_blocked", "Azure OpenAI 400 content_filter, AI SDK", apiCallError(400, azureFiltered)],
  [
    "content_blocked",
    "OpenAI 400 content_policy_violation, openai SDK",
    openAiSdkError(
      400,
      openAiBody(
        "Your request was rejected as a result of our safety system. Your prompt may contain text that is not " +
          "allowed by our safety system.",
        invalid,
        "content_policy_violation",
      ),
    ),
  ],
  ["auth", "OpenAI 401 incorrect key, openai SDK", openAiSdkError(401, openAiWrongKey)],
  ["auth", "OpenAI 401 incorrect key, AI SDK", apiCallError(401, openAiWrongKey)],
  ["auth", "OpenAI 401 no key, raw body", openAiMissingKey],
  [
    "auth",
    "OpenAI no key at all, AI SDK's own LoadAPIKeyError",
    Object.assign(
      new Error(
        "OpenAI API key is missing. Pass it using the 'apiKey' parameter or the OPENAI_API_KEY environment variable.",
      ),
      { name: "AI_LoadAPIKeyError" },
    ),
  ],
  ["auth_permanent", "OpenAI 401 account deactivated, openai SDK", openAiSdkError(401, openAiDeactivated)],
  ["auth_permanent", "OpenAI 401 restricted key without the scope, SDK", openAiSdkError(401, openAiScopes)],
  [
    "auth_permanent",
    "OpenAI 403 unsupported country, AI SDK",
    apiCallError(
      403,
      openAiBody(
        "Country, region, or territory not supported",
        "request_forbidden",
        "unsupported_country_region_territory",
      ),
    ),
  ],
  [
    "model_not_found",
    "OpenAI 404 model_not_found, SDK",
    openAiSdkError(404, openAiBody(unknownGpt, invalid, "model_not_found")),
  ],
  [
    "model_not_found",
    "OpenAI 403 project without the model, openai SDK",
    openAiSdkError(403, openAiBody("Project `proj_x` does not have access to model `gpt-4.1`", invalid)),
  ],
  [
    "model_not_found",
    "OpenAI 400 model_not_found, AI SDK",
    apiCallError(
      400,
      openAiBody("The requested model 'gpt-4-1106-preview' does not exist.", invalid, "model_not_found"),
    ),
  ],
  [
    "overloaded",
    "OpenAI 503 model overloaded, openai SDK",
    openAiSdkError(503, openAiBody(openAiBusy, "server_error")),
  ],
  ["overloaded", "OpenAI Responses server_is_overloaded, stream event", openAiOverloadedEvent],
  [
    "overloaded",
    "OpenAI Responses overloaded under a 400, AI SDK (K1)",
    apiCallError(400, openAiOverloadedEvent),
  ],
  [
    "server_error",
    "OpenAI 500 server_error, openai SDK",
    openAiSdkError(500, openAiBody(openAiSorry, "server_error")),
  ],
  ["server_error", "OpenAI chat server_error inside a stream", openAiBody(openAiSorry, "server_error")],
  ["server_error", "OpenAI Responses response.failed event", openAiFailedResponse],
  ["timeout", "OpenAI client gave up waiting, openai SDK", new Error("Request timed out.")],
];
