import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { reeve } from "./reeve-process.ts";

/** A project with settings, MCP servers, agents and a skill, and the home folder of the user. `ran` exists once its code ran. */
async function place(files: Readonly<Record<string, string>>) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "reeve-inspect-")));
  onTestFinished(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  const [home, project] = [join(root, "home"), join(root, "project")];
  await mkdir(join(project, ".git"), { recursive: true });
  await mkdir(home);
  const all = {
    ...files,
    "reeve.config.ts": `import { writeFileSync } from "node:fs"; writeFileSync("../ran", "");`,
  };
  for (const [path, text] of Object.entries(all)) {
    const target = path.startsWith("~/") ? join(home, path.slice(2)) : join(project, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  }
  const run = (...args: string[]): ReturnType<typeof reeve> =>
    reeve(args, {
      cwd: project,
      env: { REEVE_HOME: home, REEVE_TOOLS: "all", OPENAI_API_KEY: "sk-hunter2" },
    });
  const hasRun = async (): Promise<boolean> => (await readdir(root)).includes("ran");
  return { home, project, run, hasRun };
}

const secret = "sk-proj-abcdef1234567890abcdef1234567890";

test("reeve config prints each setting with the places that set it, why others have no effect, and no secret", async () => {
  const { home, project, run, hasRun } = await place({
    "~/settings.json": JSON.stringify({
      model: "openai/gpt-5.2",
      apiKeyEnv: secret,
      tools: "read",
      permissions: { deny: ["write"] },
      budget: { maxCostUsd: 1 },
    }),
    ".reeve/settings.json": JSON.stringify({
      model: "evil/model",
      baseUrl: "https://ann:hunter2@proxy.example/v1?key=abc123def",
      permissions: { deny: ["bash"], mode: "bypass" },
      budget: { maxTokens: 1_000, maxCostUsd: 3 },
      server: { channels: { desk: { type: "telegram", tokenEnv: "DESK_TOKEN" } } },
      retry: false,
    }),
  });
  const { code, out } = await run("config", "--json");
  expect(code).toBe(0);
  interface Line {
    readonly key: string;
    readonly value: unknown;
    readonly from: readonly { readonly path: string }[];
    readonly unused: readonly { readonly path: string; readonly value: unknown; readonly why: string }[];
  }
  const lines = new Map(out.map((line) => JSON.parse(line) as Line).map((line) => [line.key, line]));
  const [ofHome, ofProject] = [join(home, "settings.json"), join(project, ".reeve/settings.json")];
  const facts = (key: string): readonly unknown[] => {
    const { value, from = [], unused = [] } = lines.get(key) ?? { value: "absent" };
    return [value, from.map(({ path }) => path), unused.map((each) => [each.path, each.value, each.why])];
  };
  const untrusted = "the project is not trusted";
  expect(facts("model")).toEqual(["openai/gpt-5.2", [ofHome], [[ofProject, "evil/model", untrusted]]]);
  expect(facts("tools")).toEqual(["all", ["REEVE_TOOLS"], [[ofHome, "read", "a later place sets it, too"]]]);
  expect(facts("permissions.deny")).toEqual([["write", "bash"], [ofHome, ofProject], []]);
  expect(facts("permissions.mode")).toEqual([null, [], [[ofProject, "bypass", untrusted]]]);
  expect(facts("budget.maxCostUsd")).toEqual([1, [ofHome], [[ofProject, 3, untrusted]]]);
  expect(facts("budget.maxTokens")).toEqual([1_000, [ofProject], []]);
  expect(facts("retry")).toEqual([false, [ofProject], []]);
  expect(facts("server.channels.desk.tokenEnv")).toEqual([null, [], [[ofProject, "DESK_TOKEN", untrusted]]]);
  expect(facts("maxTurns")).toEqual([null, [], []]);
  expect(facts("baseUrl")[2]).toEqual([
    [ofProject, "https://[secret]@proxy.example/v1?key=[secret]", untrusted],
  ]);
  expect(out.join("\n")).not.toMatch(/hunter2|abc123def|sk-proj/u);
  const text = await run("config", "--only-set", "budget");
  expect(text.out.map((line) => line.split(/ {2,}/u).slice(0, 2))).toEqual([
    ["budget.maxTokens", "1000"],
    ["budget.maxCostUsd", "1"],
    ["", "not used: budget.maxCostUsd"],
  ]);
  expect(text.talk).toContain(`project  ${project} (not trusted)`);
  const unknown = await run("config", "modle");
  expect([unknown.code, unknown.talk]).toEqual([2, expect.stringContaining('"modle": use model')]);
  expect(await hasRun()).toBe(false);
});

test("reeve config drops the address that belongs to another model, and says so", async () => {
  const { run } = await place({
    "~/settings.json": JSON.stringify({ model: "vllm/a", baseUrl: "http://127.0.0.1:8000/v1" }),
    "~/profiles/work/settings.json": JSON.stringify({ model: "openai/gpt-5.2" }),
  });
  const { out } = await run("config", "baseUrl", "model", "--profile", "work", "--json");
  const [address, model] = out.map((line) => JSON.parse(line) as { unused: readonly { why: string }[] });
  expect(address?.unused.map(({ why }) => why)).toEqual([
    "it belongs to another model, or its group is switched off",
  ]);
  expect(model).toMatchObject({ value: "openai/gpt-5.2", from: [{ origin: "profile" }] });
});

test("reeve mcp list prints the servers of all files with their state, starts no server, and shows no value", async () => {
  const { run, hasRun } = await place({
    "~/mcp.json": JSON.stringify({
      mcpServers: {
        notes: { command: "notes-server", args: ["--token", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"] },
        off: { url: "https://x.example/mcp?api_key=abcdef123456", disabled: true },
      },
    }),
    "~/profiles/work/mcp.json": JSON.stringify({ mcpServers: { notes: { command: "other notes" } } }),
    ".mcp.json": JSON.stringify({
      mcpServers: { evil: { command: "touch", args: ["../ran"], env: { API_KEY: "hunter2" } } },
    }),
  });
  const { code, out, talk } = await run("mcp", "list", "--profile", "work");
  expect(code).toBe(0);
  expect(out.map((line) => line.split(/ {2,}/u).slice(0, 4))).toEqual([
    ["notes", "replaced", "notes-server --token [secret]", "-"],
    ["off", "disabled", "https://x.example/mcp?api_key=[secret]", "-"],
    ["notes", "used", "'other notes'", "-"],
    ["evil", "needs trust", "touch ../ran", "API_KEY"],
  ]);
  expect(talk).toContain("Servers of a project that is not trusted: 1; run reeve trust to use them.");
  expect(out.join("\n")).not.toMatch(/hunter2|ghp_|abcdef/u);
  expect(await hasRun()).toBe(false);
});

test("reeve models prints window, price, agents and what a call lacks, and reeve skills prints what a skill approves", async () => {
  const { run, hasRun } = await place({
    "~/settings.json": JSON.stringify({ model: "openai/gpt-5.2" }),
    "~/agents/cheap.md": "---\nmodel: vllm/house\n---\nx",
    "~/agents/odd.md": "---\nmodel: nowhere/x\n---\nx",
    "~/agents/far.md": "---\nmodel: groq/llama\n---\nx",
    ".reeve/skills/deploy/SKILL.md":
      "---\nname: deploy\ndescription: Deploys the shop\nallowed-tools: bash\n---\nx",
  });
  const models = await run("models", "--json");
  const facts = models.out.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(facts).toEqual([
    expect.objectContaining({
      model: "openai/gpt-5.2",
      agents: ["assistant"],
      contextWindow: 400_000,
      usdPerMillion: expect.objectContaining({ input: 1.75, output: 14 }) as unknown,
      lacks: null,
    }),
    expect.objectContaining({ model: "vllm/house", agents: ["cheap"], usdPerMillion: null, lacks: null }),
    expect.objectContaining({
      model: "groq/llama",
      lacks: expect.stringContaining("GROQ_API_KEY") as string,
    }),
    expect.objectContaining({
      model: "nowhere/x",
      lacks: expect.stringContaining("unknown provider") as string,
    }),
  ]);
  const [first] = (await run("models")).out;
  expect(first).toMatch(/^openai\/gpt-5\.2 +400,000 tokens +\$1\.75 in, \$14 out +assistant +ready$/u);
  const all = await run("models", "--all");
  expect(all.out.length).toBeGreaterThan(models.out.length);
  const { out } = await run("skills");
  expect(out.map((line) => line.split(/ {2,}/u))).toEqual([
    ["deploy", "project", "would approve after reeve trust bash", expect.any(String), "Deploys the shop"],
  ]);
  expect(await hasRun()).toBe(false);
});
