import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { link, mkdir, open, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { JsonObject, ToolResult } from "../../src/kernel/index.ts";
import { outsideSecret, snapshot, Worlds } from "./attacked-world.ts";
import { Attacker, attacksAs, environmentSecret, identities } from "./attacker.ts";

/** One attack: its name, the tool and its input. `%outside%` stands for the path of the folder outside. */
type Attack = readonly [name: string, tool: string, input: JsonObject];

const read = (name: string, path: string): Attack => [`read ${name}`, "read", { path }];
const write = (name: string, path: string): Attack => [
  `write ${name}`,
  "write",
  { path, content: "planted" },
];
const edit = (name: string, path: string, oldText = "original"): Attack => [
  `edit ${name}`,
  "edit",
  { path, oldText, newText: "planted" },
];

const leaving: readonly Attack[] = [
  read("a parent folder", "../outside/secret"),
  read("a parent folder after a detour", "sub/../../outside/secret"),
  read("a parent folder after a missing folder", "nothing/../../outside/secret"),
  read("a parent folder with dots and slashes", ".//.././outside//secret"),
  read("an absolute path outside", "%outside%/secret"),
  read("an absolute path that begins like the workspace", "%outside%/../inside-not/secret"),
  read("through a linked folder", "out/secret"),
  read("through a link to a file", "leak"),
  read("through a chain of links", "chain"),
  read("through a link to the root of the system", "root/etc/passwd"),
  read("a link that links to itself", "loop"),
  read("/etc/passwd", "/etc/passwd"),
  read("/etc/shadow", "/etc/shadow"),
  read("the environment of the process", "/proc/self/environ"),
  read("the root through /proc", "/proc/self/root/etc/passwd"),
  read("a descriptor through /proc", "/proc/self/fd/0"),
  read("an endless device", "/dev/zero"),
  read("a path with a zero byte", "file\0/../../outside/secret"),
  read("a path with backslashes", "..\\outside\\secret"),
  read("a percent-encoded path", "%2e%2e/outside/secret"),
  read("a file URL", "file:///etc/passwd"),
  read("a home folder", "~/.ssh/id_rsa"),
  read("a parent folder of one-dot leaders", "\u2024\u2024/outside/secret"),
  read("a parent folder of full-width dots", "\uff0e\uff0e/outside/secret"),
  read("a path of 10,000 parts", "a/".repeat(10_000)),
  read("a name of 5,000 characters", "a".repeat(5_000)),
  read("a folder as a file", "sub"),
  write("to a parent folder", "../outside/planted"),
  write("to an absolute path outside", "%outside%/planted"),
  write("over a file outside through a link", "leak"),
  write("into a linked folder outside", "out/planted"),
  write("through a dangling link", "dangling"),
  write("through a link to the root of the system", "root/tmp/reeve-planted"),
  write("to a new folder outside", "../outside/new/planted"),
  write("over a folder", "sub"),
  write("to the workspace itself", "."),
  write("to a path with a zero byte", "a\0b"),
  edit("a file outside through a link", "leak", "OUTSIDE"),
  edit("a file outside through a chain of links", "chain", "OUTSIDE"),
  edit("a file outside by its absolute path", "%outside%/secret", "OUTSIDE"),
  ["list a parent folder", "ls", { path: ".." }],
  ["list the root of the system", "ls", { path: "/" }],
  ["list a linked folder", "ls", { path: "out" }],
  ["find in a parent folder", "find", { pattern: "../outside/*" }],
  ["find in an absolute folder", "find", { pattern: "/etc/*" }],
  ["find with escaped dots", "find", { pattern: String.raw`\.\./outside/*` }],
  ["find in a parent folder after a star", "find", { pattern: "**/../../outside/*" }],
  ["find in a linked folder", "find", { pattern: "*", path: "out" }],
  ["find through a linked folder", "find", { pattern: "out/*" }],
  ["find with a brace that names the parent", "find", { pattern: "{..,x}/outside/*" }],
  ["search a parent folder", "grep", { pattern: "SECRET", path: ".." }],
  ["search a linked file", "grep", { pattern: "SECRET", path: "leak" }],
  ["search a linked folder", "grep", { pattern: "SECRET", path: "out" }],
  ["search by a glob that leaves", "grep", { pattern: "SECRET", glob: "../**" }],
  ["search by a glob through a link", "grep", { pattern: "SECRET", glob: "out/*" }],
];

const controlling: readonly Attack[] = [
  write("the git configuration", ".git/config"),
  write("the git configuration by its absolute path", "%inside%/.git/config"),
  write("the git configuration in upper case", ".GIT/CONFIG"),
  write("the git configuration after a detour", "sub/../.git/./config"),
  write("the git configuration through a linked folder", "g/config"),
  write("the git configuration through a link to it", "link-to-config"),
  write("the git configuration with an ignorable code point", ".g\u200cit/config"),
  write("the git configuration with a soft hyphen", ".gi\u00adt/config"),
  write("the git configuration with full-width letters", "\uff0egit/config"),
  write("the git configuration with a trailing dot", ".git./config"),
  write("the git configuration with a trailing space", ".git /config"),
  write("the git configuration by its short name", "GIT~1/config"),
  write("the git configuration by a stream", ".git::$INDEX_ALLOCATION/config"),
  write("a new hook", ".git/hooks/pre-commit"),
  write("a new hook through a linked folder", "sub/hooks/pre-commit"),
  write("a hook in a new folder of hooks", ".git/hooks/new/pre-commit"),
  write("a redirection of the git folder", ".git/commondir"),
  write("a worktree configuration", ".git/config.worktree"),
  write("a redirection in a worktree's file", "wt/.git"),
  write("a new redirection", "new/.git"),
  write("the redirection of a worktree", ".git/worktrees/w/commondir"),
  write("the location of a worktree", ".git/worktrees/w/gitdir"),
  write("the configuration of a submodule", ".git/modules/m/config"),
  write("a hook of a submodule", ".git/modules/m/hooks/pre-commit"),
  write("a hook of a new submodule", ".git/modules/new/hooks/pre-commit"),
  write("the configuration of a nested repository", "sub/.git/config"),
  write("a hook of a nested repository", "sub/.git/hooks/post-checkout"),
  write("the configuration of a new repository", "new/.git/config"),
  write("the configuration of a bare repository", "bare.git/config"),
  write("a hook of a bare repository", "bare.git/hooks/post-update"),
  write("the last part of a bare repository", "half/HEAD"),
  write("an editor's tasks", ".vscode/tasks.json"),
  write("new editor settings", ".vscode/settings.json"),
  write("an editor's tasks in upper case", ".VSCode/tasks.json"),
  write("an editor's settings in a new folder", "sub/.vscode/tasks.json"),
  write("another editor's settings", ".idea/runConfigurations/run.xml"),
  write("an editor's workspace file", "project.code-workspace"),
  write("a development container", ".devcontainer/devcontainer.json"),
  write("another agent's settings", ".claude/settings.json"),
  write("the script of a skill", ".agents/skills/s/run.sh"),
  write("a list of MCP servers", ".mcp.json"),
  write("the store of runs", ".reeve/reeve.db"),
  write("new settings of Reeve", ".reeve/settings.json"),
  write("a shell start-up file", ".bashrc"),
  write("a login file", ".profile"),
  write("a new shell start-up file", ".zshenv"),
  write("a start-up file through a link", ".bash_aliases"),
  write("a start-up file of fish", ".config/fish/config.fish"),
  write("an environment file", ".envrc"),
  write("an environment file of a folder", "sub/.envrc"),
  write("a new environment file", "new/.envrc"),
  write("a hook in .husky", ".husky/pre-commit"),
  write("a hook in the folder that core.hooksPath names", "tools/hooks/pre-push"),
  write("a new hook in the folder that core.hooksPath names", "tools/hooks/pre-commit"),
  write("a hook in a new folder below the folder of hooks", "tools/hooks/new/pre-commit"),
  write("a file that the git configuration includes", "tools/git-settings"),
  write("the target of a linked start-up file", "dotfiles/aliases"),
  write("authorized keys", ".ssh/authorized_keys"),
  write("a debugger's start-up file", ".gdbinit"),
  edit("the git configuration", ".git/config", "bare = false"),
  edit("the git configuration through a link", "link-to-config", "bare = false"),
  edit("a sample hook", ".git/hooks/pre-commit.sample"),
  edit("a hook of a nested repository", "sub/.git/hooks/update"),
  edit("a hook of a bare repository", "bare.git/hooks/update"),
  edit("an editor's tasks", ".vscode/tasks.json"),
  edit("an environment file", ".envrc"),
  edit("a shell start-up file", ".bashrc"),
  edit("the redirection of a worktree", "wt/.git"),
];

const oversized: readonly Attack[] = [
  ["write 2 MiB", "write", { path: "big", content: "x".repeat(2 * 1024 * 1024) }],
  ["search with a pattern of 1,001 characters", "grep", { pattern: "a".repeat(1_001) }],
  ["search with an invalid pattern", "grep", { pattern: "(((" }],
  ["search with a pattern of 999 open groups", "grep", { pattern: "(".repeat(999) }],
];

function textOf({ output }: ToolResult): string {
  return output.type === "text" ? output.text : JSON.stringify(output);
}

describe.each(identities())("file tools as $name", (identity) => {
  const worlds = new Worlds(identity.uid);
  let attacker: Attacker;
  beforeAll(() => {
    attacker = new Attacker(identity);
  });
  afterAll(() => {
    attacker.end();
    worlds.close();
  });

  test.each(attacksAs(identity, [...leaving, ...controlling, ...oversized]))(
    "file tools refuse to %s, and neither change nor reveal anything",
    async (_, tool, input) => {
      const world = worlds.take();
      const before = snapshot(world.folder);
      const placed = JSON.parse(
        JSON.stringify(input).replace("%outside%", world.outside).replace("%inside%", world.inside),
      ) as JsonObject;
      const result = await attacker.call({ root: world.inside, tool, input: placed });
      const text = textOf(result);
      // A search that is confined to the workspace may also end without a match.
      expect(result.isError || /^\[no (?:file|line)/.test(text)).toBe(true);
      expect(text).not.toContain(outsideSecret);
      expect(text).not.toContain(environmentSecret);
      expect(text).not.toMatch(/^root:/m);
      expect(snapshot(world.folder)).toEqual(before);
    },
  );

  test.each([".git/refs/heads/topic", ".git/index", ".git/objects/pack/new", "sub/file", "half/new"])(
    "file tools can write %s",
    async (path) => {
      const { inside } = worlds.take();
      const result = await attacker.call({ root: inside, tool: "write", input: { path, content: "x" } });
      expect(textOf(result)).toContain(path);
      expect(await readFile(join(inside, path), "utf8")).toBe("x");
    },
  );

  test.each(["write", "edit"])(
    "the tool %s leaves the other names of a hard link unchanged",
    async (tool) => {
      const { inside, outside } = worlds.take();
      await writeFile(join(outside, "shared"), "original");
      await link(join(outside, "shared"), join(inside, "shared"));
      for (const [path, others] of [
        ["shared", join(outside, "shared")],
        ["alias-of-envrc", join(inside, ".envrc")],
      ] as const) {
        const before = await readFile(others, "utf8");
        const input =
          tool === "write" ? { path, content: "planted" } : { path, oldText: "original", newText: "planted" };
        await attacker.call({ root: inside, tool, input });
        expect(await readFile(others, "utf8")).toBe(before);
      }
    },
  );

  test("the tool edit never reaches a control file while another process swaps folders and links", async () => {
    const { inside } = worlds.take();
    const before = await readFile(join(inside, ".git/config"), "utf8");
    await mkdir(join(inside, "real"));
    await writeFile(join(inside, "real/config"), "bare");
    const over = new AbortController();
    const swapping = (async () => {
      while (!over.signal.aborted) {
        await rename(join(inside, "real"), join(inside, "kept"));
        await symlink(".git", join(inside, "real"));
        await rm(join(inside, "real"));
        await rename(join(inside, "kept"), join(inside, "real"));
      }
    })();
    const input = { path: "real/config", oldText: "bare", newText: "bare+" };
    for (let round = 0; round < 200; round++) await attacker.call({ root: inside, tool: "edit", input });
    over.abort();
    await swapping;
    expect(await readFile(join(inside, ".git/config"), "utf8")).toBe(before);
  });

  test.each([
    ["an exponential pattern", "^(a+)+$"],
    ["an exponential pattern with alternatives", "^(a|aa)+$"],
    ["a pattern with nested repetitions", "^((a{0,9}){0,9}){0,9}!$"],
    ["a polynomial pattern", "^a*a*a*a*a*a*a*a*a*a*$"],
  ])(
    "the tool grep ends %s at its time limit with an error, and other calls do not wait",
    async (_, pattern) => {
      const { inside } = worlds.take();
      await writeFile(join(inside, "victim"), `${"a".repeat(5_000)}b`);
      const options = { timeoutMs: 1_000 };
      const searching = attacker.call({
        root: inside,
        tool: "grep",
        input: { pattern, path: "victim" },
        options,
      });
      const other = await attacker.call({ root: inside, tool: "read", input: { path: "file" } });
      expect(textOf(other)).toContain("original");
      const result = await searching;
      expect(result.isError).toBe(true);
      expect(textOf(result)).toContain("took longer than 1000 ms and was stopped: use a simpler pattern");
    },
  );

  test("the tool read returns a bounded part of a file of 8 GB and of an endless line", async () => {
    const { inside } = worlds.take();
    const huge = await open(join(inside, "huge"), constants.O_CREAT | constants.O_WRONLY);
    await huge.truncate(8 * 1024 ** 3);
    await huge.close();
    await writeFile(join(inside, "line"), "x".repeat(3_000_000));
    for (const path of ["huge", "line"]) {
      const text = textOf(await attacker.call({ root: inside, tool: "read", input: { path } }));
      expect(text.length).toBeLessThan(300_000);
    }
  });

  test.each(["read", "write", "grep"])("the tool %s does not wait for a pipe", async (tool) => {
    const { inside } = worlds.take();
    await promisify(execFile)("mkfifo", [join(inside, "pipe")]);
    const input = {
      path: "pipe",
      ...(tool === "write" && { content: "x" }),
      ...(tool === "grep" && { pattern: "x" }),
    };
    const result = await attacker.call({ root: inside, tool, input });
    expect(result.isError || textOf(result).startsWith("[no line")).toBe(true);
  });
});
