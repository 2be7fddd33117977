import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { Agent, openRuntime, type Channel } from "../../src/entries/index.ts";
import { platforms } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openWorkspace, type WorkspaceOptions } from "../../src/workspace/workspace.ts";
import { platformHint } from "../../src/workspace/files/prompt/system-prompt.ts";
import { testFolders, type TestFolders } from "./folders.ts";

const noon = new Date(2026, 10, 16, 12).getTime();

async function opened(folders: TestFolders, options: WorkspaceOptions = {}) {
  const { project, home } = folders;
  return openWorkspace({ cwd: project, home, env: {}, now: () => noon, ...options });
}

const query = { channel: null, sessionId: null, toolNames: [] } as const;

/** Files of every layer of the prompt. */
const layers = {
  "~/.reeve/profiles/work/SOUL.md": "You are Ada's colleague.",
  "~/.reeve/profiles/work/AGENT.md": "This profile is for work.",
  "~/.reeve/profiles/work/MEMORY.md": "The build takes 4 minutes.",
  "~/.reeve/profiles/work/USER.md": "Ada prefers short answers.",
  "~/.reeve/profiles/work/knowledge/index.yaml":
    "- path: house.md\n  always_load: true\n- path: api.md\n  tags: [api, http]\n  description: Our API\n",
  "~/.reeve/profiles/work/knowledge/house.md": "The house is blue.",
  "~/.reeve/profiles/work/knowledge/api.md": "GET /",
  "~/.reeve/profiles/work/skills/lint/SKILL.md":
    "---\nname: lint\ndescription: Fix <lint> findings.\n---\nRun lint.",
  "~/.reeve/AGENTS.md": "Rules of the user.",
  ".reeve/settings.json": '{ "appendSystemPrompt": "Appended text." }',
  "AGENTS.md": "Rules of the root.",
  "packages/AGENTS.md": "Not used.",
  "packages/AGENTS.override.md": "Rules that override.",
  "packages/a/CLAUDE.md": "Rules of a.",
};

