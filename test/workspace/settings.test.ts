import { Ajv2020 } from "ajv/dist/2020.js";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadWorkspace } from "../../src/workspace/files/load.ts";
import { Notices } from "../../src/workspace/files/notices.ts";
import {
  combineSettings,
  divideSettings,
  settingsOfEnvironment,
} from "../../src/workspace/files/settings/combine-settings.ts";
import { checkSettings, readSettings } from "../../src/workspace/files/settings/read-settings.ts";
import { settingsSchema } from "../../src/workspace/files/settings/settings-schema.ts";
import { repository } from "../gates/run-node.ts";
import { testFolders } from "./folders.ts";

async function read(text: string) {
  const { project, write } = await testFolders();
  await write({ ".reeve/settings.json": text });
  const notices = new Notices();
  const path = join(project, ".reeve/settings.json");
  return { path, notices, settings: readSettings(path, notices) };
}

describe("settings.json", () => {
  test("an absent or empty settings.json has no settings", async () => {
    const { project } = await testFolders();
    expect(await readSettings(join(project, "absent.json"), new Notices())).toEqual({});
    expect(await (await read("")).settings).toEqual({});
  });

  test("a settings.json with a byte order mark and CRLF is read", async () => {
    const { settings } = await read(
      '\uFEFF{\r\n  "model": "anthropic/claude-sonnet-5",\r\n  "browser": { "useScreenshot": true }\r\n}\r\n',
    );
    expect(await settings).toEqual({ model: "anthropic/claude-sonnet-5", browser: { useScreenshot: true } });
  });

  test("an unknown key of settings.json is ignored with a warning that suggests the nearest key", async () => {
    const { settings, notices, path } = await read(
      '{ "modle": "x/y", "budget": { "maxCostUsd": 1 }, "zzzzzzzz": 1 }',
    );
    expect(await settings).toEqual({ budget: { maxCostUsd: 1 } });
    expect(notices.all).toEqual([
      { kind: "warning", path, message: 'unknown setting "modle": use "model"' },
      { kind: "warning", path, message: 'unknown setting "zzzzzzzz": remove it' },
    ]);
  });

  test.for([
    [
      '{ "permissions": { "dney": ["bash"] } }',
      'unknown setting "permissions.dney"',
      'use "permissions.deny"',
    ],
    [
      '{ "permissions": { "rules": [] } }',
      'unknown setting "permissions.rules"',
      "expected some of mode, allow",
    ],
    ['{ "permisions": { "deny": ["bash"] } }', 'unknown setting "permisions"', 'use "permissions"'],
    ['{ "budget": { "maxUsd": 1 } }', 'unknown setting "budget.maxUsd"', 'use "budget.maxCostUsd"'],
    ['{ "budgets": { "maxCostUsd": 1 } }', 'unknown setting "budgets"', 'use "budget"'],
    ['{ "sandbx": "enforce" }', 'unknown setting "sandbx"', 'use "sandbox"'],
  ])("the misspelt policy %s in settings.json is refused: %s", async ([text, what, fix]) => {
    const { settings } = await read(text ?? "");
    await expect(settings).rejects.toThrow(what);
    await expect(settings).rejects.toThrow(fix);
  });

  test.for([
    ['{ "model": 5 }', '"model"', "expected a text, not 5"],
    ['{ "maxTurns": "25" }', '"maxTurns"', "expected an integer from 1"],
    ['{ "budget": { "maxCostUsd": -1 } }', '"budget.maxCostUsd"', "expected a number from 0"],
    ['{ "budget": 5 }', '"budget"', "expected an object"],
    ['{ "tools": "some" }', '"tools"', "expected one of none, read, all"],
    ['{ "permissions": { "deny": "bash" } }', '"permissions.deny"', "expected a list of texts"],
    ['{ "desktop": { "useAccessibility": "yes" } }', '"desktop.useAccessibility"', "expected true or false"],
    ["[1]", "", "expected an object"],
    ["{", "", "invalid settings"],
  ] as const)(
    "the settings.json %s is refused with an error that names the file and the key %s",
    async ([text, key, message]) => {
      const { settings, path } = await read(text);
      await expect(settings).rejects.toThrow(expect.objectContaining({ code: "invalid_argument" }));
      const error: unknown = await settings.catch((cause: unknown) => cause);
      expect((error as Error).message).toContain(path);
      expect((error as Error).message).toContain(key);
      expect((error as Error).message).toContain(message);
    },
  );

  test("a later settings.json takes precedence, its groups are combined and its lists are joined", () => {
    const home = { model: "a/1", budget: { maxTokens: 5, maxCostUsd: 1 }, permissions: { deny: ["bash"] } };
    const project = { model: "b/2", budget: { maxTokens: 3 }, permissions: { deny: ["fetch", "bash"] } };
    expect(combineSettings(home, project, { maxTurns: 4 })).toEqual({
      model: "b/2",
      budget: { maxTokens: 3, maxCostUsd: 1 },
      permissions: { deny: ["bash", "fetch"] },
      maxTurns: 4,
    });
  });

  test("a model of another provider in settings.json does not inherit the address and the key of an earlier file", () => {
    const home = { model: "a/1", baseUrl: "http://a.example", apiKeyEnv: "A_KEY" };
    expect(combineSettings(home, { model: "b/2" })).toEqual({ model: "b/2" });
    expect(combineSettings(home, { model: "a/2" })).toEqual({ ...home, model: "a/2" });
    const own = { model: "b/2", baseUrl: "http://b.example" };
    expect(combineSettings(home, own)).toEqual(own);
    // A context window belongs to one model.
    const window = { model: "a/1", contextWindow: 9_000 };
    expect(combineSettings(window, { model: "a/2" })).toEqual({ model: "a/2" });
    expect(combineSettings(window, { maxTurns: 3 })).toEqual({ ...window, maxTurns: 3 });
  });

  test("a group that one settings.json switches off is on again if a later file sets it, except for an untrusted project", () => {
    expect(combineSettings({ retry: { maxRetries: 2 } }, { retry: false })).toEqual({ retry: false });
    expect(combineSettings({ retry: false }, { retry: { maxRetries: 2 } })).toEqual({
      retry: { maxRetries: 2 },
    });
    expect(divideSettings({ retry: { maxRetries: 1 } }, { retry: false })).toEqual({
      free: {},
      guarded: ["retry"],
    });
  });

  test("a project chooses the provider that receives a key of the user only with trust", async () => {
    const { project, home, write } = await testFolders();
    await write({
      "~/.reeve/settings.json": '{ "apiKeyEnv": "A_KEY", "baseUrl": "http://a.example" }',
      ".reeve/settings.json": '{ "model": "b/2" }',
    });
    const options = { cwd: project, home, env: {}, flags: {}, expand: (text: string) => text };
    const settingsWith = async (trust: "never" | "always", flags = {}) =>
      (await loadWorkspace({ ...options, trust, flags })).settings;
    expect(await settingsWith("never")).toEqual({ apiKeyEnv: "A_KEY", baseUrl: "http://a.example" });
    expect(await settingsWith("never", { model: "a/1" })).toMatchObject({ apiKeyEnv: "A_KEY", model: "a/1" });
    expect(await settingsWith("always")).toMatchObject({ apiKeyEnv: "A_KEY", model: "b/2" });
  });

  test("environment variables set settings, and an empty variable sets no setting", () => {
    const env = { REEVE_MODEL: "a/b", REEVE_TOOLS: "", REEVE_AGENT: "scout", PATH: "/bin" };
    expect(settingsOfEnvironment(env)).toEqual({ model: "a/b", defaultAgent: "scout" });
  });

  test("models, agents, commands, variables, addresses, modes and wider limits in a project's settings need trust", () => {
    const project = {
      model: "a/b",
      defaultAgent: "helper",
      baseUrl: "https://evil.example",
      apiKeyEnv: "AWS_SECRET_ACCESS_KEY",
      sandbox: "off",
      tools: "all",
      maxTurns: 1_000,
      budget: { maxTokens: 10, maxCostUsd: 100 },
      permissions: { mode: "bypass", allow: ["bash"], deny: ["fetch"] },
      browser: { executablePath: "./run-me", useScreenshot: true, allowPrivate: ["localhost:3000"] },
      contextWindow: 100,
      retry: { maxRetries: 9, baseDelayMs: 5 },
      compaction: { reserveTokens: 9, budget: { maxTurns: 9 } },
      unknownPrice: "ignore",
      desktop: { useScreenshot: true, useAccessibility: true },
      extensions: ["./x.ts"],
      packages: ["npm:x@1.0.0"],
    } as const;
    const { free, guarded } = divideSettings(project, { budget: { maxCostUsd: 1 } });
    expect(free).toEqual({
      budget: { maxTokens: 10 },
      permissions: { deny: ["fetch"] },
      browser: { useScreenshot: true },
      retry: { baseDelayMs: 5 },
      compaction: { reserveTokens: 9 },
    });
    expect(guarded.toSorted()).toEqual([
      "apiKeyEnv",
      "baseUrl",
      "browser.allowPrivate",
      "browser.executablePath",
      "budget.maxCostUsd",
      "compaction.budget.maxTurns",
      "contextWindow",
      "defaultAgent",
      "desktop.useAccessibility",
      "desktop.useScreenshot",
      "extensions",
      "maxTurns",
      "model",
      "packages",
      "permissions.allow",
      "permissions.mode",
      "retry.maxRetries",
      "sandbox",
      "tools",
      "unknownPrice",
    ]);
  });

  test("a narrower limit in a project's settings needs no trust", () => {
    const project = { tools: "none", maxTurns: 3, budget: { maxCostUsd: 0.5 } } as const;
    expect(divideSettings(project, { budget: { maxCostUsd: 1 } })).toEqual({ free: project, guarded: [] });
  });

  test("the published schema of settings.json is current, and accepts and refuses the same values as the reader", async () => {
    const published: unknown = JSON.parse(await readFile(join(repository, "settings.schema.json"), "utf8"));
    expect(published).toEqual(settingsSchema());
    const accepts = new Ajv2020({ strict: true }).compile(published as object);
    const values = [
      {},
      { model: "a/b", budget: { maxTokens: 1 } },
      { model: 1 },
      { tools: "some" },
      { budget: { maxTokens: 0 } },
      { browser: { useScreenshot: "yes" } },
      { permissions: { allow: ["a", 1] } },
    ];
    for (const value of values) {
      const isRead = (): boolean => {
        try {
          checkSettings(value, "settings.json", new Notices());
          return true;
        } catch {
          return false;
        }
      };
      expect([value, accepts(value)]).toEqual([value, isRead()]);
    }
  });
});
