import { describe, expect, test } from "vitest";
import { classifyError, Fault } from "../../../src/kernel/index.ts";
import { withoutSecrets } from "../../../src/kernel/base/secret-text.ts";

const key = "sk-proj-4f9Ab3kQ2mZ8xY7wV6uT5sR4";

describe("secrets in error messages", () => {
  test.for([
    [`Incorrect API key provided: ${key}.`, "Incorrect API key provided: [secret]."],
    ["invalid x-api-key: sk-ant-api03-aB3_dE5fG7hJ9", "invalid x-api-key: [secret]"],
    ["header Authorization: Bearer abc123.def456-ghi", "header Authorization: Bearer [secret]"],
    ['{"apiKey":"0123456789abcdef"}', '{"apiKey":"[secret]"}'],
    [
      "GET https://a.example/v1?key=AIzaSyA1&alt=json failed",
      "GET https://a.example/v1?key=[secret]&alt=json failed",
    ],
    ["connect to postgres://ann:hunter2@db.example/x", "connect to postgres://[secret]@db.example/x"],
    ["AKIAIOSFODNN7EXAMPLE is not authorised", "[secret] is not authorised"],
    ["jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.sig-1 expired", "jwt [secret] expired"],
    ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[secret]"],
  ] as const)("a secret is replaced in: %s", ([text, shown]) => {
    expect(withoutSecrets(text)).toBe(shown);
    expect(withoutSecrets(shown)).toBe(shown);
  });

  test.for([
    "password: required",
    "Token budget exceeded: 4200 > 4000",
    "max_tokens=4096 is above 2048",
    "the key of step 12 is missing",
    "task-specific instructions were not followed",
    "run_01HZX3 was not found at sqlite:./reeve.db",
    "429 Too Many Requests: basic plan allows 3 requests per minute",
  ])("a text without a secret stays unchanged: %s", (text) => {
    expect(withoutSecrets(text)).toBe(text);
  });

  test("secrets are removed from stored faults, their causes and classified provider errors", () => {
    const error = Object.assign(new Error(`401 Incorrect API key provided: ${key}`), { status: 401 });
    const { message } = classifyError(error);
    const fault = new Fault("model_auth", `refused ${key}`, {
      cause: new Error(`Bearer ${key}`, { cause: error }),
    });
    for (const said of [message, Fault.from(error).message, JSON.stringify(fault.toJSON())]) {
      expect(said).toContain("[secret]");
      expect(said).not.toContain("4f9Ab3kQ2m");
    }
  });

  test("cutting a long message leaves no part of a secret", () => {
    const { message } = classifyError(new Error(`${"x".repeat(480)} ${key}`));
    expect(message).not.toContain("sk-proj");
  });

  test("the search for secrets takes time linear in the length of the text", () => {
    const long = "sk-".repeat(100_000) + "a:".repeat(100_000) + "http://".repeat(50_000);
    expect(withoutSecrets(long)).toBe(long);
  });
});
