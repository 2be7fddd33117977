import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classifyError } from "../../../src/kernel/errors/classify-error.ts";
import { errorKinds, type ErrorKind } from "../../../src/kernel/base/fault.ts";
import { anthropicErrors } from "./provider-errors/anthropic.ts";
import { googleErrors } from "./provider-errors/google.ts";
import { ollamaErrors } from "./provider-errors/ollama.ts";
import { openAiErrors } from "./provider-errors/openai.ts";
import { openRouterErrors } from "./provider-errors/openrouter.ts";
import { platformErrors } from "./provider-errors/platform.ts";
import {
  anthropicBody,
  anthropicSdkError,
  apiCallError,
  googleBody,
  googleSdkError,
  openAiBody,
  openAiSdkError,
  openRouterBody,
  quotaFailure,
  retryInfo,
  type ProviderError,
} from "./provider-errors/shapes.ts";

const suites: Readonly<Record<string, readonly ProviderError[]>> = {
  OpenAI: openAiErrors,
  Anthropic: anthropicErrors,
  Google: googleErrors,
  OpenRouter: openRouterErrors,
  Ollama: ollamaErrors,
  platform: platformErrors,
};
const kinds = Object.keys(errorKinds) as ErrorKind[];

describe("B3: classifyError() reports whether the response was refused before its body", () => {
  const limited = openRouterBody(429, "slow down");
  test.each<[boolean, string, unknown]>([
    [true, "AI SDK, status 429", apiCallError(429, limited)],
    [true, "openai, status 500", openAiSdkError(500, openAiBody("oops", "server_error"))],
    [true, "anthropic, status 529", anthropicSdkError(529, anthropicBody("overloaded_error", "Overloaded"))],
    [true, "wrapped by AI SDK retries", { name: "AI_RetryError", lastError: apiCallError(503, limited) }],
    [true, "as a cause", new Error("failed", { cause: apiCallError(503, limited) })],
    [false, "AI SDK, an error body inside a 200", apiCallError(200, limited)],
    [
      true,
      "a refused credential inside a 200",
      apiCallError(200, openRouterBody(401, "No auth credentials found")),
    ],
    [true, "an unknown model in an event of a stream", { error: { code: "model_not_found" } }],
    [
      true,
      "a key that the AI SDK misses",
      Object.assign(new Error("no key"), { name: "AI_LoadAPIKeyError" }),
    ],
    [
      false,
      "openai, an error event of a stream",
      Object.assign(new Error("x"), { status: undefined, code: 429, error: limited }),
    ],
    [false, "a body by itself", limited],
    [false, "a status in the message text", new Error("429 Too Many Requests")],
    [false, "a cut connection", Object.assign(new Error("socket hang up"), { code: "ECONNRESET" })],
    [false, "nothing", undefined],
  ])("B3: classifyError() reports refused as %s for %s", (refused, _name, error) => {
    expect(classifyError(error).refused).toBe(refused);
  });
});

describe.each(Object.entries(suites))("classifyError() on an error of %s", (_provider, rows) => {
  test.each(rows)("classifyError() returns the kind %s: %s", (kind, _name, error) => {
    expect(classifyError(error)).toMatchObject({ kind, retryable: errorKinds[kind].retryable });
  });
});

test.each<[ErrorKind, object]>([
  ["context_overflow", { code: "context_length_exceeded" }],
  ["context_overflow", { type: "request_too_large" }],
  ["content_blocked", { code: "content_policy_violation" }],
  ["content_blocked", { code: "content_filter" }],
  ["content_blocked", { finish_reason: "content_filter" }],
  ["billing", { type: "billing_error" }],
  ["billing", { details: [{ reason: "BILLING_DISABLED" }] }],
  ["billing", { metadata: { error_type: "payment_required" } }],
  ["model_not_found", { code: "model_not_found" }],
  ["model_not_found", { code: "DeploymentNotFound" }],
  ["auth", { code: "invalid_api_key" }],
  ["auth", { type: "authentication_error" }],
  ["auth", { details: [{ reason: "API_KEY_INVALID" }] }],
  ["auth_permanent", { details: [{ reason: "CONSUMER_SUSPENDED" }] }],
  ["auth_permanent", { details: [{ reason: "SERVICE_DISABLED" }] }],
  ["auth_permanent", { status: "PERMISSION_DENIED" }],
  ["rate_limit", { status: "RESOURCE_EXHAUSTED" }],
  ["overloaded", { type: "overloaded_error" }],
  ["timeout", { status: "DEADLINE_EXCEEDED" }],
  ["timeout", { name: "AbortError" }],
  ["server_error", { type: "api_error" }],
  ["format_error", { status: "INVALID_ARGUMENT" }],
  ["format_error", { name: "AI_InvalidPromptError" }],
])("classifyError() needs no message and status to recognise %s from its code: %j", (kind, error) => {
  expect(classifyError({ error: { message: "", ...error } }).kind).toBe(kind);
});

