import type { Command } from "commander";
import type { RemoveWorktreeOptions, WorktreeOptions } from "../commands/worktrees/worktree-commands.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

const worktreeArgument = "the worktree: RUN/TASK, its branch or its path";

const listHelp = `
Prints one line per worktree of this machine of which something is left, the oldest first: its name, agent, state,
the status of its run, age, numbers of changed and of uncommitted files, and path. The states:
  creating   the process ended while it was created
  open       its task works in it, or was stopped
  finished   its task has ended
  missing    something else has deleted its folder
  branch     its folder was removed, and no other branch has its work

${exitCodeTable()}

Examples:
  $ reeve worktrees
  $ reeve worktrees list --json | jq -r 'select(.state == "finished") | .name'`;

const showHelp = `
Prints the branch, the files and the commit of a worktree, and the command that merges its work.

${exitCodeTable()}

Examples:
  $ reeve worktrees show run_7f/t1
  $ reeve worktrees show run_7f/t1 --json | jq -r .changed.paths[]`;

const removeHelp = `
Removes the folder, and the branch if another branch has its commits. Nothing is lost: a worktree with changes that are not committed, or
with ignored files, is refused, and so is one whose run has not ended.

${exitCodeTable()}

Examples:
  $ reeve worktrees remove run_7f/t1
  $ reeve worktrees remove run_7f/t1 --commit             # keeps its files as a commit of its branch
  $ reeve worktrees remove run_7f/t1 run_7f/t2 --ignored  # deletes node_modules and the like`;

const restoreHelp = `
Creates the folder of a worktree again that something else has deleted, with what its branch has, and prints its path. Then
reeve resume continues the run.

${exitCodeTable()}

Examples:
  $ reeve worktrees restore run_7f/t1`;

/** Adds the commands for the worktrees in which tasks work. */
export function addWorktreeCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  const worktrees = program
    .command("worktrees")
    .description("list, show, remove and restore the worktrees of agents");
  common(worktrees.command("list", { isDefault: true }), "list the worktrees of which something is left")
    .addHelpText("after", listHelp)
    .action(async (options: WorktreeOptions) => {
      const { listWorktrees } = await import("../commands/worktrees/worktree-commands.ts");
      onEnd(await listWorktrees(options, terminal));
    });
  common(worktrees.command("show"), "print the branch and the files of a worktree")
    .argument("<WORKTREE>", worktreeArgument)
    .addHelpText("after", showHelp)
    .action(async (name: string, options: WorktreeOptions) => {
      const { showWorktree } = await import("../commands/worktrees/worktree-commands.ts");
      onEnd(await showWorktree(name, options, terminal));
    });
  common(worktrees.command("remove"), "remove worktrees without losing work")
    .argument("<WORKTREE...>", worktreeArgument)
    .option("--commit", "make a commit of files that are not committed, and keep the branch")
    .option("--ignored", "delete ignored files such as node_modules")
    .option("--ended", "the run has ended, although the store does not know it")
    .addHelpText("after", removeHelp)
    .action(async (names: string[], options: RemoveWorktreeOptions) => {
      const { removeWorktrees } = await import("../commands/worktrees/worktree-commands.ts");
      onEnd(await removeWorktrees(names, options, terminal));
    });
  common(worktrees.command("restore"), "create a deleted worktree again")
    .argument("<WORKTREE>", worktreeArgument)
    .addHelpText("after", restoreHelp)
    .action(async (name: string, options: WorktreeOptions) => {
      const { restoreWorktree } = await import("../commands/worktrees/worktree-commands.ts");
      onEnd(await restoreWorktree(name, options, terminal));
    });
}

function common(command: Command, description: string): Command {
  return command
    .description(description)
    .option(
      "--store <address>",
      "the store of the runs, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .option("--folder <path>", "the folder of the worktrees (default: worktrees in REEVE_HOME or ~/.reeve)")
    .option("--json", "print one JSON object per line");
}
