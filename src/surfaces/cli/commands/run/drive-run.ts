import { Fault } from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { OrderManyOptions } from "../runs/order-many.ts";
import { runCommand } from "./run-command.ts";

/** Resumes one run and drives it in this process until it ends. */
export function driveRun(
  runs: readonly string[],
  options: OrderManyOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { store, json = false } = options;
  return runCommand([], { resume: onlyRun(runs, options), store, mode: json ? "json" : "text" }, terminal);
}

function onlyRun([run, ...others]: readonly string[], { where, yes, dryRun }: OrderManyOptions): string {
  if (run !== undefined && others.length === 0 && where === undefined && yes !== true && dryRun !== true)
    return run;
  throw new Fault(
    "invalid_argument",
    "--drive takes one RUN, without --where, --yes and --dry-run; use reeve resume RUN --drive, or reeve run --resume RUN --yes to allow every tool call",
  );
}