test.each<[ErrorKind, string]>([
  ["auth", "Incorrect API key provided: sk-x."],
  ["auth", "API key not valid. Please pass a valid API key."],
  ["billing", "This API method requires billing to be enabled."],
  ["model_not_found", "The model `gpt-5.9` does not exist or you do not have access to it."],
  ["context_overflow", "This model's maximum context length is 8192 tokens."],
  ["content_blocked", "Your request was rejected as a result of our safety system."],
])("classifyError() needs no code and status to recognise %s from its message: %s", (kind, message) => {
  expect(classifyError(new Error(message)).kind).toBe(kind);
});

test("the tests of classifyError() have at least four provider errors of each kind, with unique names", () => {
  const rows = Object.values(suites).flat();
  const thin = kinds.filter((kind) => rows.filter(([rowKind]) => rowKind === kind).length < 4);
  expect(thin).toEqual([]);
  expect(new Set(rows.map(([, name]) => name)).size).toBe(rows.length);
});

test("errorKinds is frozen, and an error kind is retryable exactly if its retry policy is not never", () => {
  expect(kinds).toHaveLength(12);
  expect(Object.isFrozen(errorKinds)).toBe(true);
  for (const kind of kinds) {
    const { retry, retryable, status } = errorKinds[kind];
    expect(Object.isFrozen(errorKinds[kind]) && Object.isFrozen(status)).toBe(true);
    expect(retryable).toBe(retry !== "never");
  }
  expect(errorKinds.context_overflow.retry).toBe("compact");
});

describe("classifyError(): status, code and message", () => {
  test("classifyError() finds the outer status and the provider's code and message inside an SDK's error", () => {
    const body = googleBody(
      400,
      "INVALID_ARGUMENT",
      "The input token count (2) exceeds the maximum number of tokens",
    );
    expect(classifyError(googleSdkError(400, "Bad Request", body))).toEqual({
      kind: "context_overflow",
      retryable: true,
      refused: true,
      status: 400,
      providerCode: "INVALID_ARGUMENT",
      message: "The input token count (2) exceeds the maximum number of tokens",
    });
  });

  test.each([
    ["insufficient_quota", openAiSdkError(429, openAiBody("no", "insufficient_quota", "insufficient_quota"))],
    ["overloaded_error", anthropicSdkError(529, anthropicBody("overloaded_error", "Overloaded"))],
    ["RESOURCE_EXHAUSTED", apiCallError(429, googleBody(429, "RESOURCE_EXHAUSTED", "no"))],
    ["PERMISSION_DENIED", googleSdkError(403, "Forbidden", googleBody(403, "PERMISSION_DENIED", "no"))],
    ["ECONNRESET", new TypeError("fetch failed", { cause: { code: "ECONNRESET" } })],
    [undefined, openRouterBody(429, "Provider returned error")],
  ])("classifyError() reports the provider code %s", (code, error) => {
    expect(classifyError(error).providerCode).toBe(code);
  });

  test("classifyError() never reports a success status, but reports an error status inside its body", () => {
    expect(classifyError({ statusCode: 200 })).not.toHaveProperty("status");
    expect(classifyError(apiCallError(200, openRouterBody(502, "bad gateway"))).status).toBe(502);
  });

  test("classifyError() prefers the upstream provider's message to a vague one", () => {
    const error = openRouterBody(429, "Provider returned error", {
      raw: "glm is temporarily rate-limited upstream",
    });
    expect(classifyError(error).message).toBe("glm is temporarily rate-limited upstream");
  });

  test("classifyError() reads status and kind from an error that is only a text", () => {
    expect(classifyError("Error code: 402 - payment is due")).toMatchObject({ kind: "billing", status: 402 });
    expect(classifyError('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}').kind).toBe(
      "overloaded",
    );
  });
});

