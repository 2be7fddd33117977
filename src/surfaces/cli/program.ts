import { Command, CommanderError } from "commander";
import { Fault } from "../../kernel/index.ts";
import { printAudit, type AuditLogOptions } from "./audit-log.ts";
import { auditVerify, type AuditVerifyOptions } from "./audit-verify.ts";
import { exitCodes, exitCodeTable, exitKindOf, type ExitKind } from "./exit-code.ts";
import { defaultStore } from "./stored-runs.ts";
import type { Terminal } from "./terminal.ts";

const verifyHelp = `
What a run's log holds is chained, commit by commit. An event that was edited, removed or moved breaks
the chain and is found. Two things are found only against a head that was kept elsewhere: events cut off
the end of a log, and a run that was removed whole. Without an audit key the chain is plain hashing, and
whoever can write the store can make a chain that fits; with one they would need the key.

It covers the runs' logs: not sessions, mail or blobs. Verify against heads of runs that go on as well: a
log that has grown since its head was kept is in order, and is said to have grown.

Prints one line for each run:
  RUN  ok  EVENTS events  head HASH  keyed|plain
  RUN  TAMPERED at event SEQ: what is wrong there

${exitCodeTable()}

Examples:
  $ reeve audit verify
  $ reeve audit verify run_7f --store sqlite:./reeve.db --key-env REEVE_AUDIT_KEY
  $ reeve audit verify --head run_7f=q1Zr...  # against the head printed last time`;

const logHelp = `
Prints one line for each event: its number, when, who, what, and the details. Who is the name an order was
given under, or the agent with its task.

${exitCodeTable()}

Examples:
  $ reeve audit log run_7f
  $ reeve audit log run_7f --outside         # approvals, top-ups, cancels and the like
  $ reeve audit log run_7f --full --json | jq 'select(.action == "message_end")'`;

/** Runs the command line to its end. Throws nothing: what went wrong is said, and is in the exit code. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  let kind: ExitKind = "ok";
  const program = commandLine(terminal, (end) => {
    kind = end;
  });
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError)
      return error.exitCode === 0 ? exitCodes.ok.code : exitCodes.usage.code;
    const fault = Fault.from(error);
    kind = exitKindOf(fault.code);
    terminal.say(`reeve: ${fault.message}`);
    if (kind === "internal" && fault.stack !== undefined) terminal.say(fault.stack);
  }
  return exitCodes[kind].code;
}

function commandLine(terminal: Terminal, onEnd: (kind: ExitKind) => void): Command {
  const program = new Command("reeve")
    .description("Agents that hire, spend and survive, held to policy by a durable runtime.")
    .addHelpText("after", `\n${exitCodeTable()}`)
    .showHelpAfterError("(add --help for what there is)")
    .configureOutput({ writeErr: (text) => terminal.say(text.trimEnd()) })
    .exitOverride();
  const audit = program
    .command("audit")
    .description("who did what in a run, and whether its log is as it was written");
  audit
    .command("verify")
    .description("look for event logs that were tampered with")
    .argument("[RUN...]", "runs to verify; all of the store when none is named")
    .option("--store <address>", "where the runs are, as sqlite:PATH", defaultStore)
    .option("--head <RUN=HASH>", "a head kept elsewhere; may be given several times", collect)
    .option("--key-env <name>", "the environment variable that holds the store's audit key")
    .option("--json", "print one JSON object a line")
    .addHelpText("after", verifyHelp)
    .action(async (runs: string[], options: AuditVerifyOptions) =>
      onEnd(await auditVerify(runs, options, terminal)),
    );
  audit
    .command("log")
    .description("print the acts of a run, oldest first")
    .argument("<RUN>", "the run")
    .option("--store <address>", "where the run is, as sqlite:PATH", defaultStore)
    .option("--outside", "only what came from outside the run")
    .option("--full", "print prompts, messages, arguments and results whole")
    .option("--json", "print one JSON object a line")
    .addHelpText("after", logHelp)
    .action(async (run: string, options: AuditLogOptions) => onEnd(await printAudit(run, options, terminal)));
  return program;
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
