import type { Command } from "commander";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type {
  AddScheduleOptions,
  EditScheduleOptions,
  ListSchedulesOptions,
  NamedScheduleOptions,
} from "../commands/schedules/schedule-commands.ts";
import { defaultStore } from "../setup/default-store.ts";
import type { Terminal } from "../terminal/terminal.ts";

const addHelp = `
Stores a schedule and prints its name. It fires while a process that hosts the agent is open on the store:
reeve serve for the agents of its folder, or a program that has registered the agent. The same command again
changes nothing; other options need --replace.

Times follow the wall clock of --time-zone. If the clock skips the time of a schedule with one hour and one
minute, it fires when the clock has jumped; if the time comes twice, it fires the first time.

${exitCodeTable()}

Examples:
  $ reeve schedule add report "Summarise the night." --agent reporter --cron "0 9 * * 1-5" --time-zone Europe/Berlin
  $ reeve schedule add pulse "Check the queue." --agent watcher --every 30m --session ops --heartbeat
  $ reeve schedule add reminder "Renew the certificate." --agent clerk --at 2026-12-01T09:00
  $ reeve schedule add nightly --from run_7f --cron "0 2 * * *"     # agent and input of an earlier run`;

const listHelp = `
Prints one line per schedule: name, agent, times, next fire, last run and input. "waits" means that the time has
passed: the fire waits for the end of the last run, or for a process that hosts the agent.

${exitCodeTable()}

Examples:
  $ reeve schedule list
  $ reeve schedule list --json | jq -r 'select(.skipped != null) | .name'`;

const editHelp = `
Changes the given options of a schedule and prints its name. Other options stay as they are; the schedule keeps
its last run, and stays paused if it is. New times count from now on.

${exitCodeTable()}

Examples:
  $ reeve schedule edit report --cron "30 8 * * 1-5"
  $ reeve schedule edit report --input "Summarise the night in three lines."`;

const runHelp = `
Starts a run of a schedule at once, also while it is paused, and prints the id of the run. Its next fire does not
change. A process that hosts the agent starts the run: reeve serve, or a program that has registered the agent.

${exitCodeTable()}

Examples:
  $ reeve schedule run report
  $ reeve logs -f "$(reeve schedule run report)"`;

const removeHelp = `
Removes a schedule and prints its name. Its runs stay; reeve cancel stops them.

${exitCodeTable()}

Examples:
  $ reeve schedule remove report
  $ reeve schedule remove report --tenant acme --user ann`;

/** Adds the commands that create, list, change, run and remove schedules. */
export function addScheduleCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  const schedule = program.command("schedule").description("start runs of an agent at given times");
  timed(owned(schedule, "add", "create a schedule"))
    .argument("<NAME>", "the name of the schedule")
    .argument("[INPUT...]", "the input of its runs (default: that of the run of --from)")
    .option("--agent <name>", "the agent that the runs start (default: that of the run of --from)")
    .option("--from <run>", "an earlier run whose agent and input the schedule takes over")
    .option("--replace", "replace a schedule of this name")
    .addHelpText("after", addHelp)
    .action(async (name: string, words: string[], options: AddScheduleOptions) => {
      const { addSchedule } = await import("../commands/schedules/schedule-commands.ts");
      onEnd(await addSchedule(name, words, options, terminal));
    });
  owned(schedule, "list", "list the schedules of the store")
    .option("--json", "print one JSON object per line")
    .addHelpText("after", listHelp)
    .action(async (options: ListSchedulesOptions) => {
      const { printSchedules } = await import("../commands/schedules/schedule-commands.ts");
      onEnd(await printSchedules(options, terminal));
    });
  timed(owned(schedule, "edit", "change a schedule"))
    .argument("<NAME>", "the name of the schedule")
    .option("--input <text>", "the input of its runs")
    .option("--agent <name>", "the agent that the runs start")
    .addHelpText("after", editHelp)
    .action(async (name: string, options: EditScheduleOptions) => {
      const { editSchedule } = await import("../commands/schedules/schedule-commands.ts");
      onEnd(await editSchedule(name, options, terminal));
    });
  owned(schedule, "run", "start a run of a schedule at once")
    .argument("<NAME>", "the name of the schedule")
    .addHelpText("after", runHelp)
    .action(async (name: string, options: NamedScheduleOptions) => {
      const { runSchedule } = await import("../commands/schedules/schedule-commands.ts");
      onEnd(await runSchedule(name, options, terminal));
    });
  owned(schedule, "remove", "remove a schedule")
    .argument("<NAME>", "the name of the schedule")
    .addHelpText("after", removeHelp)
    .action(async (name: string, options: NamedScheduleOptions) => {
      const { removeSchedule } = await import("../commands/schedules/schedule-commands.ts");
      onEnd(await removeSchedule(name, options, terminal));
    });
}

/** Adds the options that decide when and how the runs of a schedule start. */
function timed(command: Command): Command {
  return command
    .option("--cron <expression>", 'a cron expression, such as "0 9 * * 1-5"')
    .option("--every <interval>", "an interval, such as 30s, 15m, 1h or 1d")
    .option("--at <time>", "a single time, such as 2026-12-01T09:00")
    .option("--start <time>", "the first time of an interval, or the earliest of a cron expression")
    .option("--time-zone <name>", "the time zone, such as Europe/Berlin (default: that of this machine)")
    .option("--session <id>", "the session of all runs (default: a new session for each)")
    .option("--overlap <skip|queue|cancel>", "a fire while the last run has not ended (default: skip)")
    .option("--missed <skip|once|all>", "fires for which no process was open (default: once)")
    .option("--heartbeat", 'leave no entry in the session if the answer is "nothing to report"')
    .option("--max-tokens <n>", "maximum number of tokens of each run")
    .option("--max-budget-usd <usd>", "maximum cost of each run in dollars");
}

function owned(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option("--user <id>", "the user whose schedule it is")
    .option("--tenant <id>", "the tenant whose schedule it is")
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore);
}