describe("the system prompt", () => {
  test("the parts of the system prompt come in a fixed order, and each has the expected text", async () => {
    const folders = await testFolders();
    await folders.write(layers);
    const workspace = await opened(folders, { cwd: join(folders.project, "packages/a"), profile: "work" });
    const { text } = await workspace.prompts.build({
      ...query,
      sessionId: "ses_1" as never,
      toolNames: ["read", "skill", "knowledge"],
    });
    const shown = text
      .replaceAll(folders.project, "<project>")
      .replaceAll(folders.user, "<user>")
      .replaceAll(/^- reeve\/(?!guides\/agents\.md).*\n?/gmu, "");
    expect(shown).toMatchSnapshot();
  });

  test.for(
    Object.keys(layers).filter((path) => !/knowledge\/(?:house|api)|packages\/AGENTS\.md$/u.test(path)),
  )("the part of the system prompt about %s has the expected text", async (path) => {
    const folders = await testFolders();
    const needed = Object.entries(layers).filter(([name]) => name === path || name.startsWith(dirname(path)));
    await folders.write({ "packages/a/x": "", "~/.reeve/profiles/work/x": "" });
    await folders.write(
      Object.fromEntries(
        path.endsWith("index.yaml") ? needed : [[path, layers[path as keyof typeof layers]]],
      ),
    );
    const options = { cwd: join(folders.project, "packages/a"), profile: "work" };
    const build = async (): Promise<string> => {
      const workspace = await opened(folders, options);
      const { text } = await workspace.prompts.build({
        ...query,
        channel: "none",
        toolNames: ["skill", "read"],
      });
      return text.replaceAll(folders.project, "<project>").replaceAll(folders.user, "<user>");
    };
    const text = await build();
    expect(text.slice(0, text.indexOf("Current date:")).trim()).toMatchSnapshot();
  });

  test.for([
    [
      "SYSTEM.md replaces the identity",
      { "~/.reeve/SYSTEM.md": "I am the system.", "~/.reeve/SOUL.md": "Soul." },
      "I am the system.\n\n",
    ],
    ["SOUL.md replaces the default persona", { "~/.reeve/SOUL.md": "I am the soul." }, "I am the soul.\n\n"],
    ["without both there is a default persona", {}, "You are a capable assistant."],
    [
      "AGENT.md of the home folder follows the persona",
      { "~/.reeve/SOUL.md": "I am the soul.", "~/.reeve/AGENT.md": "At home." },
      "I am the soul.\n\nAt home.\n\n",
    ],
  ] as const)("the beginning of the system prompt: %s", async ([, files, start]) => {
    const folders = await testFolders();
    await folders.write(files);
    const { text } = await (await opened(folders)).prompts.build(query);
    expect(text.startsWith(start)).toBe(true);
    expect(text).toContain("Current date: 2026-11-16\n");
  });

  test("the system prompt lists skills and documents only for tools that can read them", async () => {
    const folders = await testFolders();
    await folders.write({
      ...layers,
      ".reeve/skills/near/SKILL.md": "---\nname: near\ndescription: In the project.\n---\nx",
    });
    const workspace = await opened(folders, { profile: "work" });
    const build = async (...toolNames: string[]) =>
      (await workspace.prompts.build({ ...query, toolNames })).text;
    expect(await build("bash")).not.toContain("<available_skills>");
    expect(await build("bash")).not.toContain("<available_knowledge>");
    expect(await build("bash")).toContain("The house is blue.");
    expect(await build("skill")).toContain("skills/lint/SKILL.md");
    expect(await build("knowledge")).toContain('<doc path="api.md"');
    const assistant = (await workspace.agent("assistant").catch(String)) as unknown;
    expect(assistant).toContain("missing model");
  });

  test("an agent with the tool read sees the skills of its root only", async () => {
    const folders = await testFolders();
    await folders.write({
      ...layers,
      ".reeve/skills/near/SKILL.md": "---\nname: near\ndescription: In the project.\n---\nx",
    });
    const prompts = promptsOf(await promptRun(folders, { profile: "work", settings: { tools: "none" } }));
    expect(prompts[0]).not.toContain("<available_skills>");
  });

  test("the second invocation takes its system prompt from the cache, and reload() reads the files again", async () => {
    const folders = await testFolders();
    await folders.write({ "AGENTS.md": "first" });
    const workspace = await opened(folders);
    const first = await workspace.prompts.build(query);
    await folders.write({ "AGENTS.md": "second" });
    const cached = await workspace.prompts.build(query);
    expect([first.fromCache, cached.fromCache]).toEqual([false, true]);
    expect(cached.text).toBe(first.text);
    expect((await workspace.prompts.build({ ...query, channel: "slack" })).fromCache).toBe(false);
    expect((await workspace.prompts.build({ ...query, toolNames: ["read"] })).fromCache).toBe(false);
    await workspace.reload();
    const after = await workspace.prompts.build(query);
    expect(after.fromCache).toBe(false);
    expect(after.text).toContain("second");
  });

  test("the system prompt up to its footer is the same in all sessions, and the whole prompt within a session and day", async () => {
    const folders = await testFolders();
    await folders.write(layers);
    let now = noon;
    const workspace = await opened(folders, { profile: "work", now: () => now });
    const build = async (sessionId: string) =>
      (await workspace.prompts.build({ ...query, sessionId: sessionId as never })).text;
    const [one, other] = [await build("ses_1"), await build("ses_2")];
    const prefix = (text: string) => text.slice(0, text.indexOf("Current date:"));
    expect(prefix(one)).toBe(prefix(other));
    expect(one).not.toBe(other);
    now += 3 * 3_600_000;
    expect(await build("ses_1")).toBe(one);
    now += 24 * 3_600_000;
    expect(await build("ses_1")).not.toBe(one);
    expect(prefix(await build("ses_1"))).toBe(prefix(one));
  });

  test("the memory file is read again for the system prompt after clearPrompts()", async () => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/MEMORY.md": "old memory" });
    const workspace = await opened(folders);
    expect((await workspace.prompts.build(query)).text).toContain("old memory");
    await folders.write({ "~/.reeve/MEMORY.md": "new memory" });
    workspace.clearPrompts();
    expect((await workspace.prompts.build(query)).text).toContain("new memory");
  });

  test("clearPrompts() clears the prompts of agents from before a reload, and of other workspaces with the same profile", async () => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/profiles/work/MEMORY.md": "old memory" });
    const workspace = await opened(folders, { profile: "work" });
    const before = workspace.prompts;
    await before.build(query);
    await workspace.reload();
    const other = await opened(folders, { profile: "work" });
    const { prompts: unrelated } = await opened(folders);
    await unrelated.build(query);
    await folders.write({ "~/.reeve/profiles/work/MEMORY.md": "new memory" });
    workspace.clearPrompts();
    // The other workspace has read the memory, but has built no prompt yet.
    for (const prompts of [before, workspace.prompts, other.prompts])
      expect((await prompts.build(query)).text).toContain("new memory");
    expect((await unrelated.build(query)).fromCache).toBe(true);
  });

  test("a 10 MB AGENTS.md is cut in the system prompt, and both the model and the notices say so", async () => {
    const folders = await testFolders();
    await folders.write({ "AGENTS.md": "Rule.\n".repeat(1_750_000) });
    const workspace = await opened(folders);
    const { text } = await workspace.prompts.build(query);
    expect(text.length).toBeLessThan(80_000);
    expect(text).toContain("[This file is cut: it has 10500000 bytes, of which the first 65536 are shown.]");
    expect(workspace.notices).toContainEqual(
      expect.objectContaining({ kind: "cut", path: join(folders.project, "AGENTS.md") }),
    );
  });

  test("an AGENTS.md that links to a key of the user is skipped", async () => {
    const folders = await testFolders();
    await folders.write({ "~/.aws/credentials": "secret = hunter2" });
    await folders.link("AGENTS.md", join(folders.user, ".aws/credentials"));
    await folders.link(".reeve/knowledge", join(folders.user, ".aws"));
    const workspace = await opened(folders);
    expect((await workspace.prompts.build(query)).text).not.toContain("hunter2");
    expect(workspace.notices.filter(({ kind }) => kind === "skipped").map(({ path }) => path)).toContain(
      join(folders.project, "AGENTS.md"),
    );
  });

  test("the model of an agent from a file receives the prompt with its instructions", async () => {
    const folders = await testFolders();
    await folders.write({
      "AGENTS.md": "Rules of the root.",
      ".reeve/agents/reviewer.md":
        "---\nmodel: scripted/one\ndescription: Reviews\ntools: [read, grep]\n---\nYou review code.",
    });
    const { text, agent } = await promptRun(folders, { trust: "always" }, "reviewer");
    expect(agent).toBeInstanceOf(Agent);
    expect(text).toContain("You review code.");
    expect(text).toContain("Rules of the root.");
    expect(text).not.toContain("You are a capable assistant.");
  });
});

