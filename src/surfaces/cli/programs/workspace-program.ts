import { Argument, type Command } from "commander";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { AgentsCommandOptions } from "../commands/workspace/agents-command.ts";
import type { Shell } from "../commands/workspace/completion-command.ts";
import type { InitOptions } from "../commands/workspace/init-command.ts";
import type { TrustCommandOptions } from "../commands/workspace/trust-command.ts";

const initHelp = `
Existing files stay as they are. Prints the path of each file that it writes.

${exitCodeTable()}

Examples:
  $ reeve init
  $ reeve init ./shop --company`;

const agentsHelp = `
Prints one line for each agent: name, origin (built-in, home, profile or project), model, file and description.

${exitCodeTable()}

Examples:
  $ reeve agents
  $ reeve agents --profile work --json | jq .name`;

const trustHelp = `
Files of a project that run code or widen what agents may do are not used until you trust the project: reeve.config.ts,
agents, extensions, guardrails, MCP servers, SYSTEM.md and some settings. The decision covers these files as they are
now, with everything that they load: files, packages, and the programs of MCP servers. If one of them changes, you are
asked again. Lines that start with "not covered" name code that is fetched later; lines that start with "cannot be
checked" name programs that decide at run time what they load. Without a terminal such a project is not trusted.

reeve run and reeve serve execute only the runs of stores that your commands created. reeve trust also accepts the store
.reeve/reeve.db of the folder if others created it, and --store accepts another one.

${exitCodeTable()}

Examples:
  $ reeve trust
  $ reeve trust --yes ./shop
  $ reeve trust --remove ./shop
  $ reeve trust --store sqlite:./shop.db`;

const completionHelp = `
Prints a script that completes commands and options of reeve at the prompt of a shell.

${exitCodeTable()}

Examples:
  $ source <(reeve completion bash)                       # in ~/.bashrc
  $ source <(reeve completion zsh)                        # in ~/.zshrc, after compinit
  $ reeve completion fish > ~/.config/fish/completions/reeve.fish`;

/** Adds the commands of the workspace and of the shell: init, agents, trust and completion. */
export function addWorkspaceCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  program
    .command("init")
    .description("write a commented starting point: settings, an agent, a prompt and a skill")
    .argument("[FOLDER]", "the folder (default: the current one)")
    .option("--company", "also a lead with an employee for each known agent of this machine, and a budget")
    .addHelpText("after", initHelp)
    .action(async (folder: string | undefined, options: InitOptions) => {
      const { initCommand } = await import("../commands/workspace/init-command.ts");
      onEnd(await initCommand(folder, options, terminal));
    });
  program
    .command("agents")
    .description("list the agents of this folder with their origin")
    .option("--profile <name>", "the profile (default: $REEVE_PROFILE)")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", agentsHelp)
    .action(async (options: AgentsCommandOptions) => {
      const { agentsCommand } = await import("../commands/workspace/agents-command.ts");
      onEnd(await agentsCommand(options, terminal));
    });
  program
    .command("trust")
    .description("trust the files of a project that can run code")
    .argument("[PATH]", "a folder of the project (default: the current one)")
    .option("-y, --yes", "trust without a question")
    .option("--remove", "do not trust the project any more")
    .option("--store <address>", "accept only this store, as sqlite:PATH, instead of the project")
    .addHelpText("after", trustHelp)
    .action(async (path: string | undefined, options: TrustCommandOptions) => {
      const { trustCommand } = await import("../commands/workspace/trust-command.ts");
      onEnd(await trustCommand(path, options, terminal));
    });
  program
    .command("completion")
    .description("print a script that completes commands and options in a shell")
    .addArgument(new Argument("<SHELL>", "the shell").choices(["bash", "zsh", "fish"]))
    .addHelpText("after", completionHelp)
    .action(async (shell: Shell) => {
      const { completionScript } = await import("../commands/workspace/completion-command.ts");
      terminal.put(completionScript(shell, program));
      onEnd("ok");
    });
}
