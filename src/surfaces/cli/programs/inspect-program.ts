import type { Command } from "commander";
import type { DoctorOptions } from "../commands/doctor/doctor-command.ts";
import type { ConfigCommandOptions } from "../commands/workspace/config-command.ts";
import type { McpListOptions } from "../commands/workspace/mcp-command.ts";
import type { ModelsCommandOptions } from "../commands/workspace/models-command.ts";
import type { SkillsCommandOptions } from "../commands/workspace/skills-command.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

const modelsHelp = `
Prints one line per model: its name, its context window, its price, the agents that use it, and "ready" or what a call
lacks. The models are those of the settings and of the agents; those of agents in code are not known. No model is called.

${exitCodeTable()}

Examples:
  $ reeve models
  $ reeve models --all --json | jq -r 'select(.lacks == null) | .model'`;

const skillsHelp = `
Prints one line per skill: name, origin, the calls that it approves in advance, its file and its description.

${exitCodeTable()}

Examples:
  $ reeve skills
  $ reeve skills --json | jq -r .name`;

const mcpListHelp = `
Prints one line per MCP server of the files: name, state, what starts it, the names of its variables or headers, and the
file. The state is used, disabled, replaced (a later file has a server of this name) or needs trust. No server is started,
and values of variables and headers are not shown.

${exitCodeTable()}

Examples:
  $ reeve mcp list
  $ reeve mcp list --json | jq -r 'select(.state == "used") | .name'`;

const configHelp = `
Prints every setting with its value and the file or variable that sets it. KEY chooses a setting, or a group such as
budget. A place that sets a key without effect is printed below it, with the reason. Secrets are not shown: files name the
variables that hold them. No code of the workspace is loaded, so the options of reeve.config.ts are not part of the list.

${exitCodeTable()}

Examples:
  $ reeve config
  $ reeve config model budget
  $ reeve config --only-set --json | jq -r '.key + " " + .from[0].path'`;

const doctorHelp = `
Checks Node, the workspace and its trust, packages and keys of providers, the store (version, damage, size, locks, owner),
PostgreSQL and Restate if they are named, clock, disk, the sandbox, Chromium and ports. Prints one line per finding: ok,
note (an optional part is missing), warning or error, the area, and what was found, with the command that fixes it below.
Ends with code 1 if a finding is an error. Nothing is changed: a store is only read, no code of the workspace is loaded, and
keys are named and not shown.

${exitCodeTable()}

Examples:
  $ reeve doctor
  $ reeve doctor --store postgres://reeve@db.example.com/reeve
  $ reeve doctor --ingress-url http://restate:8080 --admin-url http://restate:9070
  $ reeve doctor --json | jq -r 'select(.fix) | .fix'`;

const profileOption = ["--profile <name>", "the profile (default: $REEVE_PROFILE)"] as const;
const jsonOption = ["--json", "print one JSON object per line"] as const;

/** Adds the commands that show what the files of a workspace contain. */
export function addInspectCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  program
    .command("models")
    .description("list the models of the workspace with price, context window and what a call lacks")
    .option(...profileOption)
    .option("--all", "also the other models that the price list has of these providers")
    .option(...jsonOption)
    .addHelpText("after", modelsHelp)
    .action(async (options: ModelsCommandOptions) => {
      const { modelsCommand } = await import("../commands/workspace/models-command.ts");
      onEnd(await modelsCommand(options, terminal));
    });
  program
    .command("skills")
    .description("list the skills of the workspace")
    .option(...profileOption)
    .option(...jsonOption)
    .addHelpText("after", skillsHelp)
    .action(async (options: SkillsCommandOptions) => {
      const { skillsCommand } = await import("../commands/workspace/skills-command.ts");
      onEnd(await skillsCommand(options, terminal));
    });
  program
    .command("mcp")
    .description("list the MCP servers of the workspace")
    .command("list")
    .description("list the MCP servers, without starting them")
    .option(...profileOption)
    .option(...jsonOption)
    .addHelpText("after", mcpListHelp)
    .action(async (options: McpListOptions) => {
      const { mcpListCommand } = await import("../commands/workspace/mcp-command.ts");
      onEnd(await mcpListCommand(options, terminal));
    });
  program
    .command("config")
    .description("print the settings with their values and the files that set them")
    .argument("[KEY...]", "only these settings or groups (default: all)")
    .option(...profileOption)
    .option("--only-set", "only settings that a place sets")
    .option(...jsonOption)
    .addHelpText("after", configHelp)
    .action(async (keys: string[], options: ConfigCommandOptions) => {
      const { configCommand } = await import("../commands/workspace/config-command.ts");
      onEnd(await configCommand(keys, options, terminal));
    });
  program
    .command("doctor")
    .description("check what Reeve needs here, and name the command that fixes each problem")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .option(...profileOption)
    .option("--ingress-url <url>", "also check the ingress of Restate")
    .option("--admin-url <url>", "also check the admin API of Restate")
    .option("--full", "check all of a store for damage, also one that is larger than 1 GB")
    .option(...jsonOption)
    .addHelpText("after", doctorHelp)
    .action(async (options: DoctorOptions) => {
      const { doctorCommand } = await import("../commands/doctor/doctor-command.ts");
      onEnd(await doctorCommand(options, terminal));
    });
}
