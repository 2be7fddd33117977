import type { Command } from "commander";
import { exitCodesAnd, exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type {
  DeployOptions,
  DrainOptions,
  ListDeploymentsOptions,
} from "../commands/worker/deploy-command.ts";

const deployHelp = `
For workers with --engine restate. URL is the address at which Restate reaches their endpoint: that of one worker, or of
a load balancer before several. After the command, new work runs at this address. What has begun on an older version
ends there, so keep its workers running until reeve deploy drain has removed it. A run that sleeps or waits continues
on the newest version.

${exitCodeTable()}

Examples:
  $ reeve deploy http://workers-v2:9080 --admin-url http://restate:9070
  $ reeve deploy list
  $ reeve deploy drain --wait 600`;

const drainHelp = `
Removes only versions of the service --service, so that other applications of the same Restate keep theirs.
Prints the ids of the removed versions. Ends with code 6 if runs are still executed by an old version, and names them.

${exitCodeTable()}

Examples:
  $ reeve deploy drain
  $ reeve deploy drain --wait 600`;

/** Adds the commands that register workers with Restate. */
export function addDeployCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  const deploy = program
    .command("deploy")
    .description("register workers with Restate, list their versions and remove old ones")
    .argument("<URL>", "the address at which Restate reaches the workers")
    // The option belongs to this command and to those below it, and may stand behind their names.
    .enablePositionalOptions(false)
    .option("--admin-url <url>", "the admin API of Restate", "http://127.0.0.1:9070")
    .addHelpText("after", deployHelp)
    .action(async (uri: string, options: DeployOptions) => {
      const commands = await import("../commands/worker/deploy-command.ts");
      onEnd(await commands.deploy(uri, options, terminal));
    });
  deploy
    .command("list")
    .description("print the registered versions, the newest first")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", exitCodesAnd("reeve deploy list --json | jq -r .id"))
    .configureHelp({ showGlobalOptions: true })
    .action(async (_options: object, command: Command) => {
      const { listDeployments } = await import("../commands/worker/deploy-command.ts");
      onEnd(await listDeployments(command.optsWithGlobals<ListDeploymentsOptions>(), terminal));
    });
  deploy
    .command("drain")
    .description("remove old versions on which nothing runs")
    .option("--service <name>", "the name of the runs in Restate (default: reeve-runs)")
    .option("--wait <seconds>", "how long to wait for runs on old versions (default: 0)")
    .addHelpText("after", drainHelp)
    .configureHelp({ showGlobalOptions: true })
    .action(async (_options: object, command: Command) => {
      const { drainDeployments } = await import("../commands/worker/deploy-command.ts");
      onEnd(await drainDeployments(command.optsWithGlobals<DrainOptions>(), terminal));
    });
}
