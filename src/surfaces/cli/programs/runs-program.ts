import type { Command } from "commander";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type {
  ApproveOptions,
  CancelOptions,
  ForkRunOptions,
  OrderOptions,
  SteerOptions,
  TaskOptions,
  TopUpCommandOptions,
} from "../commands/runs/answer-runs.ts";
import type { WithdrawCommandOptions } from "../commands/runs/withdraw-input.ts";
import type { OrderManyOptions } from "../commands/runs/order-many.ts";
import type { CheckReplayCommandOptions } from "../commands/runs/check-replay.ts";
import type { InboxCommandOptions } from "../commands/runs/list-inbox.ts";
import type { ListRunsOptions } from "../commands/runs/list-runs.ts";
import type { LogOptions } from "../commands/runs/print-log.ts";
import type { ReportOptions } from "../commands/runs/show-run.ts";
import type { UsageOptions } from "../commands/runs/show-usage.ts";
import { defaultStore } from "../setup/default-store.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** The filters of `--where`, as the help of the option names them. */
const whereOption =
  "only runs that fit all these filters: user=ID, agent=NAME, tenant=ID, status=STATUS, cost>USD, cost<USD, score.NAME<VALUE, score.NAME>VALUE, score.NAME, started=DAYS, ended=DAYS, KEY=VALUE";

/** Help text that explains the filters, DAYS and KEY=VALUE. */
const whereHelp = `Filters of --where are those of the page. DAYS: today, yesterday, 7d, 2026-11-16 or 2026-11-01..2026-11-16, in the
time zone of this process; 2026-11-16Z is a UTC day. KEY=VALUE is a pair of the run's metadata. Several statuses
mean any of them. Quote filters with < or >.`;

const runArgument = "the run: its id, or enough of its first characters";

const psHelp = `
Prints one line per run, newest first: id, status with what the run waits for, when it started, how long it
took, and its agent. A run whose process died keeps its status until another process finds it. A filter about the
status or the end lists ended runs, too. Costs in the order of costs are those of the last time each run waited.

${whereHelp}

${exitCodeTable()}

Examples:
  $ reeve ps
  $ reeve ps --status waiting
  $ reeve ps --where user=mara status=failed started=yesterday
  $ reeve ps --all --sort cost --where 'cost>1'
  $ reeve ps --all --json | jq -r 'select(.status == "failed") | .runId'`;

interface ShowOptions extends ReportOptions {
  readonly request?: string | true;
}

const showHelp = `
With --request and a number, prints what one model call was sent, as it was recorded: instructions, tools with
their schemas, messages and settings. Notes say what retention has erased and what is never recorded.

${exitCodeTable()}

Examples:
  $ reeve show run_7f
  $ reeve show run_7f --request              # the model calls of the run, with their numbers
  $ reeve show run_7f --request 12`;

const treeHelp = `
Prints one line per task, indented below the task that started it: agent, task and status.

${exitCodeTable()}

Examples:
  $ reeve tree run_7f
  $ reeve tree run_7f --json | jq .`;

const logsHelp = `
Prints one line per event: time, agent and what happened. Long values are shortened; --json prints every event
in full. Leaving with Ctrl-C does not stop the run.

${exitCodeTable()}

Examples:
  $ reeve logs run_7f
  $ reeve logs -f run_7f                     # until the run ends`;

const costHelp = `
With RUN, prints what the run cost by agent and model. Without RUN, prints what all runs of the store cost, also
runs that were deleted: one line per UTC day, agent, model or user. A run is added when it waits, is paused or
ends; what a run in progress has spent since then is not included.

${exitCodeTable()}

Examples:
  $ reeve cost run_7f
  $ reeve cost --by model --from 2026-11-01
  $ reeve cost --by user --tenant acme --json | jq -r .key`;

const approveHelp = `
Without RUN, prints the open requests of all runs. With RUN, asks about each open request of that run at the
terminal; --yes and --deny answer without asking. The process that executes the run continues at once. If there is
none, the answer is kept until the run is resumed (reeve run --resume RUN).

${exitCodeTable()}

Examples:
  $ reeve approve
  $ reeve approve run_7f
  $ reeve approve run_7f --deny "not on a Friday"`;

