import { mkdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { projectCoverage } from "../../src/workspace/files/load.ts";
import type { CoverageOptions } from "../../src/workspace/files/trust/coverage.ts";
import { TrustStore } from "../../src/workspace/files/trust/trust-store.ts";
import { openRuntime, type Agent } from "../../src/entries/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openWorkspace } from "../../src/workspace/workspace.ts";
import { testFolders } from "./folders.ts";

/** Files that a decision of trust covers, and that the code of the project loads in different ways. */
const covered = {
  "reeve.config.ts": 'import "./lib/one.ts";\nexport { x } from "./lib/two.ts";\nexport default {};',
  ".mcp.json": "{}",
  ".reeve/agents/a.ts": 'const x = await import("../../lib/three.ts");\nrequire("../../lib/four");',
  ".reeve/extensions/b.ts":
    'const url = new URL("../../lib/five.js", import.meta.url);\nimport config from "#config";',
  "reeve.config.mts": "export default {};",
  ".reeve/settings.json":
    '{ "extensions": ["\\u002e./lib/eight.ts", "../lib/nine", "reeve.db-workers"], "model": "a/b" }',
  ".reeve/mcp.json": '{ "mcpServers": { "a": { "command": "python3", "args": ["lib/ten.py"] } } }',
  ".reeve/extensions/c.ts": "/* ' */ import '../../lib/eleven.ts'; import 'linked'; /* ' */",
  ".reeve/reeve.db-workers/index.ts": "",
  "lib/eight.ts": "",
  "lib/nine/index.mjs": "",
  "lib/ten.py": "",
  "lib/eleven.ts": "",
  "packages/linked/package.json": '{ "name": "linked", "main": "dist/main.js" }',
  "packages/linked/dist/main.js": 'import "./part.js";',
  "packages/linked/dist/part.js": "",
  "lib/one.ts": 'import "./deep/six.ts";',
  "lib/two.ts": "export const x = 1;",
  "lib/three.ts": "",
  "lib/four.js": "",
  "lib/five.js": "",
  "lib/deep/six.ts": 'import "left-pad";',
  "package.json": '{ "imports": { "#config": "./lib/seven.js" } }',
  "lib/seven.js": "",
} as const;

/** Returns the hash of the code of a project. */
async function projectHash(project: string, limits: CoverageOptions = {}): Promise<string> {
  const home = join(project, "../user/.reeve");
  const options = { cwd: project, home, env: {}, flags: {}, expand: (text: string) => text };
  return (await projectCoverage(options, limits)).hash();
}

describe("the hash of a project", () => {
  // The manifest counts by the files that it names; see the attacks.
  test.for(Object.keys(covered).filter((path) => path !== "package.json"))(
    "the hash of a project changes with %s",
    async (path) => {
      const { project, write, link } = await testFolders();
      await write(covered);
      await link("node_modules/linked", "../packages/linked");
      const before = await projectHash(project);
      expect(await projectHash(project)).toBe(before);
      await writeFile(join(project, path), `${covered[path as keyof typeof covered]}\n`);
      expect(await projectHash(project)).not.toBe(before);
    },
  );

  test("the hash of a project does not change with the store of runs, with texts and with files to which nothing refers", async () => {
    const { project, write } = await testFolders();
    await write(covered);
    const before = await projectHash(project);
    await write({
      ".reeve/reeve.db": "x",
      ".reeve/reeve.db-wal": "x",
      ".reeve/reeve.db-workers/a": "x",
      ".reeve/notes.txt": "x",
      ".reeve/reeve.db-evil.js": "x",
      ".reeve/agents/a.md": "x",
      "src/app.ts": "x",
      "README.md": "x",
      "node_modules/other/index.js": "x",
    });
    expect(await projectHash(project)).toBe(before);
  });

  test("the hash of a project covers code that is loaded from a file with the name of the store", async () => {
    const { project, write } = await testFolders();
    await write({ ".reeve/agents/a.mjs": 'require("../reeve.db")', ".reeve/reeve.db": "1" });
    const before = await projectHash(project);
    await write({ ".reeve/reeve.db": "2" });
    expect(await projectHash(project)).not.toBe(before);
  });

  test("the hash of a project covers the targets of links and ends for cyclic ones", async () => {
    const { project, write, link } = await testFolders();
    await write({ "shared/x.ts": "1", ".reeve/agents/a.md": "" });
    await link(".reeve/extensions", join(project, "shared"));
    await link("shared/loop", join(project, ".reeve"));
    await link(".reeve/self", join(project, ".reeve/self"));
    const before = await projectHash(project);
    await write({ "shared/x.ts": "2" });
    expect(await projectHash(project)).not.toBe(before);
  });

  test("the hash of a project is refused for more files or bytes than its limits, also if packages hold them", async () => {
    const { project, write } = await testFolders();
    await write({
      ".reeve/extensions/a.mjs": 'import "p";',
      "node_modules/p/index.js": "12",
      "node_modules/p/lib/more.js": "34",
    });
    await expect(projectHash(project, { maxFiles: 3, maxBytes: 15 })).resolves.toEqual(expect.any(String));
    await expect(projectHash(project, { maxFiles: 2 })).rejects.toThrow("larger than 2 files");
    await expect(projectHash(project, { maxBytes: 14 })).rejects.toThrow("larger than 14 bytes");
  });
});

describe("decisions of trust", () => {
  test("decisions of trust are stored for the owner only, and cover exactly one state of a project", async () => {
    const { project, home, write } = await testFolders();
    await write(covered);
    const open = () => openWorkspace({ cwd: project, home, env: {} });
    const workspace = await open();
    expect(workspace.isTrusted).toBe(false);
    expect(workspace.guarded).toContain(join(project, "reeve.config.ts"));
    await new TrustStore(home).trust(project, { hash: await projectHash(project), at: "" });
    const path = join(home, "trust.json");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({
      version: 1,
      projects: { [project]: {} },
    });
    await write({ ".reeve/agents/a.ts": "export default 1" });
    await expect(open()).rejects.toMatchObject({ details: { lostTrust: project } });
  });

  test("a project that changes between the question of trust and the answer is not trusted", async () => {
    const { project, home, write } = await testFolders();
    await write({ ".reeve/extensions/a.ts": "export default () => {};" });
    await using workspace = await openWorkspace({ cwd: project, home, env: {} });
    const { hash } = await workspace.trustScope();
    await write({ ".reeve/extensions/a.ts": "throw new Error('other code');" });
    await expect(workspace.trust({ hash })).rejects.toMatchObject({ code: "permission_denied" });
    await workspace.reload();
    expect(workspace.isTrusted).toBe(false);
  });

  test("an invalid trust.json is an error and gives no trust", async () => {
    const { project, home, write } = await testFolders();
    await write({ ".reeve/settings.json": "{}", "~/.reeve/trust.json": "{" });
    await expect(openWorkspace({ cwd: project, home, env: {} })).rejects.toThrow("invalid trust file");
  });

  test("a project named __proto__ or constructor is not trusted by accident", async () => {
    const { home } = await testFolders();
    const decisions = await new TrustStore(home).all();
    for (const name of ["__proto__", "constructor", "toString"]) expect(decisions.get(name)).toBeUndefined();
  });

  test("a project that is too large for a decision of trust cannot be trusted, and stays usable", async () => {
    const { project, home, write } = await testFolders();
    await write({
      ".mcp.json": '{ "mcpServers": { "a": { "command": "node", "args": ["a.mjs"] } } }',
      "a.mjs": 'import "p";',
      "node_modules/p/a": "",
    });
    const open = () => openWorkspace({ cwd: project, home, env: {} });
    await (await open()).trust();
    // The file has no content on the disk, and its size is the one that counts.
    await truncate(join(project, "node_modules/p/a"), 257 * 1024 * 1024);
    const workspace = await open();
    expect(workspace.isTrusted).toBe(false);
    expect(workspace.agents().map(({ name }) => name)).toEqual(["assistant"]);
    expect(workspace.notices).toContainEqual({
      kind: "skipped",
      path: join(project, ".reeve"),
      message: expect.stringContaining("larger than 268435456 bytes; import less"),
    });
    await expect(workspace.trust()).rejects.toMatchObject({ code: "too_large" });
  });

  test("links of a trusted project to files outside are not followed, whatever their targets are", async () => {
    const { project, home, user, write, link } = await testFolders();
    const code = 'globalThis.hasRun = true; export default { name: "x", setup() {} };';
    await write({
      "~/evil.mjs": code,
      "~/evil.md": "You are evil.",
      "~/folder/index.mjs": code,
      "~/mcp.json": '{ "mcpServers": { "evil": { "command": "false" } } }',
      ".reeve/settings.json": '{ "extensions": ["../../user/evil.mjs"] }',
    });
    const links = {
      ".reeve/agents/coder.mjs": "evil.mjs",
      ".reeve/agents/writer.md": "evil.md",
      ".reeve/extensions/one.mjs": "evil.mjs",
      ".reeve/extensions/two": "folder",
      ".reeve/guardrails/guard.mjs": "evil.mjs",
      "reeve.config.mjs": "evil.mjs",
      ".mcp.json": "mcp.json",
    };
    for (const [path, target] of Object.entries(links)) await link(path, join(user, target));
    const workspace = await openWorkspace({ cwd: project, home, env: {}, trust: "always" });
    expect(workspace.agents().map(({ name }) => name)).toEqual(["assistant"]);
    expect(workspace.extensions).toEqual([]);
    expect(workspace.config).toEqual({});
    expect("hasRun" in globalThis).toBe(false);
    const skipped = workspace.notices.filter(({ kind }) => kind === "skipped").map(({ path }) => path);
    for (const path of Object.keys(links).filter((each) => !each.endsWith("/two")))
      expect(skipped).toContain(join(project, path));
    expect(skipped).toContain(join(project, ".reeve/extensions/two/index.mjs"));
  });

  test("cyclic links in a project are named in plain words, in errors and in notices", async () => {
    const { project, home, write, link } = await testFolders();
    await write({ ".reeve/extensions/a.mjs": 'export default function a() { return "./loop.mjs"; }' });
    for (const path of [
      ".reeve/agents/loop.md",
      ".reeve/agents/coder.mjs",
      ".reeve/extensions/loop.mjs",
      ".mcp.json",
    ])
      await link(path, join(project, path));
    await link(".reeve/skills/loop/SKILL.md", join(project, ".reeve/skills/loop/SKILL.md"));
    const workspace = await openWorkspace({ cwd: project, home, env: {} });
    const messages = workspace.notices.map(({ message }) => message).join("\n");
    expect(messages).not.toContain("ELOOP");
    expect(messages.match(/it is a link that leads to itself/gu)?.length).toBeGreaterThanOrEqual(4);
    await workspace.trust();
    expect(workspace.isTrusted).toBe(true);
    await link(".reeve/settings.json", join(project, ".reeve/settings.json"));
    await expect(openWorkspace({ cwd: project, home, env: {} })).rejects.toThrow(
      /^invalid settings .*settings\.json: it is a link that leads to itself/u,
    );
  });
});

describe("a project that was trusted with code that can limit its agents", () => {
  const guardrail = `import { word } from "../../lib/word.mjs";
    export default { name: "g", onInput: () => ({ decision: "block", reason: word }) };`;
  const files = {
    ".reeve/guardrails/g.mjs": guardrail,
    "lib/word.mjs": 'export const word = "blocked by g";',
    ".reeve/agents/a.md": "Agent a.",
    ".reeve/prompts/p.md": "Prompt p.",
    ".reeve/knowledge/k.md": "Fact k.",
    ".reeve/SYSTEM.md": "I am the system.",
    ".reeve/skills/s/SKILL.md": "---\nname: s\ndescription: d\nallowed-tools: Bash(sh run.sh)\n---\nBody.",
    ".reeve/skills/s/run.sh": "true",
  };

  async function trusted(at = ".") {
    const { project: root, home, write: writeAt } = await testFolders();
    const project = join(root, at);
    const write = (changed: Readonly<Record<string, string>>): Promise<void> =>
      writeAt(Object.fromEntries(Object.entries(changed).map(([path, text]) => [join(at, path), text])));
    await write(files);
    const model = scriptedModel(["Done."]);
    const open = (cwd = project, trust: "stored" | "never" = "stored") =>
      openWorkspace({ cwd, home, env: { REEVE_MODEL: "scripted/x" }, trust, resolveModel: () => model });
    const workspace = await open();
    await workspace.trust();
    return { project, home, write, open, workspace, model };
  }

  test.for([
    ["the guardrail is edited", { ".reeve/guardrails/g.mjs": 'export default { name: "g" };' }],
    ["a file that the guardrail imports is edited", { "lib/word.mjs": 'export const word = "";' }],
    ["another module is added", { ".reeve/extensions/e.mjs": "export default () => {};" }],
    ["the settings are edited", { ".reeve/settings.json": '{ "tools": "none" }' }],
  ] as const)("a trusted project does not run after %s, until it is trusted again", async ([, change]) => {
    const { write, open, workspace, model } = await trusted();
    await write(change);
    await expect(open()).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringMatching(
        /trusted with code that can limit its agents \(.*g\.mjs\).*run reeve trust/u,
      ),
    });
    await expect(open()).rejects.toThrow(`its code has changed since (${Object.keys(change)[0]}), so`);
    // A server that reads its files again keeps the guardrail that it has.
    await expect(workspace.reload()).rejects.toMatchObject({ code: "permission_denied" });
    await using runtime = await openRuntime();
    const result = await ((await workspace.agent("a")) as Agent).invoke("Hi", { runtime });
    expect([result.status, model.calls.length]).toEqual(["guardrail_tripped", 0]);
    await (await open(undefined, "never")).trust();
    expect((await open()).isTrusted).toBe(true);
  });

  test.for([
    [
      "an extension from a package",
      {
        ".reeve/extensions/e.mjs": 'import pack from "guard-pack"; export default pack;',
        "node_modules/guard-pack/index.js":
          'export default { name: "e", setup(api) { api.registerGuardrail({ name: "g" }); } };',
        "node_modules/guard-pack/package.json": '{ "type": "module" }',
      },
      { "node_modules/guard-pack/index.js": 'export default { name: "e", setup() {} };' },
      ".reeve/extensions/e.mjs",
    ],
    [
      "an extension that the settings name",
      { ".reeve/settings.json": '{ "extensions": ["../e.mjs"] }', "e.mjs": "export default () => {};" },
      { ".reeve/settings.json": "{}" },
      "e.mjs",
    ],
    [
      "an agent in code with the name of the built-in agent",
      { ".reeve/agents/assistant.mjs": 'export default { id: "assistant" };' },
      { ".reeve/agents/assistant.mjs": 'export default { id: "assistant", x: 1 };' },
      ".reeve/agents/assistant.mjs",
    ],
    [
      "the configuration, which may contain agents",
      { "reeve.config.mjs": "export default { agents: [] };" },
      { "reeve.config.mjs": "export default {};" },
      "reeve.config.mjs",
    ],
    [
      "the choice of an agent",
      { ".reeve/settings.json": '{ "defaultAgent": "careful" }', ".reeve/agents/careful.md": "Be careful." },
      { ".reeve/settings.json": "{}" },
      ".reeve/settings.json#defaultAgent",
    ],
  ] as const)("a trusted project does not run after a change of %s", async ([, before, after, guard]) => {
    const { project, home, write } = await testFolders();
    await write(before);
    const open = () => openWorkspace({ cwd: project, home, env: {} });
    await (await open()).trust();
    expect((await open()).isTrusted).toBe(true);
    await write(after);
    await expect(open()).rejects.toThrow(`trusted with code that can limit its agents (${guard})`);
    const changed = (Object.keys(after)[0] ?? "").replace("/guard-pack/index.js", "/guard-pack");
    await expect(open()).rejects.toThrow(changed);
  });

  test("a trusted project does not run after its folder .reeve became a link to the folder of the user", async () => {
    const { project, home, open } = await trusted();
    await rm(join(project, ".reeve"), { recursive: true });
    await symlink(home, join(project, ".reeve"));
    await expect(open()).rejects.toThrow(
      "trusted with code that can limit its agents (.reeve/guardrails/g.mjs)",
    );
    await mkdir(join(project, "sub"));
    await expect(open(join(project, "sub"))).rejects.toMatchObject({ code: "permission_denied" });
    await (await open(undefined, "never")).distrust();
    expect((await open()).isTrusted).toBe(true);
  });

  test("a trusted project does not run after its folder .reeve was removed, or a folder .reeve was added below it", async () => {
    const { project, write, open } = await trusted("packages/one");
    await write({ "sub/.reeve/settings.json": "{}" });
    await expect(open(join(project, "sub"))).rejects.toThrow(
      `is in ${project}, which was trusted with code that can limit its agents`,
    );
    await (await open(join(project, "sub"), "never")).trust();
    expect((await open(join(project, "sub"))).isTrusted).toBe(true);
    await rm(join(project, ".reeve"), { recursive: true });
    await expect(open()).rejects.toThrow(
      `is in ${project}, which was trusted with code that can limit its agents`,
    );
    await rm(project, { recursive: true });
    await write({ "notes.txt": "" });
    await expect(open()).rejects.toThrow("run reeve trust");
  });

  test("a trusted project keeps its trust when a text changes, and a text with an effect loses only that effect", async () => {
    const { project, write, open } = await trusted();
    const before = await open();
    expect(before.skills[0]?.isTrusted).toBe(true);
    await write({
      ".reeve/agents/a.md": "Other.",
      ".reeve/agents/new.md": "New.",
      ".reeve/prompts/p.md": "Other.",
      ".reeve/knowledge/k.md": "Other.",
      ".reeve/notes.txt": "x",
    });
    const texts = await open();
    expect([texts.isTrusted, texts.guarded]).toEqual([true, []]);
    expect(texts.skills[0]?.isTrusted).toBe(true);
    const query = { channel: null, sessionId: null, toolNames: [] };
    expect((await texts.prompts.build(query)).text).toContain("I am the system.");
    await write({ ".reeve/SYSTEM.md": "I am another.", ".reeve/skills/s/run.sh": "rm -rf ." });
    const effects = await open();
    expect(effects.isTrusted).toBe(true);
    expect(effects.guarded).toEqual([join(project, ".reeve/skills/s"), join(project, ".reeve/SYSTEM.md")]);
    expect(effects.skills[0]?.isTrusted).toBe(false);
    expect((await effects.prompts.build(query)).text).not.toContain("I am another.");
    expect(effects.notices).toContainEqual({
      kind: "skipped",
      path: join(project, ".reeve/SYSTEM.md"),
      message: "a system prompt has changed since you trusted the project; run reeve trust",
    });
    await effects.trust();
    expect(effects.guarded).toEqual([]);
    expect((await effects.prompts.build(query)).text).toContain("I am another.");
  });
});
