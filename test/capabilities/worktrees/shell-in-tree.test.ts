import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { bashTool } from "../../../src/entries/tools.ts";
import type { TaskFolder } from "../../../src/kernel/index.ts";
import { callTool, textOf } from "../tools/call-tool.ts";
import { inTree } from "./opened-tree.ts";
import { testRepository } from "./repository.ts";

const bubblewrap = inject("bubblewrap");

describe.skipIf("problem" in bubblewrap)("D1: bash in the sandbox of a worktree", () => {
  const program = "program" in bubblewrap ? bubblewrap.program : "bwrap";
  const runner = (root: string): ((folder: TaskFolder, command: string) => Promise<string>) => {
    const bash = bashTool({ root, sandbox: { mode: "enforce", program } });
    return async (folder, command) => textOf(await callTool(bash, { command }, { folder }));
  };

  it("D1: bash in a worktree commits on the worktree's branch under the name of the user, and sees nothing of the checkout", async () => {
    const repository = testRepository();
    repository.write("secret.txt", "not committed\n");
    const { path, git } = repository;
    const bash = runner(path);
    await inTree(repository, async (folder) => {
      const { branch } = folder;
      const shown = await bash(
        folder,
        `pwd; echo changed > a.txt; git commit -qam work && git log -1 --format=%an; ls ${path}; git status --short`,
      );
      expect(shown).toBe(`${folder.path}\nAnn`);
      expect(git(`log -1 --format=%s ${branch}`)).toBe("work");
      expect(git("rev-parse main")).toBe(folder.base);
      expect(repository.read("a.txt")).toBe("a\n");
      expect(await bash(folder, `cat ${path}/secret.txt`)).toContain("secret.txt: No such file");
      await bash(folder, `echo x > ${path}/a.txt; echo x > ../x.txt`);
      expect(repository.read("a.txt")).toBe("a\n");
      expect(existsSync(join(folder.path, "..", "x.txt"))).toBe(false);
    });
  });

  it("bash in a worktree cannot change the history, the branches, the settings and the hooks of the repository", async () => {
    const repository = testRepository();
    const { path, git } = repository;
    git("gc --quiet");
    const head = git("rev-parse HEAD");
    const bash = runner(path);
    await inTree(repository, async (folder) => {
      const { path: own } = folder;
      const commands = [
        `rm -r ${path}/.git/objects/pack`,
        `mv ${path}/.git/objects/pack ${path}/.git/objects/x`,
        `git branch -f main HEAD~0 2>&1; git update-ref refs/heads/main ${"0".repeat(40)}`,
        `git branch -D main`,
        `git config core.fsmonitor /tmp/x`,
        `echo x > ${path}/.git/hooks/pre-commit`,
        `d=$(git rev-parse --git-dir); echo /tmp > $d/commondir`,
        `d=$(git rev-parse --git-dir); rm $d/gitdir`,
        `rm .git && echo gitdir: /tmp/x > .git`,
        `ls ${join(own, "..")}/*.json`,
      ];
      for (const command of commands)
        expect([command, await bash(folder, command)]).toEqual([
          command,
          expect.stringMatching(/\[exit code \d+\]$/u),
        ]);
      expect(git("rev-parse main")).toBe(head);
      expect(git("fsck --strict")).toBe("");
      expect(git("config --local --list")).not.toContain("fsmonitor");
      expect(existsSync(join(path, ".git", "hooks", "pre-commit"))).toBe(false);
    });
  });

  it("bash in a worktree cannot reach the worktree and the branch of another task", async () => {
    const repository = testRepository();
    const bash = runner(repository.path);
    await inTree(repository, async (other) => {
      await inTree(repository, async (folder) => {
        expect(await bash(folder, `ls ${other.path}`)).toContain("No such file");
        expect(
          await bash(
            folder,
            `git update-ref refs/heads/${other.branch} HEAD~0 -m x; git branch -f ${other.branch} HEAD`,
          ),
        ).toMatch(/cannot lock ref|Read-only|cannot force update/u);
      });
    });
  });
});