describe("classifyError(): the delay that the provider asks for", () => {
  const now = 784_111_777_000; // Sun, 06 Nov 1994 08:49:37 GMT
  const limited = openAiBody("slow down", "requests", "rate_limit_exceeded");
  const minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";

  test.each<[string, number, object]>([
    ["seconds", 20_000, { "retry-after": "20" }],
    ["fractional seconds", 1_500, { "retry-after": "1.5" }],
    ["a number", 7_000, { "retry-after": 7 }],
    ["any letter case", 3_000, { "Retry-After": "3" }],
    ["a Headers object", 4_000, new Headers({ "Retry-After": "4" })],
    ["milliseconds before seconds", 250, { "retry-after": "1", "retry-after-ms": "250" }],
    ["a date in the future", 60_000, { "retry-after": "Sun, 06 Nov 1994 08:50:37 GMT" }],
    ["a date in the past, as no delay", 0, { "retry-after": "Sun, 06 Nov 1994 08:00:00 GMT" }],
    ["a reset in seconds", 1_000, { "x-ratelimit-reset-requests": "1s" }],
    ["a reset in minutes", 360_000, { "x-ratelimit-reset-requests": "6m0s" }],
    [
      "retry-after, which takes precedence over a reset",
      2_000,
      { "retry-after": "2", "x-ratelimit-reset-requests": "6m0s" },
    ],
  ])("classifyError() reads retryAfterMs from %s", (_form, wait, headers) => {
    expect(classifyError(apiCallError(429, limited, headers), { now }).retryAfterMs).toBe(wait);
    expect(classifyError(openAiSdkError(429, limited, headers), { now }).retryAfterMs).toBe(wait);
  });

  test.each(["soon", "-5", "Sun, 06 Foo 1994 08:50:37 GMT", "", "9".repeat(400)])(
    "classifyError() sets no retryAfterMs for the invalid header %j",
    (text) => {
      expect(classifyError(apiCallError(429, limited, { "retry-after": text }), { now })).not.toHaveProperty(
        "retryAfterMs",
      );
    },
  );

  test("classifyError() computes retryAfterMs correctly for every date from 1970 to 9999", () => {
    const dates = fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true });
    fc.assert(
      fc.property(dates, (date) => {
        const error = apiCallError(429, limited, { "retry-after": date.toUTCString() });
        expect(classifyError(error, { now: 0 }).retryAfterMs).toBe(
          Math.floor(date.getTime() / 1_000) * 1_000,
        );
      }),
    );
  });

  test("classifyError() sets no retryAfterMs from a date when the current time is unknown", () => {
    const error = apiCallError(429, limited, { "retry-after": "Sun, 06 Nov 1994 08:50:37 GMT" });
    expect(classifyError(error)).not.toHaveProperty("retryAfterMs");
  });

  test.each([
    ["34s", 34_000],
    ["36.429760048s", 36_430],
  ])("classifyError() reads retryAfterMs from Google's RetryInfo %s", (delay, wait) => {
    const body = googleBody(429, "RESOURCE_EXHAUSTED", "quota", [quotaFailure(minute), retryInfo(delay)]);
    expect(classifyError(googleSdkError(429, "Too Many Requests", body)).retryAfterMs).toBe(wait);
  });

  test.each([
    ["Please try again in 1.574s. Visit us", 1_574],
    ["Please try again in 644ms.", 644],
    ["Please try again in 7m12s. Visit us", 432_000],
    ["Please retry after 20 seconds.", 20_000],
    ["Please retry after 20 milliseconds.", 20],
  ])(
    "classifyError() reads retryAfterMs from the sentence %j when a stream has no headers",
    (sentence, wait) => {
      expect(classifyError(openAiBody(sentence, "tokens", "rate_limit_exceeded")).retryAfterMs).toBe(wait);
    },
  );

  test("classifyError() keeps retryAfterMs for overload, but not the reset header of a rate limit", () => {
    const busy = anthropicBody("overloaded_error", "Overloaded");
    expect(classifyError(apiCallError(529, busy, { "retry-after": "5" })).retryAfterMs).toBe(5_000);
    expect(classifyError(apiCallError(529, busy, { "x-ratelimit-reset-requests": "1s" }))).not.toHaveProperty(
      "retryAfterMs",
    );
  });

  test("classifyError() drops retryAfterMs for kinds of errors that waiting does not fix", () => {
    const daily = googleBody(429, "RESOURCE_EXHAUSTED", "quota", [
      quotaFailure("RequestsPerDay"),
      retryInfo("36s"),
    ]);
    expect(classifyError(daily)).toMatchObject({ kind: "billing" });
    expect(classifyError(daily)).not.toHaveProperty("retryAfterMs");
    expect(classifyError(apiCallError(413, {}, { "retry-after": "5" }))).not.toHaveProperty("retryAfterMs");
  });
});

