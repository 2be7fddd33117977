import { addCases, type AddedCase } from "../../../../experiments/index.ts";
import { Fault, type RunId, type Store } from "../../../../kernel/index.ts";
import { eachRun, findRunId } from "../../setup/find-run.ts";
import { whereQuery } from "../../setup/run-filters.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { counted } from "../../terminal/format.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Options of `reeve eval add`. */
export interface AddCasesOptions extends StoreOptions {
  readonly to: string;
  readonly where?: readonly string[];
  readonly json?: boolean;
}

/** Makes test cases from stored runs. Prints one line for each case, with the data that were removed from it. */
export function addStoredCases(
  names: readonly string[],
  options: AddCasesOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runIds = await chosenRuns(store, names, options);
    for (const added of await addCases(store, runIds, options.to))
      await terminal.out(options.json === true ? JSON.stringify(added) : lineOf(added));
    return "ok";
  });
}

/** Returns the runs that are named, or that match the filters, the oldest first. */
async function chosenRuns(
  store: Store,
  names: readonly string[],
  { where, store: address }: { readonly where?: readonly string[]; readonly store: string },
): Promise<readonly RunId[]> {
  if ((where === undefined) === (names.length === 0))
    throw new Fault(
      "invalid_argument",
      where === undefined
        ? "missing RUN; name runs, or choose them with --where FILTER such as status=completed"
        : "RUN and --where cannot be combined; use one of them",
    );
  if (where === undefined) return Promise.all(names.map((name) => findRunId(store, name, address)));
  const found: RunId[] = [];
  for await (const { runId } of eachRun(store, whereQuery(where))) found.push(runId);
  if (found.length > 0) return found.toReversed();
  throw new Fault("not_found", `no run fits --where ${where.join(" ")}; reeve ps --all lists the runs`);
}

function lineOf({ id, modelCalls, toolCalls, recording, redactions }: AddedCase): string {
  const removed = Object.entries(redactions).map(([place, secrets]) => `${secrets} in ${place}`);
  const told = removed.length === 0 ? "no secret found" : `secrets removed: ${removed.join(", ")}`;
  return `${id}  ${counted(modelCalls)} model calls, ${counted(toolCalls)} tool calls  ${recording}  ${told}`;
}
