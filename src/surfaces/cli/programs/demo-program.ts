import { Option, type Command } from "commander";
import type { DemoOptions } from "../demo/demo-command.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

const help = `
Starts a server with the page and two workers on one SQLite file in a temporary folder. A company of agents
audits a small package: it hires, one agent gives its seat to another, a person approves a change and tops up
the allowance, one worker is killed with SIGKILL, and the other one finishes the run. The models are scripted;
files are read, searched and written for real. Nothing leaves this machine.

The first line is the address of that run on the page. In a terminal the server stays until Ctrl-C, unless CI is set.

${exitCodeTable()}

Examples:
  $ reeve demo
  $ reeve demo --exit --keep                  # ends after the story and keeps its store
  $ reeve demo --stay --pace 1500             # slower`;

/** Adds the command of the demo. */
export function addDemoCommand(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  program
    .command("demo")
    .description("show a company of agents, a kill -9 and the recovery after it, without an API key")
    .option("--stay", "serve the page after the story, until Ctrl-C")
    .option("--exit", "end after the story")
    .option("--pace <ms>", "how long the scripted models take per answer", "600")
    .option("--port <n>", "the port of the server; 0 chooses a free one", "0")
    .option("--keep", "keep the store and the files of the demo")
    .addOption(new Option("--act <folder>").hideHelp())
    .addOption(new Option("--worker <name>").hideHelp())
    .addHelpText("after", help)
    .action(async (options: DemoOptions) => {
      const { demoCommand } = await import("../demo/demo-command.ts");
      onEnd(await demoCommand(options, terminal));
    });
}
