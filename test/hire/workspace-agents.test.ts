import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import type { Agent } from "../../src/assembly/agent.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openWorkspace, type Workspace, type WorkspaceOptions } from "../../src/workspace/workspace.ts";
import { MockUpstream } from "../capabilities/gateway/mock-upstream.ts";
import { agentFile } from "./agent-file.ts";
import { afterTest, eventsOf, scripted, tempFolder } from "./hire-world.ts";

const command = JSON.stringify(agentFile("demo-process"));

interface Files {
  readonly project: string;
  readonly home: string;
  readonly write: (files: Readonly<Record<string, string>>) => Promise<void>;
  readonly open: (options?: WorkspaceOptions) => Promise<Workspace>;
}

/** A project and a home folder without a sandbox, in which every call is allowed. */
async function files(): Promise<Files> {
  const [project, home] = [await tempFolder(), await tempFolder()];
  process.env["REEVE_HOME"] = home;
  const write: Files["write"] = async (texts) => {
    for (const [path, text] of Object.entries(texts)) {
      const file = path.startsWith("~/") ? join(home, path.slice(2)) : join(project, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  };
  await write({
    "~/settings.json": JSON.stringify({ sandbox: "off", permissions: { mode: "bypass" } }),
    ".reeve/settings.json": "{}",
  });
  return {
    project,
    home,
    write,
    open: async (options = {}) => {
      const workspace = await openWorkspace({ cwd: project, home, env: {}, trust: "always", ...options });
      afterTest(() => workspace.close());
      return workspace;
    },
  };
}

async function runtimeOf() {
  const runtime = await openRuntime({
    store: "memory:",
    prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) },
  });
  afterTest(() => runtime.close());
  return runtime;
}

test("an agent file with harness makes a hired agent behind a gateway that the workspace opens and closes", async () => {
  const upstream = await MockUpstream.open(
    scripted([{ run: "echo $ANTHROPIC_BASE_URL > url.txt" }, { say: "Written." }]),
  );
  afterTest(() => upstream.close());
  const { project, write, open } = await files();
  const upstreams = { anthropic: { baseUrl: upstream.url, apiKey: "secret-key", provider: "mock" } };
  await write({
    "reeve.config.mjs": `export default { gateway: ${JSON.stringify({ upstreams })} };`,
    ".reeve/agents/coder.md": `---\ndescription: Writes code\nharness: demo\ncommand: ${command}\nmodel: anthropic/claude-opus-4-5\nbudget: { maxCostUsd: 5 }\n---\nWrite short code.`,
  });
  const workspace = await open();
  expect(workspace.agents().find(({ name }) => name === "coder")).toMatchObject({
    harness: "demo",
    maxCostUsd: 5,
  });
  const agent = (await workspace.agent("coder")) as Agent;
  const run = await (await runtimeOf()).submit(agent, "Write.");
  const { status, output, costUsd } = await run.result();
  expect([status, output]).toEqual(["completed", "Written."]);
  expect(costUsd).toBeCloseTo(0.2, 9);
  const [first] = upstream.bodies;
  expect(first?.["model"]).toBe("claude-opus-4-5");
  expect(JSON.stringify(first?.["messages"])).toContain("Write short code.");
  expect(agent.budget).toEqual({ maxCostUsd: 5 });
  const url = (await readFile(join(project, "url.txt"), "utf8")).trim();
  expect((await fetch(`${url}/v1/models`)).status).toBe(401);
  await workspace.close();
  await expect(fetch(`${url}/v1/models`)).rejects.toThrow("fetch failed");
});

