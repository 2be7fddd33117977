import { packageVersion } from "../../assembly/package-root.ts";
import type { RunCommandOptions } from "./commands/run/run-command.ts";
import type { AuditLogOptions, AuditVerifyOptions } from "./commands/runs/audit.ts";
import type { DeadLettersOptions } from "./commands/runs/dead-letters.ts";
import type { DemoOptions } from "./demo/demo-command.ts";
import { addAgentOptions } from "./programs/agent-options.ts";
import { groupHelp } from "./programs/help-groups.ts";
import { addChatCommands } from "./programs/chat-program.ts";
import { addDeployCommands } from "./programs/deploy-program.ts";
import { addDocsCommand } from "./programs/docs-program.ts";
import { addEvalCommands } from "./programs/eval-program.ts";
import { addGatewayCommands } from "./programs/gateway-program.ts";
import { commandInsteadOf, optionInsteadOf } from "./programs/other-names.ts";
import { addInspectCommands } from "./programs/inspect-program.ts";
import { addRunCommands } from "./programs/runs-program.ts";
import { addWorkflowCommands } from "./programs/workflow-program.ts";
import { addScheduleCommands } from "./programs/schedule-program.ts";
import { addSessionCommands } from "./programs/sessions-program.ts";
import { addStoreCommands } from "./programs/store-program.ts";
import { addServerCommands } from "./programs/server-program.ts";
import { addWatchCommand } from "./programs/watch-program.ts";
import { addWorkerCommand } from "./programs/worker-program.ts";
import { addWorkspaceCommands } from "./programs/workspace-program.ts";
import { addWorktreeCommands } from "./programs/worktrees-program.ts";
import { defaultStore } from "./setup/default-store.ts";
import type { StoreOptions } from "./setup/stored-runs.ts";
import { exitCodes, exitCodeTable, type ExitKind, exitKindOf } from "./terminal/exit-code.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { Command, CommanderError, Option } from "commander";

const demoHelp = `
Starts a server with the page and two workers on one SQLite file in a temporary folder. A company of agents
audits a small package: it hires, one agent gives its seat to another, a person approves a change and tops up
the budget, one worker is killed with SIGKILL, and the other one finishes the run. The models are scripted;
files are read, searched and written for real. Nothing leaves this machine.

With --hire, a lead hires two programs that speak the Agent Client Protocol, as Claude Code and Codex do: the small
agent that comes with Reeve. Each works in a git worktree and pays through the gateway; a person approves a command
and the merge. It needs git, and the packages @agentclientprotocol/sdk and zod. Where bubblewrap is missing, the
output says that the agents run without a sandbox.

The first line is the address of that run on the page. In a terminal the server stays until Ctrl-C, unless CI is set.

${exitCodeTable()}

Examples:
  $ reeve demo
  $ reeve demo --exit --keep                  # ends after the story and keeps its store
  $ reeve demo --stay --pace 1500             # slower
  $ reeve demo --hire                         # hired agents`;

/** Adds the command of the demo. */
function addDemoCommand(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  program
    .command("demo")
    .description("show a company of agents, a kill -9 and the recovery after it, without an API key")
    .option("--hire", "show a lead with two hired agents in worktrees under one budget instead")
    .option("--stay", "serve the page after the story, until Ctrl-C")
    .option("--exit", "end after the story")
    .option("--pace <ms>", "how long the scripted models take per answer", "600")
    .option("--port <n>", "the port of the server; 0 chooses a free one", "0")
    .option("--keep", "keep the store and the files of the demo")
    .addOption(new Option("--act <folder>").hideHelp())
    .addOption(new Option("--worker <name>").hideHelp())
    .addOption(new Option("--agent").hideHelp())
    .addHelpText("after", demoHelp)
    .action(async (options: DemoOptions) => {
      if (options.agent === true) {
        const { serveDemoAgent } = await import("../../capabilities/hire/demo-agent.ts");
        const { protocolOutput } = await import("./commands/acp/acp-command.ts");
        await serveDemoAgent({ stdin: process.stdin, stdout: protocolOutput(), env: process.env });
        process.stdin.destroy();
        return onEnd("ok");
      }
      const { demoCommand } = await import("./demo/demo-command.ts");
      onEnd(await demoCommand(options, terminal));
    });
}

const verifyHelp = `
The commits of a run's log form a hash chain. An event that was edited, removed or moved breaks the chain
and is detected. Two changes are detected only with a head that was kept elsewhere: events removed from the
end of a log, and a run that was removed as a whole. Without an audit key, anyone who can write the store
can create a chain that verifies.

The chain covers the logs of runs, not sessions, inboxes or contents of applications. A log that has grown since its head was
kept still verifies, and the output says that it has grown.

Prints one line for each run:
  RUN  ok  EVENTS events  head HASH  keyed|plain
  RUN  TAMPERED at event SEQ: what is wrong there

${exitCodeTable()}

Examples:
  $ reeve audit verify
  $ reeve audit verify run_7f --store sqlite:./reeve.db --key-env REEVE_AUDIT_KEY
  $ reeve audit verify --head run_7f=q1Zr...  # compares with the head of the last time`;

