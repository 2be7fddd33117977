import { Fault, parseRunId, type RunId, type RunSummary, type Store } from "../../../kernel/index.ts";
import { printable } from "../terminal/terminal.ts";

/** Maximum number of candidates that the error for an ambiguous prefix lists. */
const shownCandidates = 5;

/**
 * Returns the id of the run that a person means by a text: the whole id, or a prefix with which only one run of the
 * store begins. A whole id takes one lookup, a prefix reads the list of all runs. `address` is the address of the
 * store, for the error message.
 */
export async function findRunId({ journal }: Store, text: string, address: string): Promise<RunId> {
  const wanted = parseRunId(text);
  if ((await journal.find(wanted)) !== undefined) return wanted;
  const found: RunId[] = [];
  for await (const { runId } of eachRun({ journal })) if (runId.startsWith(wanted)) found.push(runId);
  return onlyMatch(
    found,
    wanted,
    `run ${printable(wanted)} not found in ${printable(address)}; reeve ps --all lists its runs, and --store chooses another store`,
  );
}

/**
 * Returns the only id that a text matches. Throws `not_found` with the text `absence` if no id matches, and
 * `invalid_argument` if several match.
 */
export function onlyMatch<Id extends string>(found: readonly Id[], text: string, absence: string): Id {
  const [only, ...others] = found;
  if (only === undefined) throw new Fault("not_found", absence);
  if (others.length === 0) return only;
  const shown = found.slice(0, shownCandidates).map(printable).join(", ");
  const more = found.length > shownCandidates ? ` and ${found.length - shownCandidates} more` : "";
  throw new Fault(
    "invalid_argument",
    `${printable(text)} is ambiguous: ${shown}${more}; use more characters`,
  );
}

/** Yields the runs of the store, newest first. */
export async function* eachRun(
  { journal }: Pick<Store, "journal">,
  query: Parameters<Store["journal"]["list"]>[0] = {},
): AsyncIterable<RunSummary> {
  let after: string | null = null;
  do {
    const page = await journal.list({ ...query, limit: 500, ...(after !== null && { after }) });
    yield* page.runs;
    after = page.next;
  } while (after !== null);
}
