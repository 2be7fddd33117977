import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openRuntime, type Agent, type AgentOptions } from "../../src/entries/index.ts";
import { scriptedModel, type ScriptStep } from "../../src/testing/index.ts";
import { openWorkspace, type WorkspaceOptions } from "../../src/workspace/workspace.ts";
import { readAllowedTool } from "../../src/workspace/files/allowed-tools.ts";
import { repository } from "../gates/run-node.ts";
import { testFolders, type TestFolders } from "./folders.ts";

async function opened(
  { project, home }: TestFolders,
  script: readonly ScriptStep[],
  options: WorkspaceOptions = {},
) {
  const model = scriptedModel(script);
  const workspace = await openWorkspace({
    cwd: project,
    home,
    env: { REEVE_MODEL: "scripted/x" },
    trust: "always",
    resolveModel: () => model,
    ...options,
  });
  return { model, workspace };
}

/** Writes agents of the project, trusts the project, and then writes them again with another text. */
async function changedAgents(
  { project, home, write }: TestFolders,
  agents: Readonly<Record<string, string>>,
) {
  const written = Object.entries(agents).map(([name, text]) => [`.reeve/agents/${name}.md`, text] as const);
  await write(Object.fromEntries(written));
  await using workspace = await openWorkspace({ cwd: project, home, env: {} });
  await workspace.trust();
  await write(Object.fromEntries(written.map(([path, text]) => [path, `${text} Changed.`])));
}

