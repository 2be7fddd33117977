import type { Command } from "commander";
import type {
  ListSessionsOptions,
  SessionOptions,
  ShowSessionOptions,
} from "../commands/sessions/session-commands.ts";
import type { ExportSessionOptions, ImportSessionOptions } from "../commands/sessions/transfer-sessions.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

const sessionArgument = "the session: its id, as reeve sessions list prints it";

const listHelp = `
Prints one line per session, the newest first: id, when it changed, number of entries, agent, and its name or how
it began.

${exitCodeTable()}

Examples:
  $ reeve sessions list
  $ reeve sessions list --agent support --text refund --json | jq -r .sessionId`;

const showHelp = `
Prints the conversation as the next run continues it. With --tree, prints the entries of all branches, one line
each; a star marks those of the conversation.

${exitCodeTable()}

Examples:
  $ reeve sessions show ses_7f
  $ reeve sessions show ses_7f --tree
  $ reeve sessions show ses_7f --json | jq -r 'select(.type == "message") | .message.role'`;

const renameHelp = `
${exitCodeTable()}

Examples:
  $ reeve sessions rename ses_7f "Refund of order 7"`;

const deleteHelp = `
Deletes the conversation with its branches. Its runs stay until they are collected; a session with a run that has
not ended is refused.

${exitCodeTable()}

Examples:
  $ reeve sessions delete ses_7f`;

const searchHelp = `
Prints one line per entry that contains the text, in any case of letters: session, entry, and the text around it.

${exitCodeTable()}

Examples:
  $ reeve sessions search refund
  $ reeve sessions search refund --session ses_7f --json`;

const exportHelp = `
Prints the conversation with all its branches: as JSON lines in the session format of pi, which reeve sessions import
reads without a loss, or as one HTML page that needs no network. It contains what was said, also secrets in tool results.

${exitCodeTable()}

Examples:
  $ reeve sessions export ses_7f --output order-7.jsonl
  $ reeve sessions export ses_7f --format html --output order-7.html`;

const importHelp = `
Stores the conversation as a new session, which the next run of the agent continues, and prints its id. Reads session
files of pi (~/.pi/agent/sessions), Claude Code (~/.claude/projects) and Codex (~/.codex/sessions). Lines that cannot be
read are kept as entries of type custom and counted.

${exitCodeTable()}

Examples:
  $ reeve sessions import ~/.claude/projects/-home-ann-shop/7f.jsonl --agent clerk
  $ reeve run --agent clerk --session ses_7f "Continue."`;

/** Adds the commands that list, show, change and search sessions. */
export function addSessionCommands(
  program: Command,
  terminal: Terminal,
  onEnd: (kind: ExitKind) => void,
): void {
  const sessions = program
    .command("sessions")
    .description("list, show, rename, delete, search, export and import sessions");
  stored(sessions, "list", "list sessions, the newest first")
    .option("--agent <id>", "list only sessions of this agent")
    .option("--user <id>", "list only sessions of this user")
    .option("--tenant <id>", "list only sessions of this tenant")
    .option("--text <text>", "list only sessions whose name or beginning contains this text")
    .option("--limit <n>", "maximum number of sessions", "50")
    .addHelpText("after", listHelp)
    .action(async (options: ListSessionsOptions) => {
      const { listSessions } = await import("../commands/sessions/session-commands.ts");
      onEnd(await listSessions(options, terminal));
    });
  stored(sessions, "show", "print a conversation, or all its branches")
    .argument("<SESSION>", sessionArgument)
    .option("--tree", "print the entries of all branches")
    .addHelpText("after", showHelp)
    .action(async (id: string, options: ShowSessionOptions) => {
      const { showSession } = await import("../commands/sessions/session-commands.ts");
      onEnd(await showSession(id, options, terminal));
    });
  stored(sessions, "rename", "name a session")
    .argument("<SESSION>", sessionArgument)
    .argument("<NAME>", "the name, at most 200 characters")
    .addHelpText("after", renameHelp)
    .action(async (id: string, name: string, options: SessionOptions) => {
      const { renameSession } = await import("../commands/sessions/session-commands.ts");
      onEnd(await renameSession(id, name, options, terminal));
    });
  stored(sessions, "delete", "delete sessions")
    .argument("<SESSION...>", sessionArgument)
    .addHelpText("after", deleteHelp)
    .action(async (ids: string[], options: SessionOptions) => {
      const { deleteSessions } = await import("../commands/sessions/session-commands.ts");
      onEnd(await deleteSessions(ids, options, terminal));
    });
  stored(sessions, "search", "find the entries that contain a text")
    .argument("<TEXT>", "the text")
    .option("--session <id>", "search only this session")
    .option("--limit <n>", "maximum number of entries", "50")
    .addHelpText("after", searchHelp)
    .action(async (text: string, options: SessionOptions & { session?: string; limit: string }) => {
      const { searchSessions } = await import("../commands/sessions/session-commands.ts");
      onEnd(await searchSessions(text, options, terminal));
    });
  stored(sessions, "export", "write a session as JSON lines or as a page")
    .argument("<SESSION>", sessionArgument)
    .option("--format <format>", "pi (JSON lines) or html", "pi")
    .option("--output <file>", "file to write, which must not exist; default: standard output")
    .addHelpText("after", exportHelp)
    .action(async (id: string, options: ExportSessionOptions) => {
      const { exportSession } = await import("../commands/sessions/transfer-sessions.ts");
      onEnd(await exportSession(id, options, terminal));
    });
  stored(sessions, "import", "store the session of another program")
    .argument("<FILE>", "the session file of pi, Claude Code or Codex")
    .requiredOption("--agent <id>", "the agent that continues the conversation")
    .option("--from <program>", "pi, claude-code or codex; default: what the first lines say")
    .option("--session <id>", "id of the new session; default: a new id")
    .option("--user <id>", "the user whose conversation it is")
    .option("--tenant <id>", "the tenant whose conversation it is")
    .addHelpText("after", importHelp)
    .action(async (file: string, options: ImportSessionOptions) => {
      const { importSession } = await import("../commands/sessions/transfer-sessions.ts");
      onEnd(await importSession(file, options, terminal));
    });
}

function stored(sessions: Command, name: string, description: string): Command {
  return sessions
    .command(name)
    .description(description)
    .option("--store <address>", "the store, as sqlite:PATH or postgres://HOST/DATABASE", defaultStore)
    .option("--json", "print one JSON object per line");
}
