import type { Command } from "commander";
import type { AddCasesOptions } from "../commands/evals/add-cases.ts";
import type { EvalCommandOptions } from "../commands/evals/eval-command.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodesAnd, exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { collect } from "./server-program.ts";

const runHelp = `
Runs experiments: cases that agents answer and scorers score (docs/experiments.md). Without FILE it runs those of
evals/**/*.eval.{ts,js,mjs} of this project, whose code you must trust; a file that you name needs no trust. Progress goes
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

/** Adds the commands that evaluate agents. */
export function addEvalCommands(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  const evaluate = program
    .command("eval")
    .description("run experiments and report what their scores say")
    // The commands below have options of the same names.
    .enablePositionalOptions()
    .argument("[FILE...]", "files that export experiments (default: evals/**/*.eval.{ts,js,mjs})")
    .option("--filter <text>", "only the cases whose id contains this text")
    .option("--tag <tag>", "only the cases with this tag; may be repeated", collect)
    .option("--trials <n>", "how often each case is given to each variant")
    .option("--max-cost <usd>", "maximum cost in dollars; with --resume, how much to add")
    .option("--seats <n>", "number of trials that are in progress at the same time")
    .option("--save <name>", "write the results to evals/baselines/NAME.json")
    .option("--baseline <name>", "compare with evals/baselines/NAME.json")
    .option("--resume [RUN]", "continue a run (default: the newest one that has not completed)")
    .option("--offline", "refuse every request over HTTP, for scripted and recorded models")
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
}
