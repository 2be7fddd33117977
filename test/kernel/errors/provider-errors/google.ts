import {
  type ProviderError,
  apiCallError,
  errorInfo,
  googleBody,
  googleSdkError,
  quotaFailure,
  retryInfo,
} from "./shapes.ts";

const quotaSentence =
  "You exceeded your current quota, please check your plan and billing details. For more information on this error, " +
  "head to: https://ai.google.dev/gemini-api/docs/rate-limits.";

const perDay = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
const perMinute = "GenerateContentInputTokensPerModelPerMinute-FreeTier";
const googleDaily = googleBody(429, "RESOURCE_EXHAUSTED", quotaSentence, [
  quotaFailure(perDay),
  retryInfo("36s"),
]);
const googleMinute = googleBody(429, "RESOURCE_EXHAUSTED", quotaSentence, [
  quotaFailure(perMinute),
  retryInfo("26s"),
]);
const googleBoth = googleBody(429, "RESOURCE_EXHAUSTED", quotaSentence, [quotaFailure(perMinute, perDay)]);
const googleZero = googleBody(
  429,
  "RESOURCE_EXHAUSTED",
  `${quotaSentence} \n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-3-pro\nPlease retry in 45.578569677s.`,
);
const googleRetryIn = googleBody(429, "RESOURCE_EXHAUSTED", `${quotaSentence} \nPlease retry in 26.1s.`);
const googleHelp = [{ "@type": "type.googleapis.com/google.rpc.Help", links: [] }];
const googleTokens =
  "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).";
const googleBadRequest = [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [] }];
const googleUnknownName =
  "Invalid JSON payload received. Unknown name \"const\" at 'tools[0].function_declarations[5].parameters': Cannot find field.";
const googleNoModel =
  "models/gemini-pro is not found for API version v1beta, or is not supported for generateContent. Call ListModels " +
  "to see the list of available models and their supported methods.";
const googleSuspended = "Permission denied: Consumer 'api_key:AIza…' has been suspended.";
const googleUnregistered =
  "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form " +
  "of API consumer identity to call this API.";
const googleBadKey = googleBody(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", [
  errorInfo("API_KEY_INVALID"),
]);
const googleExpiredKey = googleBody(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", [
  errorInfo("API_KEY_INVALID"),
]);
const googleCredentials = "Request had invalid authentication credentials. Expected OAuth 2 access token.";
const googleBusy = "The model is overloaded. Please try again later.";
const googleDemand =
  "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later.";
const googleInternal =
  "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting";
const googleFetchPrefix =
  "[GoogleGenerativeAI Error]: Error fetching from https://generativelanguage.googleapis.com/v1: ";

