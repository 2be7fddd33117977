import {
  anthropicBody,
  apiCallError,
  fetchFailed,
  openAiBody,
  openRouterBody,
  systemError,
  type ProviderError,
} from "./shapes.ts";

const limited = openAiBody("Rate limit reached for gpt-4o", "tokens", "rate_limit_exceeded");
const overloaded = anthropicBody("overloaded_error", "Overloaded");
const retryError = Object.assign(new Error("Failed after 3 attempts. Last error: Overloaded"), {
  name: "AI_RetryError",
  reason: "maxRetriesExceeded",
  errors: [apiCallError(429, limited), apiCallError(529, overloaded)],
  lastError: apiCallError(529, overloaded),
});
const socketClosed = systemError("UND_ERR_SOCKET", "other side closed");

export const platformErrors: readonly ProviderError[] = [
  ["overloaded", "AI SDK RetryError, judged by its last error", retryError],
  [
    "billing",
    "AggregateError, judged by its last error",
    new AggregateError([
      new Error("x"),
      apiCallError(
        402,
        openRouterBody(402, "Insufficient credits. Add more using https://openrouter.ai/settings/credits"),
      ),
    ]),
  ],
  [
    "server_error",
    "AI SDK 200 cut off by a closed socket",
    Object.assign(new Error("Failed to process successful response"), {
      name: "AI_APICallError",
      statusCode: 200,
      cause: new TypeError("terminated", { cause: socketClosed }),
    }),
  ],
  [
    "server_error",
    "Anthropic SDK connection error around a closed socket",
    new Error("Connection error.", { cause: fetchFailed(socketClosed) }),
  ],
  ["server_error", "undici terminated with no cause", new TypeError("terminated")],
  ["server_error", "connection reset by peer", systemError("ECONNRESET", "read ECONNRESET")],
  ["server_error", "broken pipe", systemError("EPIPE", "write EPIPE")],
  [
    "server_error",
    "AI SDK 200 whose body is no JSON",
    Object.assign(new Error("Invalid JSON response"), {
      name: "AI_APICallError",
      statusCode: 200,
      responseBody: "{malformed json: <<<",
      cause: Object.assign(new SyntaxError("Unexpected token m"), { name: "AI_JSONParseError" }),
    }),
  ],
  [
    "server_error",
    "AI SDK OpenAI-compatible stream that was cut",
    Object.assign(new Error("Response stream ended without a finish reason."), {
      name: "AI_InvalidResponseDataError",
    }),
  ],
  ["server_error", "socket hang up", new Error("socket hang up")],
  [
    "server_error",
    "Cloudflare 520 page",
    {
      statusCode: 520,
      responseBody: "<html><title>520: Web server is returning an unknown error</title></html>",
    },
  ],
  ["timeout", "abort signal's AbortError (K3)", new DOMException("This operation was aborted", "AbortError")],
  [
    "timeout",
    "abort signal's TimeoutError",
    new DOMException("The operation was aborted due to timeout", "TimeoutError"),
  ],
  [
    "timeout",
    "connect timed out",
    fetchFailed(systemError("ETIMEDOUT", "connect ETIMEDOUT 104.18.6.192:443")),
  ],
  [
    "timeout",
    "undici body timeout",
    new TypeError("terminated", { cause: systemError("UND_ERR_BODY_TIMEOUT", "Body Timeout Error") }),
  ],
  [
    "timeout",
    "undici connect timeout",
    fetchFailed(systemError("UND_ERR_CONNECT_TIMEOUT", "Connect Timeout Error")),
  ],
  ["auth", "bare 401 of a proxy", { response: { status: 401, data: "Unauthorized" } }],
  ["auth", "bare 403 of a proxy, which proves nothing permanent (K2)", { status: 403 }],
  [
    "rate_limit",
    "axios error with a 429",
    Object.assign(new Error("Request failed with status code 429"), {
      code: "ERR_BAD_REQUEST",
      response: { status: 429, data: {} },
    }),
  ],
  [
    "context_overflow",
    "bare 413 of a proxy",
    { statusCode: 413, responseBody: "<html><h1>413 Request Entity Too Large</h1></html>" },
  ],
  ["unknown", "a plain Error", new Error("boom")],
  ["unknown", "an empty object", {}],
  ["unknown", "undefined", undefined],
  ["unknown", "a broken stream line", new SyntaxError("Unexpected end of JSON input")],
];
