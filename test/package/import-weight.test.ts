import { expect, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

/**
 * A program that imports its argument and prints the URL of every module that was resolved meanwhile, required or
 * imported.
 */
const recorder = `
  import { registerHooks } from "node:module";
  const loaded = new Set();
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      loaded.add(resolved.url);
      return resolved;
    },
  });
  const imported = await import(process.argv[1]);
  if (process.argv[2]) await new Function("imported", "return (" + process.argv[2] + ")(imported)")(imported);
  process.stdout.write(JSON.stringify([...loaded]));
`;

const heavy = ["sqlite", "http", "https", "http2", "net", "tls", "dgram"];

test("importing reeve loads no package, driver or server", async () => {
  const loaded = await load("reeve");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/entries\/index\.js$/u));
  expect(loaded.filter(isPackage)).toEqual([]);
  expect(loaded.filter((url) => heavy.some((name) => url === `node:${name}`))).toEqual([]);
  expect(loaded.filter(isOfServer)).toEqual([]);
});

test("importing reeve/server loads the server and hono, but nothing of editors", async () => {
  const loaded = await load("reeve/server");
  expect(loaded.filter(isOfServer)).toContainEqual(expect.stringMatching(/\/server\/server\.js$/u));
  expect(loaded).toContainEqual(expect.stringMatching(/\/node_modules\/hono\//u));
  expect(loaded.filter((url) => url.includes("@agentclientprotocol"))).toEqual([]);
});

test("importing the middleware loads no package, driver or server", async () => {
  const loaded = await load("reeve/middleware");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/entries\/middleware\.js$/u));
  expect(loaded.filter(isPackage)).toEqual([]);
  expect(loaded.filter((url) => heavy.some((name) => url === `node:${name}`))).toEqual([]);
});

test("importing the kernel loads the kernel alone: no Node module, no package, no other layer", async () => {
  const loaded = await load("reeve/kernel");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/kernel\/index\.js$/u));
  expect(loaded.filter((url) => !/\/dist\/(?:kernel\/|entries\/kernel\.js$)/u.test(url))).toEqual([]);
});

test("importing the guardrails loads the agents' layer, the kernel and no pattern engine", async () => {
  const loaded = await load("reeve/guardrails");
  expect(loaded).toContainEqual(
    expect.stringMatching(/\/dist\/agents\/interception\/guardrails\/index\.js$/u),
  );
  const own =
    /\/dist\/(?:(?:entries|assembly)\/guardrails\.js|kernel\/|agents\/|capabilities\/tools\/(?:text|re2)-pattern\.js)/u;
  // `node:module` loads the engine of patterns with the first pattern.
  expect(loaded.filter((url) => !own.test(url) && url !== "node:module")).toEqual([]);
});

test("importing the architectures loads the agents' layer and the kernel alone", async () => {
  const loaded = await load("reeve/architectures");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/agents\/architectures\/index\.js$/u));
  expect(
    loaded.filter((url) => !/\/dist\/(?:kernel\/|agents\/|entries\/architectures\.js$)/u.test(url)),
  ).toEqual([]);
});

test("importing the tools loads no package, driver or server", async () => {
  const loaded = await load("reeve/tools");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/capabilities\/tools\/index\.js$/u));
  expect(loaded.filter(isPackage)).toEqual([]);
  expect(loaded.filter((url) => heavy.some((name) => url === `node:${name}`))).toEqual([]);
});

test("importing the desktop loads no package, driver or server before its first use", async () => {
  const loaded = await load("reeve/desktop");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/capabilities\/desktop\/index\.js$/u));
  expect(loaded.filter(isPackage)).toEqual([]);
  expect(loaded.filter((url) => heavy.some((name) => url === `node:${name}`))).toEqual([]);
});

test("importing the test doubles loads no package and no contract suite", async () => {
  const loaded = await load("reeve/testing");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/testing\/index\.js$/u));
  expect(loaded.filter((url) => isPackage(url) || url.includes("/contracts/"))).toEqual([]);
});

test("importing the contract suites loads no package", async () => {
  const loaded = await load("reeve/testing/contracts");
  expect(loaded).toContainEqual(expect.stringMatching(/\/dist\/testing\/contracts\/index\.js$/u));
  expect(loaded.filter(isPackage)).toEqual([]);
});

/** Code that opens a runtime and executes one run. */
const oneRun = (step: string): string => `async ({ openRuntime }) => {
  const runtime = await openRuntime();
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const message = { role: "assistant", content: [] };
  const generate = async () => ({ message, stopReason: "stop", usage });
  const models = { main: { provider: "openai", modelId: "gpt-5", generate } };
  const { Transcript } = await import("reeve/kernel");
  const transcript = Transcript.of([]);
  const run = async (ctx) => { ${step}; return null; };
  const { status } = await (await runtime.submit({ id: "one", models, run }, null)).result();
  await runtime.close();
  if (status !== "completed") throw new Error(status);
}`;

test("prices are loaded with the first model call and not before", async () => {
  const without = await load("reeve", oneRun('await ctx.step("a", async () => 1)'));
  expect(without.filter(isPackage)).toEqual([]);
  expect(without.filter(isPriceList)).toEqual([]);
  const priced = await load("reeve", oneRun("await ctx.llm({ transcript })"));
  expect(priced.filter(isPackage)).toEqual([]);
  expect(priced.filter(isPriceList)).toHaveLength(1);
});

test.for([
  { kind: "a package", specifier: "zod", seen: /\/node_modules\/zod\// },
  { kind: "a module of Node", specifier: "node:sqlite", seen: /^node:sqlite$/ },
  { kind: "a module that a package requires", specifier: "ajv", seen: /\/node_modules\/fast-deep-equal\// },
])("the test recorder of imports sees $kind", async ({ specifier, seen }) => {
  expect(await load(specifier)).toContainEqual(expect.stringMatching(seen));
});

async function load(specifier: string, then = ""): Promise<readonly string[]> {
  const args = ["--input-type=module", "--eval", recorder, "--", specifier, then];
  const { code, stdout, stderr } = await runNode(args, repository);
  if (code !== 0) throw new Error(`importing ${specifier} failed: ${stderr}`);
  return JSON.parse(stdout) as readonly string[];
}

function isOfServer(url: string): boolean {
  return url.includes("/dist/surfaces/") || url.includes("/node_modules/hono/");
}

function isPriceList(url: string): boolean {
  return url.endsWith("/dist/capabilities/prices/price-list.js");
}

function isPackage(url: string): boolean {
  return url.includes("/node_modules/");
}