const logHelp = `
Prints one line per event: number, time, actor, action and details. The actor is the name under which a
request was made, or the agent with its task.

${exitCodeTable()}

Examples:
  $ reeve audit log run_7f
  $ reeve audit log run_7f --outside         # approvals, top-ups, cancels and the like
  $ reeve audit log run_7f --full --json | jq 'select(.action == "message_end")'`;

const runHelp = `
The answer goes to stdout, everything else to stderr. With --mode json every event is a line of JSON on
stdout, and the last line is the result. The first line on stderr is the id of the run. The run is stored while it proceeds: if the process dies,
--resume RUN continues where it stopped, and no answered model call is paid again.

Providers are those of the AI SDK: install the package (npm i @ai-sdk/anthropic) and set its API key
(ANTHROPIC_API_KEY). Any server with an OpenAI-compatible protocol works with --base-url.

Tools: "read" can read files below --root. "all" can also write, edit, run commands and fetch pages, and asks
before each such call unless --yes is given.

The agent reads AGENTS.md, skills, prompts and settings of this folder and of ~/.reeve. Files that run code need
reeve trust. A prompt "/name arguments" starts a prompt template.

${exitCodeTable()}

Examples:
  $ reeve run "What does this project do?" --model anthropic/claude-sonnet-5
  $ reeve run "Fix the failing test" --tools all --max-budget-usd 0.50 --model openai/gpt-5.2
  $ git diff | reeve run "Review this" - --model ollama/qwen3 --mode json
  $ reeve run --continue "And its licence?"   # uses the model in REEVE_MODEL
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

/** Returns a text in which hidden characters are made visible. */
type Show = (text: string) => string;

/** A terminal for the program, and the function that loads the code for showing hidden characters. */
interface PlainTerminal {
  readonly terminal: Terminal;
  readonly load: () => Promise<void>;
}

/**
 * Returns a terminal on which no text for the person can hide characters or control the terminal. This is necessary
 * because errors quote names of files and texts of agents. Data on stdout is not changed. Lines wait until `load`
 * has loaded the kernel; `--help` prints only data and does not need it.
 */
function withoutHidden(given: Terminal): PlainTerminal {
  const { status } = given;
  let shown: { readonly printable: Show; readonly shownText: Show } | undefined;
  const early: string[] = [];
  const say = (line: string): void => {
    if (shown === undefined) early.push(line);
    else given.say(shown.shownText(line));
  };
  const terminal: Terminal = {
    ...given,
    say,
    ask: (question, signal) => given.ask(shown?.shownText(question) ?? question, signal),
    ...(status !== undefined && { status: (line) => status(shown?.printable(line) ?? line) }),
  };
  const load = async (): Promise<void> => {
    shown ??= await import("./terminal/terminal.ts");
    for (const line of early.splice(0)) say(line);
  };
  return { terminal, load };
}

/**
 * Whether the command that the arguments name has an option with a value. Advice to use this option is printed only
 * then.
 */
function takes(program: Command, args: readonly string[], option: string): boolean {
  if (!option.startsWith("--")) return true;
  let named = program;
  for (const arg of args) named = named.commands.find((each) => each.name() === arg) ?? named;
  const [name, value = ""] = option.split(" ");
  return named.options.some(
    ({ long, flags }) => long === name && (!flags.includes("|") || flags.includes(value)),
  );
}

/** Runs the command line. It never throws: an error is printed and decides about the exit code. */
export async function runCommandLine(args: readonly string[], given: Terminal): Promise<number> {
  const { terminal, load } = withoutHidden(given);
  let end: ExitKind | number = "ok";
  const instead = commandInsteadOf(args[0]);
  if (instead !== undefined) {
    terminal.say(`reeve: unknown command ${args[0]}; use ${instead}`);
    await load();
    return exitCodes.usage.code;
  }
  const program = commandLine(terminal, (ended) => {
    end = ended;
  });
  program.hook("preAction", load);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) {
      const option = optionInsteadOf(error.message);
      if (option !== undefined && takes(program, args, option)) terminal.say(`reeve: use ${option}`);
      if (error.exitCode === 0) return exitCodes.ok.code;
      await load();
      return exitCodes.usage.code;
    }
    await load();
    const { Fault } = await import("../../kernel/index.ts");
    const fault = Fault.from(error);
    const kind = exitKindOf(fault.code);
    end = kind;
    terminal.say(`reeve: ${fault.message}`);
    if (kind === "internal" && fault.stack !== undefined) terminal.say(fault.stack);
  }
  return typeof end === "number" ? end : exitCodes[end].code;
}

/**
 * Declares all commands with their options. `onEnd` receives the exit kind of the command, or the exit code of the
 * program that it started.
 */
export function commandLine(terminal: Terminal, onEnd: (end: ExitKind | number) => void): Command {
  const program = new Command("reeve")
    .description("A durable runtime for agents that spawn other agents, with enforced budgets and policy.")
    .version(packageVersion(), "-V, --version", "print the version of reeve")
    .addHelpText("after", `\n${exitCodeTable()}`)
    .showHelpAfterError("(use --help for a list of commands and options)")
    // A command and those below it, such as eval and eval add, may have options of one name.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => terminal.put(text),
      writeErr: (text) => terminal.say(text.trimEnd()),
    })
    .exitOverride();
  const running = program
    .command("run")
    .description("run an agent on a prompt and print its answer")
    .argument("[PROMPT...]", "the prompt; - reads more from stdin");
  addAgentOptions(running, { model: "the model (default: $REEVE_MODEL)", tools: "read" });
  running
    .option("--agent <name>", "the agent of the workspace (default: assistant); reeve agents lists them")
    .option("--profile <name>", "the profile (default: $REEVE_PROFILE)")
    .option("--ephemeral", "write nothing: the run is kept in memory only")
    .option("--mode <text|json>", "the format of stdout", "text")
    .option("--root <folder>", "the folder that the tools may use (default: the current folder)")
    .option("--max-tokens <n>", "maximum number of tokens, input and output; with --resume, how many to add")
    .option("--max-budget-usd <usd>", "maximum cost in dollars; with --resume, how much to add")
    .option("--timeout <seconds>", "maximum time; with --resume, how much to add")
    .option("--session <id>", "the session to continue, or to create under this name")
    .option("-c, --continue", "continue the last session of this store")
    .option("--resume <RUN>", "resume a run that stopped")
    .option("-y, --yes", "allow every tool call without asking")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .addHelpText("after", runHelp)
    .action(async (words: string[], options: RunCommandOptions) => {
      const { runCommand } = await import("./commands/run/run-command.ts");
      onEnd(await runCommand(words, options, terminal));
    });
  addChatCommands(program, terminal, onEnd);
  addWatchCommand(program, terminal, onEnd);
  addDemoCommand(program, terminal, onEnd);
  addDocsCommand(program, terminal, onEnd);
  addWorkspaceCommands(program, terminal, onEnd);
  addInspectCommands(program, terminal, onEnd);
  addRunCommands(program, terminal, onEnd);
  addWorkflowCommands(program, terminal, onEnd);
  addSessionCommands(program, terminal, onEnd);
  addScheduleCommands(program, terminal, onEnd);
  addWorktreeCommands(program, terminal, onEnd);
  addEvalCommands(program, terminal, onEnd);
  addServerCommands(program, terminal, onEnd);
  addGatewayCommands(program, terminal, onEnd);
  addWorkerCommand(program, terminal, onEnd);
  addDeployCommands(program, terminal, onEnd);
  addStoreCommands(program, terminal, onEnd);
  const audit = program.command("audit").description("show who did what in a run, and verify its log");
  audit
    .command("verify")
    .description("verify event logs against tampering")
    .argument("[RUN...]", "the runs to verify (default: all runs of the store)")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .option("--head <RUN=HASH>", "a head that was kept elsewhere; may be repeated", collect)
    .option("--key-env <name>", "the environment variable that holds the store's audit key")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", verifyHelp)
    .action(async (runs: string[], options: AuditVerifyOptions) => {
      const { auditVerify } = await import("./commands/runs/audit.ts");
      onEnd(await auditVerify(runs, options, terminal));
    });
  audit
    .command("log")
    .description("print the actions in a run, oldest first")
    .argument("<RUN>", "the run")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .option("--outside", "print only actions from outside the run")
    .option("--full", "print prompts, messages, arguments and results in full")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", logHelp)
    .action(async (run: string, options: AuditLogOptions) => {
      const { printAudit } = await import("./commands/runs/audit.ts");
      onEnd(await printAudit(run, options, terminal));
    });
  program
    .command("dead-letters")
    .description("print the messages whose delivery failed too often")
    .argument("[AGENT]", "the agent (default: all agents)")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .option("--json", "print one JSON object per line")
    .addHelpText("after", deadLettersHelp)
    .action(async (agent: string | undefined, options: DeadLettersOptions) => {
      const { printDeadLetters } = await import("./commands/runs/dead-letters.ts");
      onEnd(await printDeadLetters(agent, options, terminal));
    });
  program
    .command("redeliver")
    .description("deliver the dead letters of an agent again and print their number")
    .argument("<AGENT>", "whose")
    .argument("[MESSAGE...]", "the ids of the messages (default: all)")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .addHelpText("after", redeliverHelp)
    .action(async (agent: string, messageIds: string[], options: StoreOptions) => {
      const { redeliverLetters } = await import("./commands/runs/dead-letters.ts");
      onEnd(await redeliverLetters(agent, messageIds, options, terminal));
    });
  groupHelp(program);
  return program;
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
