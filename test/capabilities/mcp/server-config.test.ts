import { expect, it } from "vitest";
import {
  readConfig,
  type ServerConfig,
  type ServerConfigs,
} from "../../../src/capabilities/mcp/server-config.ts";

const env = { TOKEN: "s3cret", HOME_DIR: "/home/ada", EMPTY: "" };

it("readConfig() fills variables into command, args, env, cwd, url and headers", () => {
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

it("readConfig() names the server and every missing variable", () => {
  const config = { github: { command: "gh-mcp", env: { A: "${GITHUB_TOKEN}", B: "${GITHUB_HOST}" } } };
  expect(() => readConfig(config, env)).toThrow(
    /^MCP server github needs GITHUB_TOKEN, GITHUB_HOST, which the environment does not set/,
  );
});

it("readConfig() leaves out a disabled server, even if its variables are missing", () => {
  expect(readConfig({ off: { disabled: true, command: "${NOT_SET}" } }, env).size).toBe(0);
});

it.for<[string, ServerConfigs, RegExp]>([
  [
    "neither a command nor a url",
    { x: {} as never },
    /^invalid configuration of MCP server x: it has neither a command nor a url/,
  ],
  [
    "a command under another name",
    { x: { cmd: "a" } as never },
    /neither a command nor a url; add one of them: use command in place of cmd$/,
  ],
  [
    "a list of servers",
    [{ command: "a" }] as never,
    /^invalid configuration of mcpServers\(\): expected an object with the servers by name, not an array; use mcpServers\(/,
  ],
  [
    "a single server without its name",
    { command: "a", args: [] } as never,
    /^invalid configuration of MCP server command: expected an object with a command or a url, not "a"; servers are listed by name/,
  ],
  ["both a command and a url", { x: { command: "a", url: "http://b" } }, /server x: it has both/],
  ["the SSE transport", { x: { type: "sse" as never, url: "http://b" } }, /server x: the old SSE transport/],
  ["an invalid url", { x: { url: "b" } }, /server x: "b" is not a URL/],
  ["a file URL", { x: { url: "file:///etc/passwd" } }, /is not a URL that starts with http/],
  [
    "a timeout of 0",
    { x: { command: "a", timeoutMs: 0 } },
    /invalid timeoutMs 0 of MCP server x: expected a finite number above 0/,
  ],
  [
    "a server name that providers do not accept",
    { "my server": { command: "a" } },
    /^invalid name of an MCP server "my server"/,
  ],
  ["a server name with __", { a__b: { command: "a" } }, /^invalid name of an MCP server "a__b"/],
  ["a server name that ends with _", { a_: { command: "a" } }, /^invalid name of an MCP server "a_"/],
])("readConfig() of MCP servers refuses %s", ([, config, problem]) => {
  expect(() => readConfig(config, env)).toThrow(problem);
});

it("readConfig() ignores keys of other hosts that describe a server or approve calls in advance", () => {
  const foreign = {
    description: "Files",
    autoApprove: ["read"],
    alwaysAllow: ["read"],
    trust: true,
    gallery: true,
    dev: {},
  };
  const read = readConfig({ x: { command: "a", ...foreign } }, {});
  expect(read.get("x")).toEqual({ command: "a", args: [], env: {} });
});

it.each(["disabledTools", "excludeTools", "timeout", "envFile", "sandboxEnabled"])(
  "readConfig() refuses the key %s of other hosts, which would have no effect",
  (key) => {
    expect(() => readConfig({ x: { command: "a", [key]: 1 } }, {})).toThrow(
      `unknown option "${key}" of MCP server x`,
    );
  },
);

it("readConfig() treats a key that is undefined as absent", () => {
  const program = { command: "a", url: undefined, cwd: undefined } as unknown as ServerConfig;
  const address = { command: undefined, url: "http://b", headers: undefined } as unknown as ServerConfig;
  const read = readConfig({ program, address }, {});
  expect(read.get("program")).toEqual({ command: "a", args: [], env: {} });
  expect(read.get("address")).toEqual({ url: "http://b", headers: {} });
});
