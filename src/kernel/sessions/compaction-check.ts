import { findUnpaired } from "../messages/tool-call.ts";
import { sessionContext } from "./session-context.ts";
import type { SessionEntry } from "./session-entry.ts";

/**
 * Returns what is wrong with the summary of a path, or `undefined`. S3: the kept part must begin with an entry that
 * the model sees, and must not separate a call from its result.
 */
export function compactionProblem(
  path: readonly SessionEntry[],
  { summary, firstKeptEntryId }: { readonly summary: string; readonly firstKeptEntryId: string },
): string | undefined {
  if (typeof summary !== "string" || summary.trim() === "")
    return "invalid summary of a compaction: expected a text that is not empty";
  const { entries } = sessionContext(path);
  const first = entries.findIndex(({ entry }) => entry.id === firstKeptEntryId);
  if (first < 0)
    return `invalid firstKeptEntryId "${firstKeptEntryId}" of a compaction: expected an entry of the path that the model sees`;
  const problem = findUnpaired(entries.slice(first).map(({ message }) => message));
  return problem === undefined
    ? undefined
    : `invalid firstKeptEntryId "${firstKeptEntryId}" of a compaction: a call and its result must be kept together: ${problem}`;
}
