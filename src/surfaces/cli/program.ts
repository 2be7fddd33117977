import { Command, CommanderError, Option } from "commander";
import { Fault } from "../../kernel/index.ts";
import { printAudit, type AuditLogOptions } from "./audit-log.ts";
import { auditVerify, type AuditVerifyOptions } from "./audit-verify.ts";
import { printDeadLetters, redeliverLetters, type DeadLettersOptions } from "./dead-letters.ts";
import type { DemoOptions } from "./demo/demo-command.ts";
import type { RunCommandOptions } from "./run/run-command.ts";
import { exitCodes, exitCodeTable, exitKindOf, type ExitKind } from "./exit-code.ts";
import { defaultStore, type StoreOptions } from "./stored-runs.ts";
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

const runHelp = `
The answer goes to stdout, all else to stderr; with --mode json every event is a line of JSON on stdout, and
the last line is the result. The run is kept in the store as it goes: if the process dies, --resume RUN goes on
where it stopped, and no model call that was answered is paid again.

Providers are those of the AI SDK: install the one you name (npm i @ai-sdk/anthropic) and set its key
(ANTHROPIC_API_KEY). Any server that speaks OpenAI's protocol will do with --base-url.

Tools: read can look at files below --root; all can also write, edit, run commands and fetch pages, and asks
before each of these unless --yes.

${exitCodeTable()}

Examples:
  $ reeve run "What does this project do?" --model anthropic/claude-sonnet-5
  $ reeve run "Mend the failing test" --tools all --max-budget-usd 0.50 --model openai/gpt-5.2
  $ git diff | reeve run "Review this" - --model ollama/qwen3 --mode json
  $ reeve run --continue "And its licence?"   # REEVE_MODEL says which model
  $ reeve run --resume run_7f --max-budget-usd 0.25`;

const deadLettersHelp = `
A message whose runs failed too often is a dead letter: it is kept, and tried no more. Prints one line for each:
  AGENT  MESSAGE  tried Nx  from SENDER  RUN  BODY
RUN is the one that had it last; reeve audit log RUN says how that ended.

${exitCodeTable()}

Examples:
  $ reeve dead-letters
  $ reeve dead-letters clerk --json | jq .message.body
  $ reeve redeliver clerk                     # all of them, once what was wrong is mended`;

const redeliverHelp = `
After -- nothing is an option: a MESSAGE that begins with - is named there, after all options.

${exitCodeTable()}

Examples:
  $ reeve redeliver clerk
  $ reeve redeliver --store sqlite:./desk.db clerk -- -order-1`;

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
  program
    .command("run")
    .description("run an agent on a prompt, and print its answer")
    .argument("[PROMPT...]", "what is to be done; - reads more from stdin")
    .option("-m, --model <provider/id>", "the model; REEVE_MODEL unless told")
    .option("--base-url <url>", "where the provider is, if not at its usual address")
    .option("--mode <text|json>", "what goes to stdout", "text")
    .option("--tools <none|read|all>", "what it may use (default: read)")
    .option("--root <folder>", "where its tools stay (default: the one you are in)")
    .option("--instructions <text>", "what the agent is told to be")
    .option("--max-turns <n>", "model calls at most (default: 25)")
    .option("--max-tokens <n>", "tokens at most, in and out; on --resume, how many more")
    .option("--max-budget-usd <usd>", "dollars at most; on --resume, how much more")
    .option("--timeout <seconds>", "time at most")
    .option("--session <id>", "the conversation to go on with, or to begin under this name")
    .option("-c, --continue", "go on with the last conversation of this store")
    .option("--resume <RUN>", "go on with a run that stopped")
    .option("-y, --yes", "allow every tool call without asking")
    .option("--store <address>", "where runs are kept, as sqlite:PATH", defaultStore)
    .addHelpText("after", runHelp)
    .action(async (words: string[], options: RunCommandOptions) => {
      const { runCommand } = await import("./run/run-command.ts");
      onEnd(await runCommand(words, options, terminal));
    });
  program
    .command("demo")
    .description("see it at work, without a key: hiring, preemption, a kill -9 and the books after it")
    .option("--pace <ms>", "how long its scripted models take for an answer", "350")
    .option("--keep", "keep the store it ran on")
    .addOption(new Option("--act <folder>").hideHelp())
    .action(async (options: DemoOptions) => {
      const { demoCommand } = await import("./demo/demo-command.ts");
      onEnd(await demoCommand(options, terminal));
    });
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
  program
    .command("dead-letters")
    .description("print the messages that were handed back too often")
    .argument("[AGENT]", "whose; of all agents when none is named")
    .option("--store <address>", "where they are, as sqlite:PATH", defaultStore)
    .option("--json", "print one JSON object a line")
    .addHelpText("after", deadLettersHelp)
    .action(async (agent: string | undefined, options: DeadLettersOptions) =>
      onEnd(await printDeadLetters(agent, options, terminal)),
    );
  program
    .command("redeliver")
    .description("have dead letters of an agent tried again, and print how many")
    .argument("<AGENT>", "whose")
    .argument("[MESSAGE...]", "which, by id; all of them when none is named")
    .option("--store <address>", "where they are, as sqlite:PATH", defaultStore)
    .addHelpText("after", redeliverHelp)
    .action(async (agent: string, messageIds: string[], options: StoreOptions) =>
      onEnd(await redeliverLetters(agent, messageIds, options, terminal)),
    );
  return program;
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