const inboxHelp = `
Prints what waits for a person over all runs, or in RUN: approvals and questions, the one that has waited longest first,
then requests for more budget, runs that stopped at a limit or as a crash loop, and messages that were not delivered. Each
line ends with the command that answers it; the N of reeve top-up is the amount to add.

${exitCodeTable()}

Examples:
  $ reeve inbox
  $ reeve inbox run_7f
  $ reeve inbox --kind question --agent clerk
  $ reeve inbox --json | jq -r .answer`;

const forkHelp = `
Prints the id of the new run. It shares the events of RUN up to and including --at; reeve logs --json RUN shows
their numbers (seq). Model calls of that part are not paid again. The process that executes the runs of the store
(reeve serve) starts the new run; without one, use reeve run --resume.

${exitCodeTable()}

Examples:
  $ reeve fork run_7f --at 41
  $ reeve fork run_7f --at 41 --input "Use the other archive." --model anthropic/claude-opus-5`;

const cancelHelp = `
Asks the process that executes the run to cancel it with all its tasks, and prints the id. If there is no such
process, the run is cancelled when it is next executed. An ended run is left as it is. With --task or --agent, a task
is cancelled with its reports, and the run continues.

Examples:
  $ reeve cancel run_7f --reason "no longer needed"
  $ reeve cancel run_7f --task t3
  $ reeve cancel --where agent=crawler status=waiting

With --where, says what will happen to each of up to 200 runs and asks first. --yes answers, --dry-run only lists.
${whereHelp}

${exitCodeTable()}`;

const steerHelp = `
Prints the id of the run when the input is stored, and with --json also the id of the input, with which reeve withdraw takes
it back. A child that completes without reading it reports the event
input_unread. Input that the root has not read when the run completes starts the next run of the session.

Examples:
  $ reeve steer run_7f "Skip the appendix."
  $ reeve steer run_7f "Check the sources again." --task t3 --follow-up
  $ reeve steer run_7f "Stop searching." --agent researcher

${exitCodeTable()}`;

const withdrawHelp = `
Takes back an input that no task has read, and prints its id. Without INPUT, prints the inputs that wait: id, task, queue
and text. An input that came too late was read, or its run has ended; the exit code is then 3. The process that executes
the run answers. If none does within --wait seconds, the command stays stored, the exit code is 7, and the same command
asks again.

Examples:
  $ reeve withdraw run_7f
  $ reeve withdraw run_7f 01J9ZK
  $ reeve withdraw run_7f --json | jq -r .inputId

${exitCodeTable()}`;

const pauseHelp = `
The tasks of a paused run finish their calls in flight and start no other. reeve resume continues the run.

Examples:
  $ reeve pause run_7f

${exitCodeTable()}`;

const resumeHelp = `
Continues a paused run, and one that ended without completing, from where it stopped: recorded calls are not paid
again. A worker of the store (reeve serve, reeve worker) executes it. With --drive, this process executes it, asks about its
calls and prints its answer; the exit code is that of the run.

Examples:
  $ reeve resume run_7f
  $ reeve resume run_7f --drive
  $ reeve resume --where status=failed ended=yesterday --dry-run

With --where, says what will happen to each of up to 200 runs and asks first. --yes answers, --dry-run only lists.
${whereHelp}

${exitCodeTable()}`;

const deleteHelp = `
Deletes ended runs with their events and contents, at most 200 at once: says first what will happen to each run, and
asks. More than 20 need their number typed. --yes answers, --dry-run only lists. Runs that have not ended are left.
Usage totals keep what the runs cost.

${whereHelp}

Examples:
  $ reeve delete run_7f
  $ reeve delete --where user=mara ended=2026-01-01..2026-03-31 --yes

${exitCodeTable()}`;

const topUpHelp = `
Adds to the limits of the run, or of one of its tasks, and resumes a run that stopped at such a limit. A limit that
the run does not have stays unlimited.

Examples:
  $ reeve top-up run_7f --usd 0.50
  $ reeve top-up run_7f --turns 20 --seconds 600 --task t3

${exitCodeTable()}`;

const reprioritizeHelp = `
Changes in which order tasks of the run get seats and money: CRITICAL, HIGH, NORMAL, LOW or BACKGROUND.

Examples:
  $ reeve reprioritize run_7f HIGH --task t3
  $ reeve reprioritize run_7f BACKGROUND --agent researcher

${exitCodeTable()}`;