export const googleErrors: readonly ProviderError[] = [
  ["billing", "Google 429 daily quota despite its RetryInfo, raw body", googleDaily],
  ["billing", "Google 429 daily quota, Google SDK", googleSdkError(429, "Too Many Requests", googleDaily)],
  ["billing", "Google 429 daily and minute quota together, AI SDK", apiCallError(429, googleBoth)],
  ["billing", "Google 429 quota of zero on the free tier, AI SDK", apiCallError(429, googleZero)],
  [
    "billing",
    "Google 429 quota sentence with no quota named, AI SDK",
    apiCallError(429, googleBody(429, "RESOURCE_EXHAUSTED", quotaSentence, googleHelp)),
  ],
  ["rate_limit", "Google 429 minute quota in the same sentence, raw body", googleMinute],
  [
    "rate_limit",
    "Google 429 minute quota, Google SDK",
    googleSdkError(429, "Too Many Requests", googleMinute),
  ],
  ["rate_limit", "Google 429 minute quota, AI SDK", apiCallError(429, googleMinute)],
  ["rate_limit", "Google 429 that says when to retry, AI SDK", apiCallError(429, googleRetryIn)],
  [
    "rate_limit",
    "Google 429 exhausted without details, AI SDK",
    apiCallError(
      429,
      googleBody(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    ),
  ],
  [
    "rate_limit",
    "Google 429 flattened to text, generative-ai SDK",
    new Error(`${googleFetchPrefix}[429 Too Many Requests] Resource has been exhausted (e.g. check quota).`),
  ],
  [
    "context_overflow",
    "Google 400 input token count, raw body in an array",
    [googleBody(400, "INVALID_ARGUMENT", googleTokens)],
  ],
  [
    "context_overflow",
    "Google 400 input token count, Google SDK",
    googleSdkError(400, "Bad Request", googleBody(400, "INVALID_ARGUMENT", googleTokens)),
  ],
  [
    "context_overflow",
    "Google 413 body size, Google SDK",
    googleSdkError(
      413,
      "Request Entity Too Large",
      googleBody(
        413,
        "INVALID_ARGUMENT",
        "Maximum request body size 1048576 exceeded, actual body size 1056562",
      ),
    ),
  ],
  [
    "format_error",
    "Google 400 unknown field, AI SDK",
    apiCallError(400, googleBody(400, "INVALID_ARGUMENT", googleUnknownName, googleBadRequest)),
  ],
  ["auth", "Google 400 invalid key, Google SDK", googleSdkError(400, "Bad Request", googleBadKey)],
  ["auth", "Google 400 expired key, AI SDK", apiCallError(400, googleExpiredKey)],
  ["auth", "Google 403 without a key, raw body", googleBody(403, "PERMISSION_DENIED", googleUnregistered)],
  [
    "auth",
    "Google 401 bad credentials, AI SDK",
    apiCallError(401, googleBody(401, "UNAUTHENTICATED", googleCredentials)),
  ],
  [
    "auth_permanent",
    "Google 403 suspended consumer, Google SDK",
    googleSdkError(
      403,
      "Forbidden",
      googleBody(403, "PERMISSION_DENIED", googleSuspended, [errorInfo("CONSUMER_SUSPENDED")]),
    ),
  ],
  [
    "auth_permanent",
    "Google 403 leaked key, AI SDK",
    apiCallError(
      403,
      googleBody(
        403,
        "PERMISSION_DENIED",
        "Your API key was reported as leaked. Please use another API key.",
      ),
    ),
  ],
  [
    "auth_permanent",
    "Google 403 no right on the project, AI SDK",
    apiCallError(403, googleBody(403, "PERMISSION_DENIED", "The caller does not have permission")),
  ],
  [
    "auth_permanent",
    "Google 400 unsupported location, AI SDK",
    apiCallError(
      400,
      googleBody(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
    ),
  ],
  [
    "model_not_found",
    "Google 404 unknown model, AI SDK",
    apiCallError(404, googleBody(404, "NOT_FOUND", googleNoModel)),
  ],
  ["model_not_found", "Google 404 unknown model, raw body", googleBody(404, "NOT_FOUND", googleNoModel)],
  [
    "overloaded",
    "Google 503 overloaded, Google SDK",
    googleSdkError(503, "Service Unavailable", googleBody(503, "UNAVAILABLE", googleBusy)),
  ],
  [
    "overloaded",
    "Google 503 high demand, AI SDK",
    apiCallError(503, googleBody(503, "UNAVAILABLE", googleDemand)),
  ],
  [
    "overloaded",
    "Google 503 deadline expired, AI SDK (K1)",
    apiCallError(503, googleBody(503, "UNAVAILABLE", "Deadline expired before operation could complete.")),
  ],
  [
    "server_error",
    "Google 500 internal, Google SDK",
    googleSdkError(500, "Internal Server Error", googleBody(500, "INTERNAL", googleInternal)),
  ],
  [
    "timeout",
    "Google 504 deadline exceeded, AI SDK",
    apiCallError(504, googleBody(504, "DEADLINE_EXCEEDED", "Deadline Exceeded")),
  ],
  [
    "content_blocked",
    "Google prompt blocked inside a 200",
    { promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: {} },
  ],
  [
    "content_blocked",
    "Google candidate stopped for safety inside a 200",
    { candidates: [{ finishReason: "SAFETY", index: 0 }] },
  ],
  [
    "content_blocked",
    "Google candidate stopped for recitation inside a 200",
    { candidates: [{ finishReason: "RECITATION" }] },
  ],
  [
    "content_blocked",
    "Google candidate blocked, generative-ai SDK",
    new Error("[GoogleGenerativeAI Error]: Candidate was blocked due to SAFETY"),
  ],
];
