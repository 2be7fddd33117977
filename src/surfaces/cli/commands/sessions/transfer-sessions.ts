import { readFile, writeFile } from "node:fs/promises";
import { Fault, readProperty, type Runtime, type SessionEntry } from "../../../../kernel/index.ts";
import { piLines } from "../../../protocols/session-files/pi-session.ts";
import {
  readSessionFile,
  sessionFormats,
  type SessionFormat,
} from "../../../protocols/session-files/session-file.ts";
import { sessionPage } from "../../../protocols/session-files/session-page.ts";
import { withRuns } from "../../setup/idle-engine.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { requireSession, type SessionOptions } from "./session-commands.ts";

export interface ExportSessionOptions extends SessionOptions {
  readonly format: string;
  readonly output?: string;
}

export interface ImportSessionOptions extends SessionOptions {
  readonly agent: string;
  readonly from?: string;
  readonly session?: string;
  readonly user?: string;
  readonly tenant?: string;
}

const exportFormats = ["pi", "html"] as const;

/** Prints a session with all its branches, or writes it to a file that does not exist yet. */
export function exportSession(
  id: string,
  options: ExportSessionOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const format = chosen("--format", options.format, exportFormats);
  const { output, json = false } = options;
  return withRuns(options, terminal, async (_store, runtime): Promise<ExitKind> => {
    const session = await requireSession(runtime, id, options);
    const entries = await entriesOf(runtime, id);
    const lines =
      format === "pi" ? piLines(session, entries, process.cwd()) : [sessionPage(session, entries).trimEnd()];
    if (output === undefined) {
      for (const line of lines) await terminal.out(line);
      return "ok";
    }
    await writeNew(output, `${lines.join("\n")}\n`);
    const done = { sessionId: session.sessionId, format, file: output, entries: entries.length };
    if (json) await terminal.out(JSON.stringify(done));
    else terminal.say(`Wrote ${entries.length} entries of ${session.sessionId} to ${printable(output)}.`);
    return "ok";
  });
}

async function entriesOf({ sessions }: Runtime, id: string): Promise<readonly SessionEntry[]> {
  const found: SessionEntry[] = [];
  let after: string | null = null;
  do {
    const page = await sessions.entries(id, { limit: 1_000, ...(after !== null && { after }) });
    found.push(...page.entries);
    after = page.next;
  } while (after !== null);
  return found;
}

async function writeNew(file: string, text: string): Promise<void> {
  try {
    // A conversation may contain secrets.
    await writeFile(file, text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    const exists = readProperty(error, "code") === "EEXIST";
    const why = exists ? "it exists; remove it or choose another name" : Fault.from(error).message;
    throw new Fault("invalid_argument", `cannot write ${printable(file)}: ${why}`, { cause: error });
  }
}

/** Stores a session of another program as a new session, and prints the id of the new session. */
export function importSession(
  file: string,
  options: ImportSessionOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { agent: agentId, from, session: sessionId, user: userId, tenant: tenantId, json = false } = options;
  const wanted = from === undefined ? undefined : chosen("--from", from, sessionFormats);
  return withRuns(options, terminal, async (_store, { sessions }): Promise<ExitKind> => {
    const { format, entries, unread, leftOut } = await readFrom(file, wanted);
    const id = await sessions.import({
      agentId,
      entries,
      ...(sessionId !== undefined && { sessionId }),
      ...(userId !== undefined && { userId }),
      ...(tenantId !== undefined && { tenantId }),
    });
    const done = { sessionId: id, format, entries: entries.length, unread, leftOut };
    await terminal.out(json ? JSON.stringify(done) : printable(id));
    terminal.say(
      `Imported ${entries.length} entries of ${format}; left out ${leftOut} records of the program itself.`,
    );
    if (unread > 0)
      terminal.say(
        `${unread} ${unread === 1 ? "line" : "lines"} could not be read; reeve sessions show ${id} --tree shows them as unread_line.`,
      );
    return "ok";
  });
}

async function readFrom(
  file: string,
  format: SessionFormat | undefined,
): Promise<ReturnType<typeof readSessionFile>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new Fault("invalid_argument", `cannot read ${printable(file)}: ${Fault.from(error).message}`, {
      cause: error,
    });
  }
  return readSessionFile(text, printable(file), format);
}

function chosen<const Choice extends string>(
  option: string,
  value: string,
  choices: readonly Choice[],
): Choice {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  throw new Fault(
    "invalid_argument",
    `invalid ${option} ${JSON.stringify(value)}: expected ${choices.join(", ")}`,
  );
}