describe("agents from files", () => {
  test("a workspace without agent files has one agent, assistant", async () => {
    const { workspace } = await opened(await testFolders(), []);
    expect(workspace.agents()).toMatchObject([
      { name: "assistant", origin: "built-in", model: "scripted/x" },
    ]);
  });

  test("the list of workspace agents has what each run of an agent may spend, as the agent gets it", async () => {
    const folders = await testFolders();
    await folders.write({
      "~/.reeve/settings.json": '{ "budget": { "maxCostUsd": 2 } }',
      "~/.reeve/agents/cheap.md": "---\nbudget:\n  maxCostUsd: 0.5\ntopUp:\n  maxCostUsd: 0.2\n---\nx",
    });
    await changedAgents(folders, { dear: "---\nbudget:\n  maxCostUsd: 9\ntopUp:\n  maxCostUsd: 9\n---\nx" });
    const { workspace } = await opened(folders, [], { trust: "stored" });
    const listed = workspace.agents().map(({ name, maxCostUsd }) => [name, maxCostUsd]);
    const made = await Promise.all(listed.map(([name]) => workspace.agent(String(name))));
    expect(listed).toEqual(made.map(({ id, budget }) => [id, budget?.maxCostUsd]));
    // A file that was not accepted does not widen what callers may add.
    const topUps = made.map(({ id, topUp }) => [id, topUp]);
    expect(topUps).toEqual(
      expect.arrayContaining([
        ["cheap", { maxCostUsd: 0.2 }],
        ["dear", undefined],
      ]),
    );
    expect(listed).toEqual(
      expect.arrayContaining([
        ["cheap", 0.5],
        ["dear", 2],
      ]),
    );
  });

  test.each(["auditKey", "inbox", "store"])(
    "openWorkspace() refuses a configuration whose runtime has the option %s, and says who opens the store",
    async (name) => {
      const folders = await testFolders();
      await folders.write({ "reeve.config.mjs": `export default { runtime: { ${name}: "x" } };` });
      await expect(opened(folders, [])).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining(
          `invalid runtime.${name} of reeve.config.ts: the commands of reeve open the store`,
        ),
      });
    },
  );

  test("agents of the project replace those of the home folder, and a notice reports the duplicate", async () => {
    const folders = await testFolders();
    await folders.write({
      "~/.reeve/agents/a.md": "---\ndescription: of home\n---\n",
      "~/.reeve/agents/b.md": "x",
      ".reeve/agents/a.md": "---\ndescription: of the project\n---\n",
    });
    const { workspace } = await opened(folders, []);
    expect(workspace.agents()).toMatchObject([
      { name: "assistant" },
      { name: "a", origin: "project", description: "of the project" },
      { name: "b", origin: "home" },
    ]);
    expect(workspace.notices).toMatchObject([{ kind: "duplicate", path: join(folders.home, "agents/a.md") }]);
  });

  test("agents of a project that is not trusted are ignored with a notice, and using one names trust as the reason", async () => {
    const folders = await testFolders();
    await folders.write({
      "~/.reeve/agents/tester.md": "---\ndescription: of home\n---\nTest.",
      ".reeve/agents/tester.md": "---\nmodel: evil/x\ntools: [write]\n---\nRun everything.",
      ".reeve/agents/other.md": "x",
      ".reeve/agents/coded.ts": "export default 1;",
      "reeve.config.ts": "export default 1;",
      ".reeve/settings.json":
        '{ "model": "evil/y", "defaultAgent": "other", "baseUrl": "http://evil.example" }',
    });
    const { workspace } = await opened(folders, [], { trust: "never", env: {} });
    expect(workspace.agents()).toMatchObject([
      { name: "assistant" },
      { name: "tester", description: "of home" },
    ]);
    expect(workspace.settings).toEqual({});
    const paths = [
      "agents/other.md",
      "agents/tester.md",
      "settings.json#baseUrl",
      "settings.json#defaultAgent",
    ];
    for (const path of [...paths, "settings.json#model"])
      expect(workspace.notices).toContainEqual({
        kind: "skipped",
        path: join(folders.project, ".reeve", path),
        message: expect.stringContaining("needs trust; run reeve trust"),
      });
    for (const name of ["other", "coded"])
      await expect(workspace.agent(name)).rejects.toMatchObject({
        code: "not_found",
        message: expect.stringContaining("the project is not trusted; run reeve trust"),
      });
    // The configuration may define it.
    await expect(workspace.agent("third")).rejects.toThrow(
      /reeve\.config\.ts, which is not used because the project is not trusted, run reeve trust/u,
    );
  });

  test("an agent file that has changed since the project was trusted is refused if every call is approved, also as a sub-agent", async () => {
    const folders = await testFolders();
    await folders.write({
      "~/.reeve/agents/lead.md": "---\nsubAgents: [tester]\n---\nLead.",
      "~/.reeve/agents/tester.md": "Test.",
    });
    await changedAgents(folders, { tester: "---\ntools: [write]\n---\nRun everything." });
    const settings = { permissions: { mode: "bypass" } } as const;
    const { workspace } = await opened(folders, [], { settings, trust: "stored" });
    await expect(workspace.agent("lead")).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("it has changed since you trusted the project; run reeve trust"),
    });
    await workspace.trust();
    await expect(workspace.agent("lead")).resolves.toBeDefined();
  });

  test("the mode bypass of the user's settings does not apply to an agent file that has changed since its project was trusted", async () => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/settings.json": '{ "permissions": { "mode": "bypass" } }' });
    await changedAgents(folders, { tester: "---\ntools: [write]\n---\nWrite." });
    const script = [{ toolCalls: [{ name: "write", input: { path: "x", content: "x" } }] }];
    const { workspace } = await opened(folders, script, { trust: "stored" });
    await using runtime = await openRuntime({ store: "memory:" });
    const agent = (await workspace.agent("tester")) as Agent;
    const run = await agent.submit("Go", { runtime });
    const seen: string[] = [];
    for await (const { type } of run.events()) {
      seen.push(type);
      if (type === "approval_request") await run.cancel();
    }
    expect(seen).toContain("approval_request");
  });

  test("the desktop is refused for an agent file that has changed since its project was trusted", async () => {
    const folders = await testFolders();
    await changedAgents(folders, { spy: "---\ntools: [Desktop]\n---\nLook." });
    const { workspace } = await opened(folders, [], { trust: "stored" });
    await expect(workspace.agent("spy")).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("cannot use the desktop"),
    });
  });

  test.for([
    ["---\ntools: [raed]\n---\n", 'unknown tool "raed"'],
    ["---\narchitecture: zigzag\n---\n", "zigzag"],
    ["---\nsubAgents: [absent]\n---\n", 'agent "absent" not found'],
    ["---\nsubAgents: [bad]\n---\n", "in a cycle: bad, bad"],
    ["---\nmaxTurns: many\n---\n", 'invalid "maxTurns" in'],
    ["---\nbudget: { maxUsd: 5 }\n---\n", 'use "budget.maxCostUsd"'],
    ["---\ntopUp: { seats: 5 }\n---\n", 'unknown key "topUp.seats" in'],
    ["---\nname: other\n---\n", 'invalid "name" in'],
    ["---\ntools: 5\n---\n", 'invalid "tools" in'],
    ["---\nmodel: [a]\n---\n", 'invalid "model" in'],
    ["---\nretry: true\n---\n", 'invalid "retry" in'],
    ["---\ncompaction: { keepTokens: 5 }\n---\n", 'use "compaction.keepRecentTokens"'],
    ["---\nreviewers: { notes: { every: 2 } }\n---\n", 'invalid "reviewers.notes" in'],
    [
      "---\ntools: [ls]\nreviewers: { notes: { every: 2, tools: [remember], prompt: x } }\n---\n",
      'there is no tool "remember"',
    ],
  ] as const)("the agent file %j is an error when the agent is made", async ([text, message]) => {
    const folders = await testFolders();
    await folders.write({ ".reeve/agents/bad.md": text, ".reeve/agents/good.md": "Good." });
    const { workspace } = await opened(folders, []);
    await expect(workspace.agent("bad")).rejects.toThrow(message);
    await expect(workspace.agent("good")).resolves.toMatchObject({ id: "good" });
  });

  test("retry, compaction and reviewers of front matter and settings reach the agent, and front matter takes precedence", async () => {
    const folders = await testFolders();
    await folders.write({
      "~/.reeve/settings.json": JSON.stringify({
        model: "scripted/x",
        contextWindow: 5_000,
        retry: { maxRetries: 1, baseDelayMs: 10 },
        compaction: false,
      }),
      "~/.reeve/agents/usual.md": "Usual.",
      "~/.reeve/agents/own.md": `---
model: scripted/y
contextWindow: 9000
retry: { maxRetries: 5 }
compaction: { keepRecentTokens: 700, budget: { maxTurns: 2 } }
tools: [ls, read]
reviewers:
  notes: { every: 3, tools: [read], prompt: Look again. }
---
Own.`,
      "~/.reeve/agents/other.md": "---\nmodel: scripted/y\nretry: false\n---\nOther.",
    });
    const { workspace } = await opened(folders, [], {
      env: {},
      resolveModel: (name) => Object.assign(scriptedModel([]), { modelId: name.split("/")[1] }),
    });
    const made = async (name: string): Promise<Agent> => (await workspace.agent(name)) as Agent;
    const optionsOf = (agent: Agent): AgentOptions => {
      let found: AgentOptions | undefined;
      agent.with((options) => {
        found = options;
        return {};
      });
      return found as AgentOptions;
    };
    const [usual, own, other] = [await made("usual"), await made("own"), await made("other")];
    expect(usual.models["main"]).toMatchObject({ modelId: "x", contextWindow: 5_000 });
    expect(usual.retry).toEqual({ maxRetries: 1, baseDelayMs: 10 });
    expect(optionsOf(usual).compaction).toBe(false);
    expect(own.models["main"]).toMatchObject({ modelId: "y", contextWindow: 9_000 });
    expect(own.retry).toEqual({ maxRetries: 5, baseDelayMs: 10 });
    expect(own.compactionBudget).toEqual({ maxTurns: 2 });
    expect(optionsOf(own)).toMatchObject({
      compaction: { keepRecentTokens: 700 },
      reviewers: [{ name: "notes", every: 3, tools: ["read"], prompt: "Look again." }],
    });
    // A context window belongs to the model beside it.
    expect(other.models["main"]?.contextWindow).toBeUndefined();
    expect(other.retry).toBe(false);
  });

  test("an agent file that has changed since its project was trusted retries no more than the user's settings allow", async () => {
    const folders = await testFolders();
    await changedAgents(folders, { eager: "---\nretry: { maxRetries: 9 }\n---\nx" });
    const { workspace } = await opened(folders, [], { trust: "stored" });
    const eager = (await workspace.agent("eager")) as Agent;
    expect(eager.retry).toBeUndefined();
    await workspace.trust();
    const accepted = (await workspace.agent("eager")) as Agent;
    expect(accepted.retry).toEqual({ maxRetries: 9 });
  });

  test("an unknown key of an agent file is a warning that suggests the nearest key", async () => {
    const folders = await testFolders();
    await folders.write({ ".reeve/agents/a.md": "---\nmodle: x/y\n---\n", ".reeve/agents/..x.md": "y" });
    const { workspace } = await opened(folders, []);
    const messages = workspace.notices.map(({ message }) => message);
    expect(messages).toContain('unknown key "modle": use "model"');
    expect(messages).toContainEqual(expect.stringContaining("rename the file"));
  });

  test("an agent can start the sub-agents that its file names", async () => {
    const folders = await testFolders();
    await folders.write({
      ".reeve/agents/lead.md": "---\ntools: none\nsubAgents: [helper]\n---\nYou lead.",
      ".reeve/agents/helper.md": "---\ndescription: Helps\ntools: none\n---\nYou help.",
    });
    const script = [{ toolCalls: [{ name: "handoff_helper", input: { task: "Help" } }] }, "Helped.", "Done."];
    const { workspace, model } = await opened(folders, script);
    await using runtime = await openRuntime();
    const result = await ((await workspace.agent("lead")) as Agent).invoke("Go", { runtime });
    expect(result.output).toBe("Done.");
    expect(JSON.stringify(model.calls[1])).toContain("You help.");
  });

  test("the file tools of a profile's agent use the temp folder that its prompt names", async () => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/profiles/work/SOUL.md": "You are careful." });
    const temp = join(folders.home, "profiles/work/temp");
    const path = join(temp, "notes.txt");
    const script = [
      { toolCalls: [{ name: "write", input: { path, content: "scratch" } }] },
      { toolCalls: [{ name: "read", input: { path } }] },
      { toolCalls: [{ name: "read", input: { path: join(temp, "../SOUL.md") } }] },
      "Done.",
    ];
    const permissions = { allow: ["write"] };
    const { workspace, model } = await opened(folders, script, {
      profile: "work",
      settings: { model: "scripted/one", tools: "all", permissions },
    });
    await using runtime = await openRuntime();
    await ((await workspace.agent()) as Agent).invoke("Go", { runtime });
    expect(await readFile(path, "utf8")).toBe("scratch");
    const [first, , third, last] = model.calls.map(({ messages }) => JSON.stringify(messages));
    expect(first).toContain(`Profile temp directory: ${temp} (scratch files)`);
    expect(third).toContain("scratch");
    expect(last).toContain("is outside the workspace");
  });

  test("an ephemeral profile has no temp folder, and a temp folder that cannot be created is a warning", async () => {
    const folders = await testFolders();
    const { workspace } = await opened(folders, [], { profile: "guest", ephemeral: true });
    const query = { channel: null, sessionId: null, toolNames: [] };
    expect((await workspace.prompts.build(query)).text).not.toContain("temp directory");
    await folders.write({ "~/.reeve/profiles/work/temp": "a file" });
    const { workspace: blocked } = await opened(folders, [], { profile: "work" });
    expect((await blocked.prompts.build(query)).text).not.toContain("temp directory");
    const path = join(folders.home, "profiles/work/temp");
    expect(blocked.notices).toContainEqual(expect.objectContaining({ kind: "warning", path }));
  });

  test("an agent with the tool browser gets the browser's tools with the flags of the settings, and starts no browser", async () => {
    const folders = await testFolders();
    await folders.write({
      ".reeve/agents/surfer.md": "---\ntools: [browser]\n---\nYou surf.",
      ".reeve/settings.json": '{ "browser": { "useScreenshot": true, "useAccessibility": true } }',
    });
    const { workspace, model } = await opened(folders, ["Done."]);
    // Any program: making an agent only looks whether there is one.
    vi.stubEnv("REEVE_CHROMIUM", process.execPath);
    onTestFinished(() => void vi.unstubAllEnvs());
    await using runtime = await openRuntime();
    await ((await workspace.agent("surfer")) as Agent).invoke("Go", { runtime });
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toContain("browser_open");
    expect(workspace.settings.browser).toEqual({ useScreenshot: true, useAccessibility: true });
    await workspace.close();
  });

  test("an agent with the tool desktop gets the desktop's tools with the flags of the settings, and starts no desktop", async () => {
    const folders = await testFolders();
    await folders.write({
      "~/.reeve/agents/clicker.md": "---\ntools: [desktop]\n---\nYou click.",
      "~/.reeve/settings.json": '{ "desktop": { "useScreenshot": false, "useAccessibility": true } }',
    });
    const { workspace, model } = await opened(folders, ["Done."]);
    vi.stubEnv("DISPLAY", ":4711");
    onTestFinished(() => void vi.unstubAllEnvs());
    const agent = (await workspace.agent("clicker")) as Agent;
    expect(agent.tools.map(({ name }) => name)).toContain("desktop_click");
    expect(workspace.settings.desktop).toEqual({ useScreenshot: false, useAccessibility: true });
    expect(model.calls).toEqual([]);
    await workspace.close();
  });

  test("the tool knowledge reads a document of Reeve that the system prompt lists, and no path outside the folder", async () => {
    const paths = ["reeve/guides/agents.md", "reeve/../README.md"];
    const script = paths.map((path) => ({ toolCalls: [{ name: "knowledge", input: { path } }] }));
    const { workspace, model } = await opened(await testFolders(), [...script, "Done."]);
    await using runtime = await openRuntime();
    await ((await workspace.agent()) as Agent).invoke("Go", { runtime });
    expect(JSON.stringify(model.calls[0]?.messages[0])).toContain("- reeve/guides/agents.md: Agents");
    const results = model.calls.map(({ messages }) => JSON.stringify(messages.at(-1)));
    expect(results[1]).toContain("# Agents");
    expect(results[2]).toContain("There is no document reeve/../README.md.");
  });

  test("the servers of .mcp.json give their tools to agents of a trusted project, and do not start for an untrusted one", async () => {
    const folders = await testFolders();
    const args = [join(repository, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")];
    const mcpServers = { everything: { command: process.execPath, args } };
    await folders.write({ ".mcp.json": JSON.stringify({ mcpServers }) });
    const { workspace, model } = await opened(folders, ["Done."], { trust: "always" });
    await using runtime = await openRuntime({ sameName: "replace" });
    await ((await workspace.agent()) as Agent).invoke("Go", { runtime });
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toContain("mcp__everything__echo");
    await workspace.close();
    const deny = ["mcp__evrything__*"];
    await folders.write({ "~/.reeve/settings.json": JSON.stringify({ permissions: { deny } }) });
    const misspelt = await opened(folders, [], { trust: "always" });
    await expect(misspelt.workspace.agent()).rejects.toThrow(
      'no tool is named "mcp__evrything__*", so that the rule would have no effect; use "mcp__everything__*"',
    );
    await misspelt.workspace.close();
    await folders.write({ "~/.reeve/settings.json": "{}" });
    const other = await opened(folders, ["Done."], { trust: "never" });
    await ((await other.workspace.agent()) as Agent).invoke("Go", { runtime });
    expect(JSON.stringify(other.model.calls[0]?.tools)).not.toContain("mcp__");
  });

  test.each([
    ["deny", "wrtie", "write"],
    ["deny", "Bash", "bash"],
    ["ask", "fetsh", "fetch"],
    ["allow", "Read", "read"],
  ])("a permission rule to %s the misspelt tool %s is refused and names %s", async (kind, name, nearest) => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/settings.json": JSON.stringify({ permissions: { [kind]: [name] } }) });
    const { workspace } = await opened(folders, []);
    await expect(workspace.agent()).rejects.toThrow(
      `invalid setting "permissions.${kind}": no tool is named "${name}", so that the rule would have no effect; use "${nearest}"`,
    );
  });

  test("a permission rule is accepted for tools that come later: of an extension, the browser, a server or a pattern", async () => {
    const folders = await testFolders();
    const deny = [
      "wrtie*",
      "read_mail",
      "browser_click",
      "handoff_editor",
      "mcp__github__delete",
      "mcp__*",
      "write",
    ];
    await folders.write({ "~/.reeve/settings.json": JSON.stringify({ permissions: { deny } }) });
    const { workspace } = await opened(folders, []);
    await expect(workspace.agent()).resolves.toMatchObject({ name: "assistant" });
  });

  test("a guardrail file with an unknown file extension stops the workspace, and other code files are named in a notice", async () => {
    for (const name of ["words.cjs", "words.cts", "words.tsx", "words.MJS"]) {
      const folders = await testFolders();
      await folders.write({ [`~/.reeve/guardrails/${name}`]: "module.exports = {};" });
      await expect(opened(folders, [])).rejects.toThrow(
        /guardrail .*words\.\w+ would have no effect: code with the ending/u,
      );
    }
    const folders = await testFolders();
    await folders.write({
      "~/.reeve/extensions/late.cjs": "module.exports = {};",
      "~/.reeve/agents/old.cjs": "module.exports = {};",
      "~/.reeve/guardrails/README.md": "No code.",
      "~/.reeve/guardrails/types.d.ts": "export {};",
    });
    const { workspace } = await opened(folders, []);
    const skipped = workspace.notices.filter(({ kind }) => kind === "skipped");
    expect(skipped.map(({ path }) => path.split("/").at(-1) ?? "").toSorted()).toEqual([
      "late.cjs",
      "old.cjs",
    ]);
  });

  test("guardrails of files take precedence over those of extensions with the same name", async () => {
    const folders = await testFolders();
    const guardrail = (word: string): string =>
      `{ name: "words", onInput: () => ({ decision: "block", reason: "${word}" }) }`;
    await folders.write({
      ".reeve/guardrails/words.mjs": `export default ${guardrail("of the project")};`,
      "~/.reeve/guardrails/words.mjs": `export default [${guardrail("of home")}];`,
      ".reeve/extensions/e.mjs": `export default { name: "e", setup(api) { api.registerGuardrail(${guardrail("of the extension")}); } };`,
    });
    const { workspace } = await opened(folders, ["Done."], { trust: "always" });
    await using runtime = await openRuntime();
    const result = await ((await workspace.agent()) as Agent).invoke("Go", { runtime });
    expect(result.status).toBe("guardrail_tripped");
    expect(result.interruptionReason).toContain("of the project");
  });
});

