import type { Command } from "commander";
import { exitCodeTable, type ExitKind } from "./exit-code.ts";
import { defaultStore } from "./stored-runs.ts";
import type { Terminal } from "./terminal.ts";
import type { WorkerOptions } from "./worker/worker-command.ts";

const help = `
Hosts the agents of the workspace (reeve agents lists them) and drives their runs: those of this folder, whichever
process started them. Several workers, also of several machines, may share one PostgreSQL store; a folder must have
the same path on all machines. Runs of a worker that dies are taken over by the others.

stdout has one line per event: JSON, or a text if stdout is a terminal. With --port the worker answers
  /healthz   200 while the process answers
  /readyz    200 while the store confirms its heartbeats and it can claim runs, otherwise 503
  /metrics   counts of runs, steps, tokens and dollars for Prometheus

On SIGTERM or Ctrl-C it claims no more runs, lets calls in flight settle, releases its runs and ends with code 0. A
second signal ends it at once. On SIGHUP it reads the files of the workspace again.

${exitCodeTable()}

Examples:
  $ reeve worker --store postgres://reeve@db.example.com/reeve --port 9464
  $ reeve worker --concurrency 16 --drain-timeout 120 --log-format text`;

/** Adds the command of the worker. */
export function addWorkerCommand(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  program
    .command("worker")
    .description("drive the runs of a store, without a server for callers")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .option("--engine <local>", "the engine that decides which worker drives a run", "local")
    .option("--concurrency <n>", "maximum number of tasks that work at the same time (default: 64)")
    .option("--drain-timeout <seconds>", "how long calls in flight may take after SIGTERM", "30")
    .option("--port <n>", "the port of the probes; 0 chooses a free one (default: no port)")
    .option("--host <address>", "the address of the probes", "127.0.0.1")
    .option("--log-format <text|json>", "the format of stdout (default: text in a terminal, or json)")
    .option("--agent <name>", "host only this agent of the workspace")
    .option("--profile <name>", "the profile (default: $REEVE_PROFILE)")
    .option("-m, --model <provider/id>", "the model of agents without one (default: $REEVE_MODEL)")
    .option("--base-url <url>", "the provider's address, if it is not the usual one")
    .option("--tools <none|read|all>", "the tools of the agents (default: their own, or read)")
    .option("--root <folder>", "the folder that the tools may use (default: the current folder)")
    .option("--sandbox <enforce|warn|off>", "the sandbox of shell commands (default: enforce)")
    .option("--instructions <text>", "the system prompt")
    .option("--max-turns <n>", "maximum number of turns (default: 25)")
    .addHelpText("after", help)
    .action(async (options: WorkerOptions) => {
      const { workerCommand } = await import("./worker/worker-command.ts");
      onEnd(await workerCommand(options, terminal));
    });
}