describe("classifyError() on arbitrary values", () => {
  const throwing = (): never => {
    throw new Error("hostile");
  };
  const keys = [
    "message",
    "name",
    "code",
    "status",
    "error",
    "errors",
    "cause",
    "headers",
    "lastError",
    "response",
    "data",
  ];
  const hostileGetters = Object.defineProperties(
    {},
    Object.fromEntries(keys.map((key) => [key, { get: throwing }])),
  );
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const traps = Object.fromEntries(Reflect.ownKeys(Reflect).map((trap) => [trap, throwing]));
  const cyclic: Record<string, unknown> = { message: "round", errors: [] };
  Object.assign(cyclic, { cause: cyclic, error: cyclic, lastError: cyclic, data: [cyclic] });
  const bottomless: object = new Proxy(
    {},
    { get: (_target, key) => (key === "message" ? "deeper" : bottomless) },
  );
  const hostile: readonly unknown[] = [
    hostileGetters,
    revoked.proxy,
    new Proxy({}, traps),
    cyclic,
    bottomless,
    [revoked.proxy],
    { errors: revoked.proxy, details: { length: Number.NaN }, cause: hostileGetters },
    { status: 429, headers: { get: throwing } },
    { status: 429, headers: revoked.proxy, responseHeaders: new Proxy({}, traps) },
    { message: Symbol("message"), status: { valueOf: throwing }, code: 10n },
    { toString: throwing, toJSON: throwing },
    Symbol("thrown"),
    throwing,
    null,
    Number.NaN,
    "",
  ];
  const keyed = fc.object({ key: fc.constantFrom(...keys, "type", "responseBody", "details"), maxDepth: 6 });

  function expectKnownKind(error: unknown): void {
    const result = classifyError(error, { now: 0 });
    expect(kinds).toContain(result.kind);
    expect(result.retryable).toBe(errorKinds[result.kind].retryable);
    expect(result.message.length).toBeGreaterThan(0);
    expect(result.message.length).toBeLessThanOrEqual(500);
    const wait = result.retryAfterMs ?? 0;
    expect(Number.isFinite(wait) && wait >= 0).toBe(true);
  }

  test("classifyError() returns a known kind for any value", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true }), expectKnownKind),
    );
  });

  test("classifyError() returns a known kind for any value of the properties that it reads", () => {
    fc.assert(fc.property(keyed, expectKnownKind));
  });

  test("classifyError() returns a known kind for values that throw when they are read, at any place", () => {
    const holders = fc.constantFrom(
      "cause",
      "error",
      "lastError",
      "response",
      "data",
      "headers",
      "errors",
      "details",
    );
    const hostileError = fc
      .tuple(fc.nat(hostile.length - 1), holders, fc.object())
      .map(([index, holder, around]) => () => ({
        ...around,
        [holder]: index % 2 === 0 ? hostile[index] : [hostile[index]],
      }));
    fc.assert(
      fc.property(hostileError, (makeError) => {
        expectKnownKind(makeError());
      }),
    );
    for (const value of hostile) expect(() => expectKnownKind(value)).not.toThrow();
  });

  test("classifyError() reads only a part of a huge text and returns quickly", () => {
    const huge = `${"{".repeat(50_000)} ${"a ".repeat(5_000_000)}`;
    for (const error of [
      huge,
      { message: huge, responseBody: huge, error: huge },
      new Error(" ".repeat(10_000_000)),
    ]) {
      expectKnownKind(error);
    }
    expect(classifyError(`${"x".repeat(5_000)} insufficient_quota`).kind).toBe("unknown");
    expectKnownKind(`quotaid: ${"quotaid".repeat(2_000)}`);
  });

  test("classifyError() ignores the request content that an error carries", () => {
    const sent = {
      requestBodyValues: { message: "insufficient_quota" },
      config: { data: "context_length_exceeded" },
    };
    expect(classifyError({ ...sent, status: 500 }).kind).toBe("server_error");
  });
});