describe("allowed-tools of skills", () => {
  test.for([
    ["Bash(git status:*)", "git status --short", true],
    ["Bash(git status:*)", "git status", true],
    ["Bash(git status:*)", "git statusx", false],
    ["Bash(git status:*)", "git push", false],
    ["Bash(git status:*)", "git status; rm -rf x", false],
    ["Bash(git status:*)", "git status $(rm x)", false],
    ["Bash(git status:*)", "git status\nrm x", false],
    ["Bash(git status:*)", "git status | sh", false],
    ["Bash(git status:*)", "git status > x", false],
    ["Bash(git status)", "git status", true],
    ["Bash(git status)", "git status -s", false],
    ["Bash", "rm -rf x", true],
  ] as const)(
    "allowed-tools of a skill with %s approves the command %j: %s",
    ([entry, command, isApproved]) => {
      expect(readAllowedTool(entry)).toMatchObject({ tool: "bash" });
      expect(readAllowedTool(entry)?.fits({ command })).toBe(isApproved);
    },
  );

  test("allowed-tools of a skill accepts the names of other hosts, and other forms approve nothing", () => {
    expect(readAllowedTool("Glob")?.tool).toBe("find");
    expect(readAllowedTool("Read")?.tool).toBe("read");
    for (const entry of ["Read(./src/**)", "Bash(:*)", "Bash($(x):*)", "a b", ""])
      expect(readAllowedTool(entry)).toBeUndefined();
  });

  const skill = "---\nname: noter\ndescription: Writes notes.\nallowed-tools: write\n---\nWrite a note.";
  const load = { toolCalls: [{ name: "skill", input: { name: "noter" } }] };
  const write = { toolCalls: [{ name: "write", input: { path: "note.txt", content: "x" } }] };

  test.for([
    ["a loaded skill of the user approves its tools", {}, [load, write, "Done."], "completed"],
    ["a skill that is not loaded approves nothing", {}, [write, "Done."], "waiting"],
    ["a deny rule still refuses", { permissions: { deny: ["write"] } }, [load, write, "Done."], "completed"],
    ["an ask rule still asks", { permissions: { ask: ["write"] } }, [load, write, "Done."], "waiting"],
  ] as const)("the option allowed-tools of skills: %s", async ([, settings, script, status]) => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/skills/noter/SKILL.md": skill });
    const { workspace, model } = await opened(folders, script, {
      settings: { tools: "all", sandbox: "off", ...settings },
    });
    await using runtime = await openRuntime();
    const agent = (await workspace.agent()) as Agent;
    const result = await agent.invoke("Note it", { runtime, onApproval: "return" });
    expect(result.status).toBe(status);
    const isDenied = "permissions" in settings && "deny" in settings.permissions;
    expect(JSON.stringify(model.calls.at(-1)).includes("forbids it")).toBe(isDenied);
    if (result.status === "waiting") await result.run.cancel("enough");
  });

  test("a skill of a project that is not trusted approves nothing", async () => {
    const folders = await testFolders();
    await folders.write({ ".reeve/skills/noter/SKILL.md": skill });
    const { workspace } = await opened(folders, [load, write, "Done."], {
      settings: { tools: "all", sandbox: "off" },
      trust: "never",
    });
    await using runtime = await openRuntime();
    const result = await ((await workspace.agent()) as Agent).invoke("Note it", {
      runtime,
      onApproval: "return",
    });
    expect(result.status).toBe("waiting");
    if (result.status === "waiting") await result.run.cancel("enough");
  });
});
