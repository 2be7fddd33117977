import type { Command } from "commander";
import { addAgentOptions } from "./agent-options.ts";
import { collect } from "./server-program.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import { defaultStore } from "../setup/default-store.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { WorkerOptions } from "../commands/worker/worker-command.ts";

const help = `
Hosts the agents of the workspace (reeve agents lists them) and executes their runs: those of this folder, whichever
process started them. Several workers, also of several machines, may share one PostgreSQL store; a folder must have
the same path on all machines. Runs of a worker that dies are taken over by the others.

stdout has one line per event: JSON, or a text if stdout is a terminal. With --port the worker answers
  /healthz   200 while the process answers
  /readyz    200 while the store confirms its heartbeats and it can claim runs, otherwise 503
  /metrics   counts of runs, steps, tokens and dollars for Prometheus
Requests for other host names than those of its address and of --allow-host get 403.

On SIGTERM or Ctrl-C it claims no more runs, lets calls in flight settle, releases its runs and ends with code 0. A
second signal ends it at once. On SIGHUP it reads the files of the workspace again.

With --engine restate a Restate server decides which worker executes a run and when (docs/operations/restate.md). The worker needs the
package @restatedev/restate-sdk and a port of its own, at which Restate invokes it. reeve deploy registers that address.

${exitCodeTable()}

Examples:
  $ reeve worker --store postgres://reeve@db.example.com/reeve --port 9464
  $ reeve worker --concurrency 16 --drain-timeout 120 --log-format text
  $ reeve worker --engine restate --ingress-url http://restate:8080 --endpoint-port 9080`;

/** Adds the command of the worker. */
export function addWorkerCommand(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  const worker = program
    .command("worker")
    .description("execute the runs of a store, without a server for callers")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .option("--engine <local|restate>", "the engine that decides which worker executes a run", "local")
    .option("--ingress-url <url>", "the ingress of Restate (default: http://127.0.0.1:8080)")
    .option("--endpoint-port <n>", "the port for Restate; 0 chooses a free one (default: 9080)")
    .option("--endpoint-host <address>", "the address for Restate (default: 127.0.0.1)")
    .option(
      "--identity-key <key...>",
      "the public keys of Restate; requests without its signature are refused",
    )
    .option("--service <name>", "the name of the runs in Restate (default: reeve-runs)")
    .option("--slice <seconds>", "after this time a worker hands a run back to Restate (default: 30)")
    .option("--concurrency <n>", "maximum number of tasks that work at the same time (default: 64)")
    .option("--drain-timeout <seconds>", "how long calls in flight may take after SIGTERM", "30")
    .option("--port <n>", "the port of the probes; 0 chooses a free one (default: no port)")
    .option("--host <address>", "the address of the probes", "127.0.0.1")
    .option(
      "--allow-host <name>",
      "a further name of the probes, as clients write it; may be repeated",
      collect,
    )
    .option("--log-format <text|json>", "the format of stdout (default: text in a terminal, or json)")
    .option("--agent <name>", "host only this agent of the workspace")
    .option("--profile <name>", "the profile (default: $REEVE_PROFILE)")
    .option("--root <folder>", "the folder that the tools may use (default: the current folder)");
  addAgentOptions(worker, {
    model: "the model of agents without one (default: $REEVE_MODEL)",
    tools: "their own, or read",
  });
  worker.addHelpText("after", help).action(async (options: WorkerOptions) => {
    const { workerCommand } = await import("../commands/worker/worker-command.ts");
    onEnd(await workerCommand(options, terminal));
  });
}
