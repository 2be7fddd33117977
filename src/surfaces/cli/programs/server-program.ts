import type { Command } from "commander";
import { addAgentOptions } from "./agent-options.ts";
import { exitCodesAnd, exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { AcpOptions } from "../commands/acp/editor-folders.ts";
import type { ServeOptions } from "../commands/serve/serve-command.ts";
import type { ApprovePairingOptions, ListPairingsOptions } from "../commands/serve/pair-command.ts";
import type { CreateTokenOptions, ListTokensOptions } from "../commands/serve/token-command.ts";
import { defaultStore } from "../setup/default-store.ts";
import type { StoreOptions } from "../setup/stored-runs.ts";
import type { Terminal } from "../terminal/terminal.ts";

const serveHelp = `
Prints the address of the server: a link that works once and opens the page. Other programs send a token of
reeve token create with each request. GET /openapi.json describes all routes.

The server hosts the agents of the workspace (reeve agents lists them), and executes the runs of this folder:
those that callers start, and those that reeve run left behind. Runs of other agents are shown and wait for a worker.
On Ctrl-C it starts no further call, finishes those in flight and ends; the next process continues the runs.

${exitCodeTable()}

Examples:
  $ reeve serve --model anthropic/claude-sonnet-5
  $ reeve serve --no-worker --port 8080
  $ reeve serve --no-worker --engine restate --ingress-url http://restate:8080 --store postgres://reeve@db/reeve
  $ reeve token create --scope admin && reeve serve --host 0.0.0.0`;

const acpHelp = `
For editors such as Zed, which start this command and show its sessions; docs/guides/acp.md has their settings. Needs the
packages @agentclientprotocol/sdk and zod. The editor's folder is that of the workspace and of the tools. Runs are
stored: after a crash the editor loads the session, and /resume continues the run. stdout carries the protocol only.

${exitCodeTable()}

Examples:
  $ reeve acp --model anthropic/claude-sonnet-5
  $ reeve acp --agent reviewer --tools all`;

const createHelp = `
read: reads. run: also starts and controls runs, and changes sessions. admin: also delivers dead letters again.
Only an admin token may have no tenant; it then sees the whole store.

${exitCodeTable()}

Examples:
  $ reeve token create --tenant acme --user ann
  $ reeve token create --scope admin --days 30`;

const pairHelp = `
An unknown sender of a channel receives a code. Approve it only if the sender told you the code in person or by
another way: everyone who knows the name of a bot can write to it. Runs of the sender belong to the user and the
tenant that you name here.

${exitCodeTable()}

Examples:
  $ reeve pair approve K7QM-3XWA --user ann
  $ reeve pair list
  $ reeve pair revoke telegram:4711`;

/** Adds the commands of the server. */
export function addServerCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  const serve = program
    .command("serve")
    .description("serve runs and sessions over HTTP, and execute the runs of this folder")
    .option("--port <n>", "the port; 0 chooses a free one", "4711")
    .option("--host <address>", "the address to listen at; others than 127.0.0.1 need a token", "127.0.0.1")
    .option(
      "--allow-host <name>",
      "a further name of this server, as clients write it; may be repeated",
      collect,
    )
    .option("--no-token", "let every program of this machine use the server")
    .option("--no-worker", "execute no runs")
    .option("--gateway-port <n>", "the port of the gateway (default: the port of the server plus one)")
    .option("--engine <local|restate>", "the engine of the workers that execute the runs", "local")
    .option("--ingress-url <url>", "the ingress of Restate (default: http://127.0.0.1:8080)")
    .option("--service <name>", "the name of the runs in Restate (default: reeve-runs)")
    .option("--agent <name>", "host only this agent of the workspace")
    .option("--profile <name>", "the profile (default: $REEVE_PROFILE)")
    .option("--root <folder>", "the folder that the tools may use (default: the current folder)")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    );
  addAgentOptions(serve, {
    model: "host the agent of reeve run with this model (default: $REEVE_MODEL)",
    tools: "their own, or read",
  });
  serve.addHelpText("after", serveHelp).action(async (options: ServeOptions) => {
    const { serveCommand } = await import("../commands/serve/serve-command.ts");
    onEnd(await serveCommand(options, terminal));
  });
  const acp = program
    .command("acp")
    .description("answer an editor with the Agent Client Protocol over stdin and stdout");
  addAgentOptions(acp, { model: "the model (default: $REEVE_MODEL)", tools: "their own, or read" });
  acp
    .option("--agent <name>", "the agent of the workspace (default: that of the session, or assistant)")
    .option("--profile <name>", "the profile (default: $REEVE_PROFILE)")
    .option("--store <address>", "where runs are kept (default: .reeve/reeve.db in the folder of the editor)")
    .addHelpText("after", acpHelp)
    .action(async (options: AcpOptions) => {
      const { acpCommand } = await import("../commands/acp/acp-command.ts");
      onEnd(await acpCommand(options, terminal));
    });
  const token = program.command("token").description("create, list and revoke tokens of the server");
  token
    .command("create")
    .description("create a token and print it")
    .option("--name <text>", "a name for lists", "token")
    .option("--scope <read|run|admin>", "what the token may do", "run")
    .option("--tenant <id>", "the tenant whose runs the token sees")
    .option("--user <id>", "the user of the tenant; others' runs are then not visible")
    .option("--days <n>", "how long the token is valid (default: until it is revoked)")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .addHelpText("after", createHelp)
    .action(async (options: CreateTokenOptions) => {
      const { createToken } = await import("../commands/serve/token-command.ts");
      onEnd(await createToken(options, terminal));
    });
  token
    .command("list")
    .description("print the tokens, without their secrets")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .option("--json", "print one JSON object per line")
    .addHelpText("after", exitCodesAnd("reeve token list --json | jq -r .name"))
    .action(async (options: ListTokensOptions) => {
      const { listTokens } = await import("../commands/serve/token-command.ts");
      onEnd(await listTokens(options, terminal));
    });
  token
    .command("revoke")
    .description("revoke tokens and print their ids")
    .argument("<ID...>", "the ids of the tokens")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .addHelpText("after", exitCodesAnd("reeve token revoke tok_7f"))
    .action(async (tokenIds: string[], options: StoreOptions) => {
      const { revokeTokens } = await import("../commands/serve/token-command.ts");
      onEnd(await revokeTokens(tokenIds, options, terminal));
    });
  addPairCommands(program, terminal, onEnd);
}

