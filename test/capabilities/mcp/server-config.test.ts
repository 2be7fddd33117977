import { expect, it } from "vitest";
import { readConfig, type ServerConfigs } from "../../../src/capabilities/mcp/server-config.ts";

const env = { TOKEN: "s3cret", HOME_DIR: "/home/ada", EMPTY: "" };

it("puts variables into command, arguments, environment, folder, address and headers", () => {
  const read = readConfig(
    {
      files: {
        command: "${HOME_DIR}/bin/files",
        args: ["--root", "${HOME_DIR}", "${PORT:-8080}", "${EMPTY}"],
        env: { KEY: "${TOKEN}" },
        cwd: "${HOME_DIR}",
      },
      web: {
        type: "http",
        url: "https://${HOST:-mcp.example}/mcp",
        headers: { authorization: "Bearer ${TOKEN}" },
      },
    },
    env,
  );
  expect(read.get("files")).toMatchObject({
    command: "/home/ada/bin/files",
    args: ["--root", "/home/ada", "8080", ""],
    env: { KEY: "s3cret" },
    cwd: "/home/ada",
  });
  expect(read.get("web")).toMatchObject({
    url: "https://mcp.example/mcp",
    headers: { authorization: "Bearer s3cret" },
  });
});

it("names the server and every variable that is missing", () => {
  const config = { github: { command: "gh-mcp", env: { A: "${GITHUB_TOKEN}", B: "${GITHUB_HOST}" } } };
  expect(() => readConfig(config, env)).toThrow(
    /^MCP server github needs GITHUB_TOKEN, GITHUB_HOST, which the environment does not set/,
  );
});

it("leaves out a server that is disabled, with whatever it needs", () => {
  expect(readConfig({ off: { disabled: true, command: "${NOT_SET}" } }, env).size).toBe(0);
});

it.for<[string, ServerConfigs, RegExp]>([
  ["neither a command nor a url", { x: {} as never }, /x is wrong: it has neither a command nor a url/],
  ["both", { x: { command: "a", url: "http://b" } }, /x is wrong: it has both/],
  [
    "the old transport",
    { x: { type: "sse" as never, url: "http://b" } },
    /x is wrong: the old SSE transport/,
  ],
  ["no address", { x: { url: "b" } }, /x is wrong: "b" is not an address/],
  ["a file for an address", { x: { url: "file:///etc/passwd" } }, /is not an address/],
  ["a time of nothing", { x: { command: "a", timeoutMs: 0 } }, /x is wrong: timeoutMs is 0/],
  [
    "a name no provider takes",
    { "my server": { command: "a" } },
    /"my server" is not a name for an MCP server/,
  ],
])("refuses %s", ([, config, problem]) => {
  expect(() => readConfig(config, env)).toThrow(problem);
});