describe("the rules of a platform in the system prompt", () => {
  test.for(platforms)("the platform %s has rules for answers", (platform) => {
    expect(platformHint(platform)).toMatch(/^You answer /u);
    expect(platformHint(`${platform}:4711`)).toBe(platformHint(platform));
  });

  test.for(platforms)(
    "a run with the channel %s has the rules of that platform in its prompt",
    async (platform) => {
      const folders = await testFolders();
      const { text } = await promptRun(folders, {}, undefined, { channel: `${platform}:4711` });
      for (const each of platforms) expect(text.includes(platformHint(each))).toBe(each === platform);
      expect(platformHint(platform)).toMatchSnapshot();
    },
  );

  test("a sub-agent has the rules of the platform of its run", async () => {
    const folders = await testFolders();
    await folders.write({
      ".reeve/agents/lead.md": "---\ntools: none\nsubAgents: [scout]\n---\nYou lead.",
      ".reeve/agents/scout.md": "---\ntools: none\n---\nYou look around.",
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "handoff_scout", input: { task: "Look." } }] },
      "Seen.",
      "Done.",
    ]);
    const settings = { model: "scripted/one" };
    const workspace = await opened(folders, { settings, trust: "always", resolveModel: () => model });
    await using runtime = await openRuntime();
    const agent = (await workspace.agent("lead")) as Agent;
    await agent.invoke("Hello", { runtime, channel: "slack" });
    const prompts = model.calls.map(({ messages }) => JSON.stringify(messages));
    expect(prompts.map((text) => text.includes("You look around."))).toEqual([false, true, false]);
    expect(prompts.every((text) => text.includes("You answer in Slack"))).toBe(true);
  });

  test("channels of one platform share the cached system prompt", async () => {
    const { prompts } = await opened(await testFolders());
    await prompts.build({ ...query, channel: "telegram:1" });
    expect((await prompts.build({ ...query, channel: "telegram:2" })).fromCache).toBe(true);
    expect((await prompts.build({ ...query, channel: "discord:2" })).fromCache).toBe(false);
  });

  test("the channel null has the rules of the terminal, and an unknown channel has no rules", () => {
    expect(platformHint(null)).toBe(platformHint("terminal"));
    expect(platformHint("pager")).toBe("");
    expect(platformHint("constructor")).toBe("");
  });
});

async function promptRun(
  folders: TestFolders,
  options: WorkspaceOptions,
  name?: string,
  call: { readonly channel?: Channel } = {},
) {
  const model = scriptedModel(["Done."]);
  const workspace = await opened(folders, {
    settings: { model: "scripted/one" },
    ...options,
    ...(options.settings && { settings: { model: "scripted/one", ...options.settings } }),
    resolveModel: () => model,
  });
  const agent = (await workspace.agent(name)) as Agent;
  await using runtime = await openRuntime();
  await agent.invoke("Hello", { ...call, runtime });
  const [request] = model.calls;
  return { text: JSON.stringify(request?.messages).replaceAll(String.raw`\n`, "\n"), agent };
}

function promptsOf({ text }: { readonly text: string }): readonly string[] {
  return [text];
}