function addPairCommands(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  const pair = program.command("pair").description("admit senders of channels, list and revoke them");
  pair
    .command("approve")
    .description("admit the sender of a pairing code")
    .argument("<CODE>", "the code that the sender received")
    .option("--user <id>", "the user of the sender's runs (default: CHANNEL:SENDER)")
    .option("--tenant <id>", "the tenant of the sender's runs (default: no tenant)")
    .option("--store <address>", "the store, as sqlite:PATH", defaultStore)
    .addHelpText("after", pairHelp)
    .action(async (code: string, options: ApprovePairingOptions) => {
      const { approvePairing } = await import("../commands/serve/pair-command.ts");
      onEnd(await approvePairing(code, options, terminal));
    });
  pair
    .command("list")
    .description("print the admitted senders, and those that wait with a code")
    .option("--store <address>", "the store, as sqlite:PATH", defaultStore)
    .option("--json", "print one JSON object per line")
    .addHelpText("after", exitCodesAnd("reeve pair list --json | jq -r .senderId"))
    .action(async (options: ListPairingsOptions) => {
      const { listPairings } = await import("../commands/serve/pair-command.ts");
      onEnd(await listPairings(options, terminal));
    });
  pair
    .command("revoke")
    .description("revoke the pairings of senders and print them")
    .argument("<CHANNEL:SENDER...>", "the senders, as reeve pair list prints them")
    .option("--store <address>", "the store, as sqlite:PATH", defaultStore)
    .addHelpText("after", exitCodesAnd("reeve pair revoke telegram:4711"))
    .action(async (senders: string[], options: StoreOptions) => {
      const { revokePairings } = await import("../commands/serve/pair-command.ts");
      onEnd(await revokePairings(senders, options, terminal));
    });
}

export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
