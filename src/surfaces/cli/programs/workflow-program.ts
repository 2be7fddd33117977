import type { Command } from "commander";
import type {
  PromiseOptions,
  ReadOptions,
  RejectOptions,
  SendSignalOptions,
  SendUpdateOptions,
  StartCommandOptions,
  StateOptions,
} from "../commands/workflows/workflow-commands.ts";
import type * as Commands from "../commands/workflows/workflow-commands.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

const runArgument = "the run: its id, or enough of its first characters";
const jsonHelp =
  "JSON is a value such as '{\"cents\": 900}' or '\"text\"'. @FILE reads it from a file, and - from stdin.";

const startHelp = `
Stores a run of a workflow and prints its id. A worker that hosts the workflow executes it: it checks the input before
any step, and a run whose input it refuses fails. This command hosts nothing. If no worker hosts the name, the run
waits for one.
${jsonHelp} The same --id with the same input starts nothing again.

Examples:
  $ reeve start order --input '{"orderId": "7"}' --id order-7
  $ reeve start nightly --at 2026-12-01T02:00:00Z --metadata shop=4711
  $ reeve start order --input @order.json --wait --json

${exitCodeTable()}`;

const signalHelp = `
Sends a signal to a run, also before the run waits for it, and prints the id of the run. ${jsonHelp}
A repeated --id has no effect.

Examples:
  $ reeve signal run_order-7 paid --value '{"cents": 900}' --id stripe-event-1

${exitCodeTable()}`;

const readHelp = `
Prints the last value that the run has published under the name, as JSON. Does not wake the run. If it has published
none, the exit code is 3.

Examples:
  $ reeve read run_order-7 progress | jq .done

${exitCodeTable()}`;

const stateHelp = `
Prints the last committed state of a key of an object as JSON. Waits for no call. If the key has no state, the exit code
is 3. Without KEY, prints one line per key that has a state: the key and its state, as JSON.

Examples:
  $ reeve state cart ada | jq .cents
  $ reeve state cart --tenant acme

${exitCodeTable()}`;

const updateHelp = `
Sends an update to a run, waits for its reply and prints it as JSON. ${jsonHelp}
The same --id returns the same reply.

Examples:
  $ reeve update run_order-7 changeAddress --value '{"street": "Main St 1"}' --id request-17

${exitCodeTable()}`;

const promiseHelp = `
Settles a promise that a workflow created with ctx.promise(). The first call counts; a later one says so.

Examples:
  $ reeve promise resolve ID --value '{"cents": 900}'
  $ reeve promise reject ID --message "the card was declined"

${exitCodeTable()}`;

/** Loads the commands on demand. */
const commands = (): Promise<typeof Commands> => import("../commands/workflows/workflow-commands.ts");

/** Adds the commands that start and control workflows without hosting them. */
export function addWorkflowCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  stored(program, "start", "start a run of a workflow, by its name")
    .argument("<NAME>", "the name of the workflow")
    .option("--input <json>", "the input: JSON, @FILE, or - for stdin (default: null)")
    .option("--id <id>", "the id of the run: order-7 is run_order-7 (default: a new id)")
    .option("--at <time>", "when to start, such as 2026-12-01T09:00:00Z or epoch milliseconds")
    .option("--delay <duration>", "how long to wait before the start, such as 90s or '2 hours'")
    .option("--tenant <id>", "the tenant of the run")
    .option("--user <id>", "the user of the run")
    .option("--metadata <pair...>", "KEY=VALUE, to find the run with reeve ps --where KEY=VALUE")
    .option("--for-version <version>", "the version of the workflow, if workers pin runs to theirs")
    .option("--wait", "wait for the end of the run and print its output")
    .option("--json", "print one JSON object: the id, or with --wait the result")
    .addHelpText("after", startHelp)
    .action(async (name: string, options: StartCommandOptions) =>
      onEnd(await (await commands()).startWorkflow(name, options, terminal)),
    );
  stored(program, "signal", "send a signal to a run")
    .argument("<RUN>", runArgument)
    .argument("<NAME>", "the name of the signal")
    .option("--value <json>", "the value: JSON, @FILE, or - for stdin (default: null)")
    .option("--id <id>", "the id of the signal; a repeated one has no effect")
    .option("--task <id>", "send it to this task, as reeve tree prints it (default: the root)")
    .option("--json", "print one JSON object")
    .addHelpText("after", signalHelp)
    .action(async (run: string, name: string, options: SendSignalOptions) =>
      onEnd(await (await commands()).signalRun(run, name, options, terminal)),
    );
  stored(program, "read", "print a value that a run has published")
    .argument("<RUN>", runArgument)
    .argument("<NAME>", "the name of the value")
    .addHelpText("after", readHelp)
    .action(async (run: string, name: string, options: ReadOptions) =>
      onEnd(await (await commands()).readValue(run, name, options, terminal)),
    );
  stored(program, "state", "print the state of a key of an object, or of all keys")
    .argument("<NAME>", "the name of the object")
    .argument("[KEY]", "the key (default: all keys)")
    .option("--tenant <id>", "the tenant of the keys (default: those without a tenant)")
    .addHelpText("after", stateHelp)
    .action(async (name: string, key: string | undefined, options: StateOptions) =>
      onEnd(await (await commands()).printState(name, key, options, terminal)),
    );
  stored(program, "update", "send an update to a run and print its reply")
    .argument("<RUN>", runArgument)
    .argument("<NAME>", "the name of the update")
    .option("--value <json>", "the value: JSON, @FILE, or - for stdin (default: null)")
    .option("--id <id>", "the id of the update; a repeated one returns the same reply")
    .addHelpText("after", updateHelp)
    .action(async (run: string, name: string, options: SendUpdateOptions) =>
      onEnd(await (await commands()).updateRun(run, name, options, terminal)),
    );
  const promise = program.command("promise").description("settle a promise of a workflow");
  promise.addHelpText("after", promiseHelp);
  stored(promise, "resolve", "resolve a promise with a value")
    .argument("<ID>", "the id of the promise")
    .option("--value <json>", "the value: JSON, @FILE, or - for stdin (default: null)")
    .addHelpText("after", promiseHelp)
    .action(async (id: string, options: PromiseOptions) =>
      onEnd(await (await commands()).resolvePromise(id, options, terminal)),
    );
  stored(promise, "reject", "reject a promise with an error")
    .argument("<ID>", "the id of the promise")
    .requiredOption("--message <text>", "the message of the error")
    .addHelpText("after", promiseHelp)
    .action(async (id: string, options: RejectOptions) =>
      onEnd(await (await commands()).rejectPromise(id, options, terminal)),
    );
}

function stored(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore);
}
