import { describe, expect, test } from "vitest";
import { classifyError, Fault } from "../../../src/kernel/index.ts";
import { withoutSecrets } from "../../../src/kernel/base/text.ts";

const key = "sk-proj-4f9Ab3kQ2mZ8xY7wV6uT5sR4";

/** A private key in PEM form, with an invented body. */
function pem(kind: string): string {
  const line = (edge: string): string => `-----${edge} ${kind}PRIVATE KEY-----`;
  return `${line("BEGIN")}\n${"aB3dE5fG7hJ9kL1m\n".repeat(8)}${line("END")}`;
}

/** Keys and hashes in their usual forms. They are joined so that no scanner of secrets finds them here. */
const awsSecret = ["wJalrXUtnFEMI", "K7MDENG", "bPxRfiCYEXAMPLEKEY"].join("/");
const hexKey = ["0f3a9c7d51b24e68", "8ad0c94e17f6b235"].join("");
const gitHash = "3b18e512dba79e4c8300dd08aeb37f8e728b8dad";

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
    [`key:\n${pem("RSA ")}\nend`, "key:\n[secret]\nend"],
    [`{"key":"${pem("").replaceAll("\n", "\\n")}"}`, '{"key":"[secret]"}'],
    [`cut off: ${pem("EC ").slice(0, 90)}`, "cut off: [secret]"],
    [`${["npm", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"].join("_")} expired`, "[secret] expired"],
    ["aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzKEY", "aws_secret_access_key = [secret]"],
    ["aws_session_token=FwoGZXIvYXdzEBYaDNOt4v1", "aws_session_token=[secret]"],
    [
      `401 for ${["SG", "aB3dE5fG7hJ9kL1m", "nP5qR7sT9uV1wX3yZ5aB7cD9eF1gH3j"].join(".")}`,
      "401 for [secret]",
    ],
    [`bad signature, ${["whsec", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9v"].join("_")}`, "bad signature, [secret]"],
    [`${["dop", "v1", "0123456789abcdef".repeat(4)].join("_")} was revoked`, "[secret] was revoked"],
    ["AccountName=store;AccountKey=aB3dE5fG7hJ9kL1mN3pQ5r==;x", "AccountName=store;AccountKey=[secret];x"],
    [
      `client secret ${["abc8Q", "dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"].join("~")} is wrong`,
      "client secret [secret] is wrong",
    ],
    ["Cookie: sid=abc; theme=dark", "Cookie: [secret]"],
    ["login with password=correcthorse failed", "login with password=[secret] failed"],
    ["api_key: abcdefgh", "api_key: [secret]"],
    ["user=ann&pwd=open&x=1", "user=ann&pwd=[secret]&x=1"],
    ['{"password":"correct horse, battery; staple"}', '{"password":"[secret]"}'],
    ['body: "{\\"clientSecret\\":\\"abcdefgh\\"}"', 'body: "{\\"clientSecret\\":\\"[secret]\\"}"'],
    [`{"password":"it's open"}`, '{"password":"[secret]"}'],
    ["{ passphrase: 'open sesame' }", "{ passphrase: '[secret]' }"],
    ["Authorization: Bearer correcthorse", "Authorization: Bearer [secret]"],
    ['{"authorization":"Basic YWJjOmRlZg=="}', '{"authorization":"Basic [secret]"}'],
    ["set-cookie: sid=s%3Aabc.def; Path=/; HttpOnly\nserver: x", "set-cookie: [secret]\nserver: x"],
    ['{"set-cookie":["sid=abc; Path=/","csrf=def"],"age":"0"}', '{"set-cookie":["[secret]"],"age":"0"}'],
    [`not authorised: ${awsSecret}.`, "not authorised: [secret]."],
    [`AWS_KEYS="AKIAIOSFODNN7EXAMPLE:${awsSecret}"`, 'AWS_KEYS="[secret]:[secret]"'],
    [`ran with ${awsSecret} eu-west-1`, "ran with [secret] eu-west-1"],
    [`401 for ${hexKey}`, "401 for [secret]"],
    [`Invalid API key ${hexKey}!`, "Invalid API key [secret]!"],
    [
      `run_7f failed: the key "${hexKey}${hexKey}" was revoked`,
      'run_7f failed: the key "[secret]" was revoked',
    ],
    [`unknown caller (${hexKey.toUpperCase()})`, "unknown caller ([secret])"],
    [`X=${awsSecret}`, "X=[secret]"],
    [`export X=${awsSecret} failed`, "export X=[secret] failed"],
    [`X=${hexKey}`, "X=[secret]"],
    [`GET /?x=${encodeURIComponent(awsSecret)}&y=1`, "GET /?x=[secret]&y=1"],
    [`to=%2Fa%3Fx%3D${encodeURIComponent(awsSecret)}`, "to=%2Fa%3Fx%3D[secret]"],
    ["to=%2Fa%3Fapi_key%3Dabcdefgh", "to=%2Fa%3Fapi_key%3D[secret]"],
    [`wallet 0x${hexKey}${hexKey} is empty`, "wallet [secret] is empty"],
    [`request failed with ${hexKey}`, "request failed with [secret]"],
    [`expected password, got ${hexKey}`, "expected password, got [secret]"],
    [`commit 12 was signed by ${hexKey}`, "commit 12 was signed by [secret]"],
  ] as const)("secrets in an error message are replaced in: %s", ([text, shown]) => {
    expect(withoutSecrets(text)).toBe(shown);
    expect(withoutSecrets(shown)).toBe(shown);
  });

  test.for([
    "password: required",
    '{"password":"Required."}',
    "invalid apiKey: expected a string",
    "invalid token: unexpected end of input",
    "the header authorization: missing",
    "credentials: null",
    "Token budget exceeded: 4200 > 4000",
    "max_tokens=4096 is above 2048",
    "the key of step 12 is missing",
    "task-specific instructions were not followed",
    "run_01HZX3 was not found at sqlite:./reeve.db",
    "429 Too Many Requests: basic plan allows 3 requests per minute",
    "cookie: required",
    "the cookie banner covers 3 buttons",
    "-----BEGIN CERTIFICATE-----\nMIIB1234\n-----END CERTIFICATE-----",
    "npm_config_registry is not set",
    "google does not fetch image/png from file:///etc/passwd: fetch it first",
    "ENOENT: no such file: /run/secrets/credentials: create the file",
    "client id 12 and session key names",
    `run_${hexKey} was not found`,
    `fatal: bad object ${gitHash}`,
    `fatal: reference is not a tree: ${gitHash}`,
    `error: pathspec '${gitHash}' did not match any files known to git`,
    `HEAD is now at ${gitHash}`,
    `checksum mismatch: expected ${hexKey}, got ${hexKey.toUpperCase()}`,
    `the content sha256:${hexKey}${hexKey} is missing`,
    `the hash of the project is ${hexKey}${hexKey}; trust it again`,
    `request id: ${hexKey}, trace_id=${hexKey}`,
    `{"requestId":"${hexKey}"}`,
    `ENOENT: /cache/${hexKey}/file and ./blobs/${gitHash}`,
    `https://git.example/repo@${gitHash}#${hexKey}`,
    `550e8400-e29b-41d4-a716-446655440000 has ${"0".repeat(40)} and ${"12345678".repeat(5)}`,
    "at Object.handle src/agents/definition/Plan2Definition/x",
    "node_modules/typescript5/lib/typescript/a",
    `cannot checkout ${gitHash}`,
    `${gitHash} is not an ancestor`,
    `branch main at ${gitHash}`,
    `container ${hexKey}${hexKey} exited`,
    `ENOENT: open ${hexKey}.json`,
    `https://host.example/app.js?v=${hexKey}`,
    "no file Users/Ann/Projects/App2/src/Main/IndexTs",
    "cannot read credentials: ENOENT",
    "authorization: denied by policy",
    "commit 3 refers to q1ZraB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5xyz",
  ])("a text without a secret is not changed by the search for secrets: %s", (text) => {
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

  test("secrets are removed from the details of a stored fault, by their shape and by their name", () => {
    const details = {
      url: `https://a.example/?key=${key}`,
      headers: { Authorization: "abc", cookie: "a=b" },
      n: 3,
      contentHash: `${hexKey}${hexKey}`,
      detail: hexKey,
    };
    expect(new Fault("model_auth", "refused", { details }).toJSON().details).toEqual({
      url: "https://a.example/?key=[secret]",
      headers: { Authorization: "[secret]", cookie: "[secret]" },
      n: 3,
      contentHash: `${hexKey}${hexKey}`,
      detail: "[secret]",
    });
  });

  test("cutting a long message leaves no part of a secret", () => {
    const { message } = classifyError(new Error(`${"x".repeat(480)} ${key}`));
    expect(message).not.toContain("sk-proj");
  });

  test("the search for secrets takes time linear in the length of the text", () => {
    const long = "sk-".repeat(100_000) + "a:".repeat(100_000) + "http://".repeat(50_000);
    for (const part of [
      "cookie:",
      "-----BEGIN PRIVATE KEY----",
      `${hexKey} `,
      `${awsSecret} `,
      "SG.",
      "abc8Q~",
      "npm_",
      "aaaaJQQJ9",
      "password=",
      "secret:",
      'password="',
      "password='\\\\",
    ])
      expect(withoutSecrets(part.repeat(20_000)).length).toBeLessThanOrEqual(part.length * 20_000);
    expect(withoutSecrets(long)).toBe(long);
  });
});
