import type { Command } from "commander";
import type { AddCasesOptions } from "../commands/evals/add-cases.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

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
    .description("evaluate agents, with cases and with stored runs")
    // The commands below have options of the same names.
    .enablePositionalOptions();
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
