import { Fault, type SessionEntry } from "../../../kernel/index.ts";
import { readClaudeCode } from "./claude-code-session.ts";
import { readCodex } from "./codex-session.ts";
import {
  closedCalls,
  fieldsOf,
  ImportedEntries,
  type FileLine,
  type ReadConversation,
} from "./imported-entries.ts";
import { readPi } from "./pi-session.ts";

/** The programs whose session files can be read. */
export const sessionFormats = ["pi", "claude-code", "codex"] as const;

export type SessionFormat = (typeof sessionFormats)[number];

/** A conversation that was read from a file. */
export interface SessionFile {
  readonly format: SessionFormat;
  /** The entries in the form that `runtime.sessions.import()` accepts. */
  readonly entries: readonly SessionEntry[];
  /** Number of lines that could not be read. Each of them is kept as an entry of type `custom`. */
  readonly unread: number;
  /** Number of records that belong only to the other program, such as its system prompt. They are not imported. */
  readonly leftOut: number;
}

const readers: Readonly<
  Record<SessionFormat, (lines: readonly FileLine[], entries: ImportedEntries) => ReadConversation>
> = { pi: readPi, "claude-code": readClaudeCode, codex: readCodex };

/**
 * Reads the session file of another program. `name` is the name of the file, for error messages. Without `format`,
 * the program is recognized by the first lines.
 */
export function readSessionFile(text: string, name: string, format?: SessionFormat): SessionFile {
  const lines = linesOf(text);
  const found = format ?? formatOf(lines);
  if (found === undefined)
    throw new Fault(
      "invalid_argument",
      `invalid session file ${name}: its first lines are none of pi, Claude Code or Codex; name the program with --from ${sessionFormats.join("|")}`,
    );
  const imported = new ImportedEntries();
  const { leafId, leftOut } = readers[found](lines, imported);
  const hasTalk = imported.all.some(({ type }) => type === "message");
  if (!hasTalk)
    throw new Fault(
      "invalid_argument",
      `invalid session file ${name}: it has no message in the format of ${found}${imported.unread === 0 ? "" : `, and ${imported.unread} lines could not be read`}; check the file, or name its program with --from`,
    );
  const closed = closedCalls(imported.all, leafId);
  const ids = new Set(closed.entries.map(({ id }) => id));
  // The target of a label may be a result without a call, which no session holds.
  const entries = closed.entries.filter((entry) => entry.type !== "label" || ids.has(entry.targetId));
  return { format: found, entries: withLeaf(entries, closed.leafId), unread: imported.unread, leftOut };
}

/**
 * Returns the entries. If the last one is not the current entry, appends an entry that moves the current entry to
 * the right place.
 */
function withLeaf(entries: readonly SessionEntry[], leafId: string | null): readonly SessionEntry[] {
  const last = entries.findLast(({ type }) => type !== "label" && type !== "session_info");
  if (last === undefined || last.id === leafId) return entries;
  const move: SessionEntry = {
    type: "leaf",
    id: "imported-leaf",
    parentId: leafId,
    at: last.at,
    runId: null,
    taskId: null,
    targetId: leafId,
  };
  return [...entries, move];
}

function linesOf(text: string): readonly FileLine[] {
  return text
    .replace(/^\uFEFF/u, "")
    .split("\n")
    .map((line, index) => ({ number: index + 1, text: line.trimEnd(), value: parsed(line) }))
    .filter((line) => line.text !== "");
}

function parsed(line: string): FileLine["value"] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? fieldsOf(value) : undefined;
  } catch {
    // The line is kept as it is: `ImportedEntries.keep`.
    return undefined;
  }
}

/** Number of lines that are examined to recognize the program that wrote a file. */
const telling = 50;

function formatOf(lines: readonly FileLine[]): SessionFormat | undefined {
  for (const { value } of lines.slice(0, telling)) {
    if (value === undefined) continue;
    const { type, payload, uuid, sessionId, id } = value;
    if (type === "session" && typeof id === "string") return "pi";
    if ((type === "session_meta" || type === "response_item") && typeof payload === "object") return "codex";
    if (typeof sessionId === "string" && (typeof uuid === "string" || typeof type === "string"))
      return "claude-code";
  }
  return undefined;
}