const refused = {
  "without a key of its provider": {
    text: "harness: claude-code",
    says: "claude-code needs the key of a provider in ANTHROPIC_API_KEY, because a subscription has no price",
  },
  "with the key of another provider": {
    text: "harness: codex",
    env: { ANTHROPIC_API_KEY: "k" },
    says: "codex needs the key of a provider in OPENAI_API_KEY",
  },
  "with an unknown harness": {
    text: "harness: claude-cod",
    env: { ANTHROPIC_API_KEY: "k" },
    says: 'use "claude-code"',
  },
  "without the command of harness acp": {
    text: "harness: acp",
    env: { ANTHROPIC_API_KEY: "k" },
    says: 'missing "command"',
  },
  "with an option of own agents": {
    text: "harness: claude-code\ntools: [read]",
    says: 'invalid "tools" in',
  },
  "with an unknown key": {
    text: "harness: claude-code\nbudgets: { maxCostUsd: 1 }",
    says: '"budgets"',
  },
  "with an unknown key that resembles none": {
    text: "harness: claude-code\nallowEverything: true",
    says: 'invalid "allowEverything" in',
  },
  "with a command and no harness": {
    text: "command: [my-agent, acp]",
    says: 'invalid "command" in',
  },
  "with the model of another provider": {
    text: "harness: claude-code\nmodel: openai/gpt-5.2",
    env: { ANTHROPIC_API_KEY: "k" },
    says: "claude-code calls models of anthropic; use anthropic/id",
  },
} as const;

test.for(Object.entries(refused))("an agent file %s is refused with the reason", async ([, bad]) => {
  const { text, says, env } = { env: {}, ...bad };
  const { write, open } = await files();
  await write({ ".reeve/agents/coder.md": `---\n${text}\n---\nWork.` });
  const workspace = await open({ env });
  await expect(workspace.agent("coder")).rejects.toThrow(says);
});

test("an agent file with harness and a key makes an agent, whose project values apply only if the user has trusted them", async () => {
  const { write, open } = await files();
  const env = { ANTHROPIC_API_KEY: "k" };
  await write({
    "~/agents/own.md": "---\nharness: claude-code\n---\nWork.",
    ".reeve/agents/coder.md": "---\nharness: claude-code\n---\nWork.",
  });
  await write({ ".reeve/agents/helper.md": "---\nharness: acp\ncommand: [./run.sh, --all]\n---\nHelp." });
  const untrusted = await open({ env, trust: "stored" });
  expect((await untrusted.agent("own")).id).toBe("own");
  const saysOf = (name: string): string | undefined =>
    untrusted.notices.find(({ path }) => path.endsWith(`/${name}.md`))?.message;
  expect(saysOf("coder")).toBe(
    "an agent that starts the program of harness claude-code needs trust; run reeve trust",
  );
  expect(saysOf("helper")).toContain(
    'an agent that starts the program ["./run.sh","--all"] (harness acp) needs trust',
  );
  await expect(untrusted.agent("coder")).rejects.toThrow("the project is not trusted; run reeve trust");
  await untrusted.trust();
  expect((await untrusted.agent("coder")).id).toBe("coder");
  await write({ ".reeve/agents/coder.md": "---\nharness: claude-code\ninheritEnv: [HOME]\n---\nWork." });
  await untrusted.reload();
  expect(saysOf("coder")).toContain(
    "it is refused, because it would start the program of harness claude-code",
  );
  await expect(untrusted.agent("coder")).rejects.toThrow("you have not trusted it as it is");
});

test("an agent of a file with isolation works in a worktree of the workspace", async () => {
  const { project, write, open } = await files();
  await write({
    "a.txt": "old\n",
    ".reeve/agents/editor.md": "---\ntools: [write]\nisolation: worktree\n---\nEdit.",
  });
  const git = (...args: readonly string[]) =>
    promisify(execFile)("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
      cwd: project,
    });
  await git("init", "-q");
  await git("add", ".");
  await git("commit", "-qm", "first");
  const model = scriptedModel([
    { toolCalls: [{ name: "write", input: { path: "a.txt", content: "new\n" } }] },
    "Changed.",
  ]);
  const workspace = await open({ env: { REEVE_MODEL: "scripted/x" }, resolveModel: () => model });
  const agent = (await workspace.agent("editor")) as Agent;
  const run = await (await runtimeOf()).submit(agent, "Change it.");
  const { status, output, error } = await run.result();
  expect([status, output, error]).toEqual(["completed", "Changed.", null]);
  expect(await readFile(join(project, "a.txt"), "utf8")).toBe("old\n");
  const finished = (await eventsOf(run)).flatMap(({ type, data }) =>
    type === "worktree_finish" ? [data] : [],
  );
  expect(finished).toMatchObject([{ changed: { paths: ["a.txt"] }, state: "kept" }]);
  const { stdout } = await git("show", `${finished[0]?.commit}:a.txt`);
  expect(stdout).toBe("new\n");
});
