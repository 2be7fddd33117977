import type { Command } from "commander";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { WatchOptions } from "../watch/watch-command.ts";

const watchHelp = `
With RUN, shows its agents as a tree: what each does now or waits for, its seat, its cost and budget, and its turns; below
them what waits for you, or money by agent. Without RUN, shows all runs, those that have not ended first; Enter opens one.

Keys: a answers a question, u adds to a budget, p pauses or continues, s tells an agent something, c cancels; each asks
before it changes something, except p. ? lists all keys. q leaves; the runs continue. The command executes no run: an order
to a run that no process executes takes effect when one resumes it.

With --url, the runs are those of a server; REEVE_TOKEN is the token (reeve token create). With --plain, each change is a
line, and the command ends with the run.

${exitCodeTable()}

Examples:
  $ reeve watch                              # all runs of the store
  $ reeve watch run_7f
  $ reeve watch --url http://127.0.0.1:4711
  $ reeve watch run_7f --plain | grep asks`;

/** Adds the command that shows runs as they proceed. */
export function addWatchCommand(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  program
    .command("watch")
    .description("watch agents, money and inbox of a run, or all runs, in the terminal")
    .argument("[RUN]", "the run: its id, or enough of its first characters (default: all runs)")
    .option("--url <server>", "the runs of this server")
    .option("--plain", "print a line for each change instead of drawing: for pipes and screen readers")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .addHelpText("after", watchHelp)
    .action(async (name: string | undefined, options: WatchOptions) => {
      const { watchCommand } = await import("../watch/watch-command.ts");
      onEnd(await watchCommand(name, options, terminal));
    });
}
