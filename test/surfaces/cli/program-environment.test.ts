import { expect, test } from "vitest";
import { gatewayCommand } from "../../../src/surfaces/cli/commands/gateway/program-environment.ts";

const gateway = { url: "http://127.0.0.1:1", token: "rvg_token" };

test.each([
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_CUSTOM_HEADERS",
  "ANTHROPIC_VERTEX_PROJECT_ID",
  "AWS_ACCESS_KEY_ID",
  "AWS_BEARER_TOKEN_BEDROCK",
  "AWS_PROFILE",
  "AWS_SECRET_ACCESS_KEY",
  "AZURE_OPENAI_API_KEY",
  "AZURE_OPENAI_ENDPOINT",
  "CLAUDE_CODE_OAUTH_TOKEN",
  "CLAUDE_CODE_USE_BEDROCK",
  "CLAUDE_CODE_USE_VERTEX",
  "CODEX_API_KEY",
  "GOOGLE_API_KEY",
  "GOOGLE_APPLICATION_CREDENTIALS",
  "GOOGLE_CLOUD_PROJECT",
  "GOOGLE_GENAI_USE_VERTEXAI",
  "HF_TOKEN",
  "MY_LLM_APIKEY",
  "OPENAI_ORG_ID",
  "PERPLEXITY_API_KEY",
  "SOME_API_TOKEN",
  "KEY_OF_THE_GATEWAY",
])("a program behind the gateway does not inherit %s, except if the person keeps it by name", (name) => {
  const isKey = (value: string): boolean => value === "provider-key";
  const env = { PATH: "/bin", [name]: name === "KEY_OF_THE_GATEWAY" ? "provider-key" : "1" };
  const without = gatewayCommand(["claude"], { ...gateway, isKey }, env);
  expect([Object.hasOwn(without.env, name), without.removed, without.env["PATH"]]).toEqual([
    false,
    [name],
    "/bin",
  ]);
  const kept = gatewayCommand(["claude"], { ...gateway, isKey, kept: [name] }, env);
  expect([kept.env[name], kept.removed]).toEqual([env[name], []]);
});

test.each([
  "PATH",
  "HOME",
  "ANTHROPIC_MODEL",
  "AWS_CA_BUNDLE",
  "GITHUB_TOKEN",
  "SSH_AUTH_SOCK",
  "LANG",
  "CODEX_HOME",
  "DATABASE_URL",
])("a program behind the gateway inherits %s", (name) => {
  const { env, removed } = gatewayCommand(["claude"], gateway, { [name]: "1" });
  expect([env[name], removed]).toEqual(["1", []]);
});

test("the address and the token of the gateway take precedence over environment variables of the person", () => {
  const variables = { ANTHROPIC_BASE_URL: "http://evil.example", OPENAI_API_KEY: "sk" };
  const { env, removed } = gatewayCommand(
    ["claude"],
    { ...gateway, kept: Object.keys(variables) },
    variables,
  );
  expect([env["ANTHROPIC_BASE_URL"], env["OPENAI_API_KEY"], removed]).toEqual([
    gateway.url,
    gateway.token,
    [],
  ]);
});

test.each([
  [["codex", "exec", "hi"], 1],
  [["/opt/bin/codex.cmd", "exec", "hi"], 1],
  [["npx", "codex", "exec", "hi"], 2],
  [["npx", "-y", "@openai/codex@0.169.0", "exec", "hi"], 3],
  [["pnpm", "dlx", "@openai/codex", "exec"], 3],
  [["node", "/x/node_modules/.bin/codex.js", "exec"], 2],
])(
  "reeve gateway env inserts the settings of Codex behind the program in the command %o",
  (command, place) => {
    const { args, warning } = gatewayCommand(command, gateway, {});
    expect(args.slice(0, place)).toEqual(command.slice(0, place));
    expect(args.slice(place, place + 2)).toEqual(["-c", 'model_provider="reeve"']);
    expect(args.slice(-command.slice(place).length)).toEqual(command.slice(place));
    expect(warning).toBeUndefined();
  },
);

test.each([
  [["sh", "-c", "codex exec hi"], true],
  [["git", "clone", "codex"], true],
  [["python", "report.py"], false],
])(
  "reeve gateway env does not change the command %o, and warns if it may start Codex unseen (%s)",
  (command, warns) => {
    const { args, warning } = gatewayCommand(command, gateway, {});
    expect([args, warning !== undefined]).toEqual([command, warns]);
  },
);

test("OpenCode that another program starts behind reeve gateway env receives its settings", () => {
  const { env } = gatewayCommand(["npx", "-y", "opencode-ai@1", "run"], gateway, {});
  expect(env["OPENCODE_CONFIG_CONTENT"]).toContain(gateway.token);
});
