import type { Command } from "commander";
import type { AddCasesOptions } from "../commands/evals/add-cases.ts";
import type { EvalCommandOptions } from "../commands/evals/eval-command.ts";
import type { ForkRunsOptions } from "../commands/evals/fork-runs.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodesAnd, exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { collect } from "./server-program.ts";

const runHelp = `
Runs experiments: cases that agents answer and scorers score (docs/guides/experiments.md). Without FILE it runs those of
evals/**/*.eval.{ts,mts,js,mjs} of this project, whose code you must trust; a file that you name needs no trust. Progress goes
to stderr, and the report to stdout.

An experiment is a run: it is stored while it proceeds. Ctrl-C and kill -9 leave it as it is, and --resume continues it; no
recorded answer and no recorded score is paid again.

--save NAME writes the results to evals/baselines/NAME.json, and --baseline NAME compares with them, case by case. A
difference whose 95 % interval includes 0 is called "no difference shown".

The exit code is 20 if a gate failed, and 21 if cases failed to run or have no result; then gates do not count all cases.
${exitCodesAnd(
  "reeve eval                                     # all experiments of the project",
  "reeve eval evals/triage.eval.ts --tag smoke --max-cost 0.50",
  "reeve eval evals/triage.eval.ts --save main    # later: --baseline main",
  "reeve eval evals/triage.eval.ts --junit report.xml --markdown report.md",
  "reeve eval evals/triage.eval.ts --resume       # continues the newest run that has not completed",
)}`;

const addHelp = `
Each run becomes a line of the case file: its input, and its output as the expected value. A file beside the case file has
the replies of its models and the results of its tools. A run that has not ended, that received input while it worked, or
whose contents were erased is refused, and nothing is written.

Secrets are removed from what is written: what errors of Reeve never show, and the fields that tools mark as secret. The
command says how many it removed, and where. Read the files before you share them: no redaction finds every secret.

${exitCodeTable()}

Examples:
  $ reeve eval add run_7f --to triage.jsonl
  $ reeve eval add --where agent=triage status=completed started=7d --to triage.jsonl
  $ reeve eval add run_7f --to triage.jsonl --json | jq .redactions`;

const forkHelp = `
Forks each chosen run with a change and scores both ends with the scorers of the experiment that FILE exports; its agent is
the agent of the runs. A fork shares what is before the cut: only what is new is paid, and no tool before it runs again.
The runs are those that --runs names, or that fit its filters, which are those of reeve ps --where.

--from says where the forks begin: at the first model call, at the last turn, at an event by its number, or at the first
model call of a role, of an agent, or with a call of a tool. reeve show RUN --request prints numbers, agents and roles.
--model may be repeated. Forks and judges share --max-cost: a fork receives a part, and what it does not spend goes to others.
Ctrl-C and kill -9 leave forks as they are; the same command with --resume continues them and pays no recorded call again.

${exitCodeTable()}

Examples:
  $ reeve eval fork evals/triage.eval.ts --runs agent=triage started=7d --model openai/gpt-5-mini
  $ reeve eval fork evals/triage.eval.ts --runs run_7f run_80 --from last-turn --instructions prompt.md
  $ reeve eval fork evals/triage.eval.ts --runs 'cost>1' --tools search,read --max-cost 2 --markdown what-if.md`;

/** Adds the commands that evaluate agents. */
export function addEvalCommands(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  const evaluate = program
    .command("eval")
    .description("run experiments and report what their scores say")
    // The commands below have options of the same names.
    .enablePositionalOptions()
    .argument("[FILE...]", "files that export experiments (default: evals/**/*.eval.{ts,mts,js,mjs})")
    .option("--filter <text>", "only the cases whose id contains this text")
    .option("--tag <tag>", "only the cases with this tag; may be repeated", collect)
    .option("--trials <n>", "how often each case is given to each variant")
    .option("--max-cost <usd>", "maximum cost in dollars; with --resume, how much to add")
    .option("--seats <n>", "number of trials that are in progress at the same time")
    .option("--save <name>", "write the results to evals/baselines/NAME.json")
    .option("--baseline <name>", "compare with evals/baselines/NAME.json")
    .option("--resume [RUN]", "continue a run (default: the newest one that has not completed)")
    .option("--offline", "answer recorded cases from their records alone, and refuse every request over HTTP")
    .option("--json <file>", "write results and report as JSON")
    .option("--junit <file>", "write the report as JUnit XML")
    .option("--markdown <file>", "write the report as Markdown, for a pull request")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .addHelpText("after", runHelp)
    .action(async (files: string[], options: EvalCommandOptions) => {
      const { evalCommand } = await import("../commands/evals/eval-command.ts");
      onEnd(await evalCommand(files, options, terminal));
    });
  evaluate
    .command("add")
    .description("make cases of stored runs")
    .argument("[RUN...]", "the runs: their ids, or enough of their first characters")
    .requiredOption("--to <file>", "the case file, which is created if it does not exist")
    .option(
      "--where <filter...>",
      "the runs that fit all these filters, as reeve ps --where has them, instead of RUN",
    )
    .option(
      "--store <address>",
      "the store of the runs, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .option("--json", "print one JSON object per case")
    .addHelpText("after", addHelp)
    .action(async (names: string[], options: AddCasesOptions) => {
      const { addStoredCases } = await import("../commands/evals/add-cases.ts");
      onEnd(await addStoredCases(names, options, terminal));
    });
  evaluate
    .command("fork")
    .description("try a model, instructions or tools on stored runs, and score both ends")
    .argument("<FILE>", "the file that exports the experiment with the agent and the scorers")
    .requiredOption("--runs <run...>", "the runs: their ids, or filters as reeve ps --where has them")
    .option(
      "--from <step>",
      "where the forks begin: first-model-call, last-turn, an event or a name",
      "first-model-call",
    )
    .option("--model <model>", "the model, as provider/id; may be repeated", collect)
    .option("--instructions <file>", "a file with the whole system prompt")
    .option("--tools <names>", "the names of the tools that stay, with commas between them")
    .option("--variant <name>", "the variant whose agent has the runs (default: the first one)")
    .option("--limit <n>", "maximum number of runs that filters choose, the newest first", "100")
    .option("--max-cost <usd>", "maximum cost in dollars; with --resume, how much to add")
    .option("--seats <n>", "number of forks that are in progress at the same time")
    .option(
      "--resume [RUN]",
      "continue a run with the same options (default: the newest one that has not completed)",
    )
    .option("--json <file>", "write results and report as JSON")
    .option("--junit <file>", "write the report as JUnit XML")
    .option("--markdown <file>", "write the report as Markdown, for a pull request")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .addHelpText("after", forkHelp)
    .action(async (file: string, options: ForkRunsOptions) => {
      const { forkStoredRuns } = await import("../commands/evals/fork-runs.ts");
      onEnd(await forkStoredRuns(file, options, terminal));
    });
}