const checkReplayHelp = `
Replays the stored journals of workflows against the code as it is now, and prints one line per difference: run, task,
position of the step, kind and what to do. Nothing is written, and no body of a step, no model and no tool is executed.
FILE is a module that exports workflows; without FILE, the workflows of the workspace are used. --runs takes ids of
runs, or the filters of reeve ps --where. Ends with code 1 if there is a difference, so that CI can run it.

${whereHelp}

Examples:
  $ reeve check-replay workflows.ts --store sqlite:./production-copy.db
  $ reeve check-replay workflows.ts --runs agent=order status=waiting
  $ reeve check-replay workflows.ts --runs run_7f --json

${exitCodeTable()}`;

const jsonOrder = "print one JSON object per run";

const taskOption = (verb: string): string =>
  `${verb} only this task, as reeve tree prints it (default: the root)`;
const agentOption = "the task of this agent, which must have one live task in the run";

/** Adds the commands that inspect and control stored runs. */
export function addRunCommands(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  stored(program, "ps", "list the runs of the store that have not ended")
    .option("-a, --all", "list ended runs, too")
    .option("--status <status>", "list only runs with this status")
    .option("--where <filter...>", whereOption)
    .option("--sort <order>", "newest or cost", "newest")
    .option("--limit <n>", "maximum number of runs", "50")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", psHelp)
    .action(async (options: ListRunsOptions) => {
      const { printRuns } = await import("../commands/runs/list-runs.ts");
      onEnd(await printRuns(options, terminal));
    });
  stored(program, "show", "show a run: status, cost, open requests and answer; or what a model call was sent")
    .argument("<RUN>", runArgument)
    .option(
      "--request [seq]",
      "list the model calls of the run, or show what the call with this number was sent",
    )
    .option("--json", "print JSON: one object, or one per model call")
    .addHelpText("after", showHelp)
    .action(async (run: string, { request, ...options }: ShowOptions) => {
      if (request !== undefined) {
        const { showRequest } = await import("../commands/runs/show-request.ts");
        onEnd(await showRequest(run, request, options, terminal));
        return;
      }
      const { showRun } = await import("../commands/runs/show-run.ts");
      onEnd(await showRun(run, options, terminal));
    });
  stored(program, "tree", "show the tasks of a run as a tree")
    .argument("<RUN>", runArgument)
    .option("--json", "print one JSON object")
    .addHelpText("after", treeHelp)
    .action(async (run: string, options: ReportOptions) => {
      const { showTree } = await import("../commands/runs/show-run.ts");
      onEnd(await showTree(run, options, terminal));
    });
  stored(
    program,
    "cost",
    "show what a run cost, or what all runs cost by day, hour, agent, model, user or tenant",
  )
    .argument("[RUN]", `${runArgument} (default: all runs)`)
    .option("--by <dimension>", "without RUN: day, hour, agent, model, user or tenant (default: day)")
    .option(
      "--from <day>",
      "without RUN: the first UTC day, such as 2026-11-16, or hour, such as 2026-11-16T13",
    )
    .option("--to <day>", "without RUN: the last UTC day or hour")
    .option("--user <id>", "without RUN: only the runs of this user")
    .option("--tenant <id>", "without RUN: only the runs of this tenant")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", costHelp)
    .action(async (run: string | undefined, options: UsageOptions) => {
      const { refuseUsageOptions, showUsage } = await import("../commands/runs/show-usage.ts");
      if (run === undefined) {
        onEnd(await showUsage(options, terminal));
        return;
      }
      refuseUsageOptions(run, options);
      const { showCost } = await import("../commands/runs/show-run.ts");
      onEnd(await showCost(run, options, terminal));
    });
  stored(program, "logs", "print the events of a run, oldest first")
    .argument("<RUN>", runArgument)
    .option("-f, --follow", "print new events until the run ends")
    .option("--json", "print every event as a line of JSON")
    .addHelpText("after", logsHelp)
    .action(async (run: string, options: LogOptions) => {
      const { printLog } = await import("../commands/runs/print-log.ts");
      onEnd(await printLog(run, options, terminal));
    });
  many(stored(program, "cancel", "cancel runs"))
    .option("--reason <text>", "the reason that the run records", "cancelled at the command line")
    .option("--task <id>", taskOption("cancel"))
    .option("--agent <id>", agentOption)
    .option("--json", jsonOrder)
    .addHelpText("after", cancelHelp)
    .action(async (runs: string[], options: CancelOptions & OrderManyOptions) => {
      if (isForMany(runs, options)) {
        const { orderMany, refuseTask } = await import("../commands/runs/order-many.ts");
        refuseTask(options);
        onEnd(await orderMany("cancel", runs, options, terminal));
        return;
      }
      const { cancelRuns } = await import("../commands/runs/answer-runs.ts");
      onEnd(await cancelRuns(runs, options, terminal));
    });
  stored(program, "steer", "send input to a run in progress")
    .argument("<RUN>", runArgument)
    .argument("<TEXT>", "the input")
    .option(
      "--follow-up",
      "the task reads the input when it would otherwise end (default: before its next turn)",
    )
    .option("--task <id>", taskOption("steer"))
    .option("--agent <id>", agentOption)
    .option("--json", jsonOrder)
    .addHelpText("after", steerHelp)
    .action(async (run: string, input: string, options: SteerOptions) => {
      const { steerRun } = await import("../commands/runs/answer-runs.ts");
      onEnd(await steerRun(run, input, options, terminal));
    });
  stored(program, "withdraw", "take back an input that a run has not read, or list such inputs")
    .argument("<RUN>", runArgument)
    .argument("[INPUT]", "the input: its id, or enough of its first characters (default: list them)")
    .option("--wait <seconds>", "how long to wait for the answer of the run", "30")
    .option("--json", "print one JSON object per input")
    .addHelpText("after", withdrawHelp)
    .action(async (run: string, input: string | undefined, options: WithdrawCommandOptions) => {
      const { withdrawInput } = await import("../commands/runs/withdraw-input.ts");
      onEnd(await withdrawInput(run, input, options, terminal));
    });
  stored(program, "pause", "pause runs")
    .argument("<RUN...>", runArgument)
    .option("--json", jsonOrder)
    .addHelpText("after", pauseHelp)
    .action(async (runs: string[], options: OrderOptions) => {
      const { pauseRuns } = await import("../commands/runs/answer-runs.ts");
      onEnd(await pauseRuns(runs, options, terminal));
    });
  many(stored(program, "resume", "continue runs that are paused or stopped"))
    .option("--drive", "execute the run in this process until it ends, as reeve run --resume RUN does")
    .option("--json", `${jsonOrder}; with --drive, the events and the result of the run`)
    .addHelpText("after", resumeHelp)
    .action(
      async (runs: string[], { drive, ...options }: OrderManyOptions & { readonly drive?: boolean }) => {
        if (drive === true) {
          const { driveRun } = await import("../commands/run/run-command.ts");
          onEnd(await driveRun(runs, options, terminal));
          return;
        }
        if (isForMany(runs, options)) {
          const { orderMany } = await import("../commands/runs/order-many.ts");
          onEnd(await orderMany("resume", runs, options, terminal));
          return;
        }
        const { resumeRuns } = await import("../commands/runs/answer-runs.ts");
        onEnd(await resumeRuns(runs, options, terminal));
      },
    );
  many(stored(program, "delete", "delete ended runs"))
    .option("--json", jsonOrder)
    .addHelpText("after", deleteHelp)
    .action(async (runs: string[], options: OrderManyOptions) => {
      const { orderMany } = await import("../commands/runs/order-many.ts");
      onEnd(await orderMany("delete", runs, options, terminal));
    });
  stored(program, "top-up", "add money, turns, tokens or time to a run")
    .argument("<RUN>", runArgument)
    .option("--usd <usd>", "dollars to add")
    .option("--turns <n>", "turns to add")
    .option("--tokens <n>", "tokens to add, input and output")
    .option("--seconds <n>", "time to add")
    .option("--task <id>", taskOption("top up"))
    .option("--agent <id>", agentOption)
    .option("--json", jsonOrder)
    .addHelpText("after", topUpHelp)
    .action(async (run: string, options: TopUpCommandOptions) => {
      const { topUpRun } = await import("../commands/runs/answer-runs.ts");
      onEnd(await topUpRun(run, options, terminal));
    });
  stored(program, "reprioritize", "change the priority of a task")
    .argument("<RUN>", runArgument)
    .argument("<PRIORITY>", "CRITICAL, HIGH, NORMAL, LOW or BACKGROUND")
    .option("--task <id>", taskOption("change"))
    .option("--agent <id>", agentOption)
    .option("--json", jsonOrder)
    .addHelpText("after", reprioritizeHelp)
    .action(async (run: string, priority: string, options: TaskOptions) => {
      const { reprioritizeRun } = await import("../commands/runs/answer-runs.ts");
      onEnd(await reprioritizeRun(run, priority, options, terminal));
    });
  stored(program, "fork", "start a run that shares the beginning of another one")
    .argument("<RUN>", runArgument)
    .requiredOption("--at <seq>", "the last shared event: its seq")
    .option("--input <text>", "a user message that follows the shared events")
    .option("--model <provider/id>", "the main model of the agent from there on")
    .option("--instructions <text>", "the instructions of the agent from there on")
    .option("--tools <names>", "the tools that the agent keeps, separated by commas")
    .option("--json", jsonOrder)
    .addHelpText("after", forkHelp)
    .action(async (run: string, options: ForkRunOptions) => {
      const { forkRun } = await import("../commands/runs/answer-runs.ts");
      onEnd(await forkRun(run, options, terminal));
    });
  stored(program, "check-replay", "check whether the code of workflows can continue stored runs")
    .argument("[FILE...]", "modules that export workflows (default: those of the workspace)")
    .option("--runs <filter...>", `ids of runs, or ${whereOption} (default: runs that have not ended)`)
    .option("--limit <n>", "maximum number of runs, the newest first", "1000")
    .option("--profile <name>", "the profile of the workspace (default: $REEVE_PROFILE)")
    .option("--json", "print each difference as a line of JSON")
    .addHelpText("after", checkReplayHelp)
    .action(async (files: string[], options: CheckReplayCommandOptions) => {
      const { checkReplayCommand } = await import("../commands/runs/check-replay.ts");
      onEnd(await checkReplayCommand(files, options, terminal));
    });
  stored(program, "inbox", "list what waits for a person: approvals, questions, budgets, stopped runs")
    .argument("[RUN]", `${runArgument} (default: all runs)`)
    .option(
      "--kind <question|run|letter>",
      "only questions, stopped runs, or messages that were not delivered",
    )
    .option("--agent <name>", "only what this agent asks, caused or was sent")
    .option("--limit <n>", "maximum number of each kind", "100")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", inboxHelp)
    .action(async (run: string | undefined, options: InboxCommandOptions) => {
      const { printInbox } = await import("../commands/runs/list-inbox.ts");
      onEnd(await printInbox(run, options, terminal));
    });
  stored(program, "approve", "list the requests that wait for a person, or answer those of a run")
    .argument("[RUN]", `${runArgument} (default: list the requests of all runs)`)
    .option("--id <approval>", "answer only this request")
    .option("-y, --yes", "allow without asking")
    .option("--remember", "with --yes: allow later calls of the tool, too")
    .option("--deny [reason]", "deny without asking")
    .option("--json", "print the list as one JSON object per line")
    .addHelpText("after", approveHelp)
    .action(async (run: string | undefined, options: ApproveOptions) => {
      const { approveRuns } = await import("../commands/runs/answer-runs.ts");
      onEnd(await approveRuns(run, options, terminal));
    });
}

/** Adds the arguments of an order to many runs: their ids, or filters. */
function many(command: Command): Command {
  return command
    .argument("[RUN...]", runArgument)
    .option("--where <filter...>", whereOption)
    .option("-y, --yes", "give the order without asking")
    .option("--dry-run", "change nothing, and print the ids of the runs that the order would change");
}

/**
 * Whether the command first prints the effect of the order and asks. An order to one named run is executed
 * immediately.
 */
function isForMany(runs: readonly string[], { where, yes, dryRun }: OrderManyOptions): boolean {
  return where !== undefined || runs.length === 0 || yes === true || dryRun === true;
}

function stored(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore);
}
