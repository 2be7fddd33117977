import type { Command } from "commander";
import { exitCodesAnd, exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type {
  GatewayEnvOptions,
  GatewayListOptions,
  GatewayTokenOptions,
} from "../commands/gateway/gateway-commands.ts";
import { defaultStore } from "../setup/default-store.ts";
import type { StoreOptions } from "../setup/stored-runs.ts";
import { collect } from "./server-program.ts";
import type { Terminal } from "../terminal/terminal.ts";

const tokenHelp = `
Creates a run of kind gateway that reeve serve executes, and prints a token. Programs that send it to the gateway
instead of a key spend at most the budget of the run. Top up with reeve top-up RUN --usd 5.

${exitCodeTable()}

Examples:
  $ reeve gateway token --max-budget-usd 5 --name claude
  $ reeve gateway token --max-budget-usd 2 --per day --wire anthropic --name team
  $ reeve gateway token --max-budget-usd 5 --on-budget ask
  $ reeve gateway token --max-budget-usd 0.50 --models gpt-5.2,gpt-5-mini --expires 7d --user ann`;

const envHelp = `
Starts a program with the variables that Claude Code, Codex, OpenCode, Gemini CLI and the SDKs of OpenAI,
Anthropic and Google read. It has a token of its own until it ends, and inherits neither a key of a provider
nor a variable that leads to another address or account, such as AWS_PROFILE.
The exit code is that of the program, or one of these if it does not start.

${exitCodeTable()}

Examples:
  $ reeve gateway env claude -- claude -p "Fix the failing test"
  $ reeve gateway env nightly -- python report.py`;

function withStoreOption(command: Command): Command {
  return command.option(
    "--store <address>",
    "the store, as sqlite:PATH or postgres://HOST/DATABASE",
    defaultStore,
  );
}

/** Adds the commands of the gateway. */
export function addGatewayCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (end: ExitKind | number) => void,
): void {
  const gateway = program.command("gateway").description("let programs outside a run spend at most a budget");
  withStoreOption(gateway.command("token"))
    .description("create a gateway run with a token, and print the token")
    .requiredOption(
      "--max-budget-usd <usd>",
      "what the programs may spend in all, or in each period, in dollars",
    )
    .option("--per <period>", "renew the budget at the start of each UTC day or month: day or month")
    .option(
      "--on-budget <what>",
      "at the budget, end the run, or ask a person for a top-up: end or ask (default: end)",
    )
    .option("--wire <name>", "the only wire that is served: anthropic, openai or gemini (default: all)")
    .option("--name <name>", "the name of the run (default: a new one)")
    .option("--models <names>", "the models that may be called, with commas (default: those of the gateway)")
    .option("--expires <time>", "when the run ends, as 30d, 12h, 90m or a date (default: when it is revoked)")
    .option("--user <id>", "the user of the run")
    .option("--tenant <id>", "the tenant of the run")
    .addHelpText("after", tokenHelp)
    .action(async (options: GatewayTokenOptions) => {
      const { createGatewayToken } = await import("../commands/gateway/gateway-commands.ts");
      onEnd(await createGatewayToken(options, terminal));
    });
  withStoreOption(gateway.command("list"))
    .description("print the gateway runs, newest first")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", exitCodesAnd("reeve gateway list --json | jq -r .name"))
    .action(async (options: GatewayListOptions) => {
      const { listGateways } = await import("../commands/gateway/gateway-commands.ts");
      onEnd(await listGateways(options, terminal));
    });
  withStoreOption(gateway.command("show"))
    .description("print the budget, the requests and the tokens of a gateway run")
    .argument("<NAME>", "the name of the run")
    .option("--json", "print one JSON object")
    .addHelpText("after", exitCodesAnd("reeve gateway show bot"))
    .action(async (name: string, options: GatewayListOptions) => {
      const { showGateway } = await import("../commands/gateway/gateway-commands.ts");
      onEnd(await showGateway(name, options, terminal));
    });
  withStoreOption(gateway.command("revoke"))
    .description("refuse the tokens of gateway runs from now on, and end the runs")
    .argument("<NAME...>", "the names of the runs")
    .addHelpText("after", exitCodesAnd("reeve gateway revoke bot"))
    .action(async (names: string[], options: StoreOptions) => {
      const { revokeGateways } = await import("../commands/gateway/gateway-commands.ts");
      onEnd(await revokeGateways(names, options, terminal));
    });
  withStoreOption(gateway.command("env"))
    .description("start a program that uses the gateway")
    .argument("<NAME>", "the name of the run")
    .argument("<COMMAND...>", "the program and its arguments, after --")
    .option("--url <address>", "the gateway (default: the one that executes the run)")
    .option(
      "--env <NAME>",
      "a variable that the program inherits although it holds a key or an account; may be repeated",
      collect,
    )
    .addHelpText("after", envHelp)
    .action(async (name: string, command: string[], options: GatewayEnvOptions) => {
      const { runBehindGateway } = await import("../commands/gateway/gateway-commands.ts");
      onEnd(await runBehindGateway(name, command, options, terminal));
    });
}
