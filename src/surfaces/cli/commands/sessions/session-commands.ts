import {
  Fault,
  messageText,
  type Runtime,
  type SessionEntry,
  type SessionNode,
  type SessionSummary,
  type ToolOutput,
} from "../../../../kernel/index.ts";
import { excerpt } from "../../../view/excerpt.ts";
import { withRuns } from "../../setup/idle-engine.ts";
import type { StoreOptions } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, duration } from "../../terminal/format.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import { printable, shownText, type Terminal } from "../../terminal/terminal.ts";

export interface SessionOptions extends StoreOptions {
  readonly json?: boolean;
}

export interface ListSessionsOptions extends SessionOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly tenant?: string;
  readonly text?: string;
  readonly limit: string;
}

export interface ShowSessionOptions extends SessionOptions {
  readonly tree?: boolean;
}

/** Prints the sessions of a store, the newest first. */
export function listSessions(options: ListSessionsOptions, terminal: Terminal): Promise<ExitKind> {
  const { agent: agentId, user: userId, tenant: tenantId, text, json = false } = options;
  const limit = positiveInteger("--limit", options.limit);
  const filter = {
    ...(agentId !== undefined && { agentId }),
    ...(userId !== undefined && { userId }),
    ...(tenantId !== undefined && { tenantId }),
    ...(text !== undefined && { text }),
  };
  return withRuns(options, terminal, async (_store, { sessions }): Promise<ExitKind> => {
    const found: SessionSummary[] = [];
    let after: string | null = null;
    do {
      const page = await sessions.list({
        ...filter,
        limit: Math.min(200, limit + 1 - found.length),
        ...(after !== null && { after }),
      });
      found.push(...page.sessions);
      after = page.next;
    } while (after !== null && found.length <= limit);
    const shown = found.slice(0, limit);
    const now = Date.now();
    const rows = shown.map((session) => sessionRow(session, now));
    const lines = json
      ? shown.map((session) => JSON.stringify(session))
      : columns(terminal.isWatched && rows.length > 0 ? [heading, ...rows] : rows);
    for (const line of lines) await terminal.out(line);
    if (shown.length === 0) terminal.say("No session found.");
    if (found.length > limit) terminal.say(`Only the newest ${limit} are shown; --limit shows more.`);
    return "ok";
  });
}

const heading = ["SESSION", "CHANGED", "ENTRIES", "AGENT", "NAME"];

function sessionRow(session: SessionSummary, now: number): string[] {
  const { sessionId, updatedAt, entries, agentId, name, title } = session;
  return [
    printable(sessionId),
    `${duration(now - updatedAt)} ago`,
    String(entries),
    printable(agentId.split("/", 1)[0] ?? agentId),
    printable(excerpt(name ?? title ?? "")),
  ];
}

/** Prints the current conversation of a session, or all of its branches. */
export function showSession(id: string, options: ShowSessionOptions, terminal: Terminal): Promise<ExitKind> {
  const { tree = false, json = false } = options;
  return withRuns(options, terminal, async (_store, { sessions }): Promise<ExitKind> => {
    if (tree) {
      const { nodes, roots } = await sessions.tree(id);
      const lines = json ? nodes.map((node) => JSON.stringify(node)) : treeLines(nodes, roots);
      for (const line of lines) await terminal.out(line);
      return "ok";
    }
    for (const entry of await sessions.path(id))
      for (const line of json ? [JSON.stringify(entry)] : entryLines(entry)) await terminal.out(line);
    return "ok";
  });
}

/** Returns the lines for an entry of a conversation: the speaker, and below it the text. */
function entryLines(entry: SessionEntry): readonly string[] {
  const { head, text } = wordsOf(entry);
  const body = text.trim() === "" ? [] : shownText(text.trim()).split("\n");
  return [`${head}:`, ...body.map((line) => `  ${line}`), ""];
}

/** An entry in words. */
function wordsOf(entry: SessionEntry): { readonly head: string; readonly text: string } {
  switch (entry.type) {
    case "message":
      return { head: entry.message.role, text: spoken(entry.message) };
    case "custom_message":
      return { head: printable(entry.customType), text: spoken(entry.message) };
    case "compaction":
      return { head: "summary of what was before", text: entry.summary };
    case "branch_summary":
      return { head: "summary of another branch", text: entry.summary };
    case "model_change":
      return { head: "model", text: `${entry.provider}/${entry.modelId}` };
    case "thinking_level_change":
      return { head: "thinking", text: entry.level };
    case "session_info":
      return { head: "name", text: entry.name };
    case "label":
      return { head: "label", text: entry.label ?? "removed" };
    case "leaf":
      return { head: "continues after", text: entry.targetId ?? "the start" };
    case "custom":
      return { head: printable(entry.customType), text: JSON.stringify(entry.data) };
  }
}

type SpokenMessage = Extract<SessionEntry, { type: "message" }>["message"];

/** Returns the text of a message, with one line for each tool call and each result. */
function spoken(message: SpokenMessage): string {
  if (message.role === "system" || message.role === "user") return messageText(message);
  const lines: string[] = [];
  for (const part of message.content)
    if (part.type === "text") lines.push(part.text);
    else if (part.type === "tool_call") lines.push(`-> ${part.toolName} ${JSON.stringify(part.input)}`);
    else if (part.type === "tool_result")
      lines.push(`<- ${part.toolName}${part.isError ? " failed" : ""}: ${resultText(part.output)}`);
    else lines.push(`(${part.type})`);
  return lines.join("\n");
}

function resultText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  return JSON.stringify(output.type === "json" ? output.value : output.parts);
}

/**
 * Returns one line for each entry of all branches. A line is indented where the conversation branches. Entries on
 * the current path are marked with a star.
 */
function treeLines(nodes: readonly SessionNode[], roots: readonly string[]): readonly string[] {
  const byId = new Map(nodes.map((node) => [node.entry.id, node]));
  const lines: string[] = [];
  const open = roots.toReversed().map((id) => ({ id, depth: roots.length > 1 ? 1 : 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const node = byId.get(next.id);
    if (node === undefined) continue;
    const { entry, label, isOnPath, children } = node;
    const { head, text } = wordsOf(entry);
    const mark = isOnPath ? "*" : " ";
    const name = label === null ? "" : ` [${printable(label)}]`;
    lines.push(
      `${mark} ${"  ".repeat(next.depth)}${printable(entry.id)}${name}  ${head}: ${printable(excerpt(text))}`,
    );
    const depth = next.depth + (children.length > 1 ? 1 : 0);
    for (const id of children.toReversed()) open.push({ id, depth });
  }
  return lines;
}

/** Names a session, and prints its id. */
export function renameSession(
  id: string,
  name: string,
  options: SessionOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withRuns(options, terminal, async (_store, { sessions }): Promise<ExitKind> => {
    await sessions.name(id, name);
    await terminal.out(sessionLine(id, options));
    return "ok";
  });
}

/**
 * Deletes sessions and prints their ids. If one of the sessions does not exist, nothing is deleted, so that a
 * typing error does no harm.
 */
export function deleteSessions(
  ids: readonly string[],
  options: SessionOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withRuns(options, terminal, async (_store, runtime): Promise<ExitKind> => {
    for (const id of ids) await requireSession(runtime, id, options);
    for (const id of ids) {
      await runtime.sessions.delete(id);
      await terminal.out(sessionLine(id, options));
    }
    return "ok";
  });
}

export async function requireSession(
  { sessions }: Runtime,
  id: string,
  { store }: StoreOptions,
): Promise<SessionSummary> {
  const found = await sessions.get(id);
  if (found !== undefined) return found;
  throw new Fault(
    "not_found",
    `session ${printable(id)} not found in ${printable(store)}; reeve sessions list shows its sessions`,
  );
}

/** Prints the entries that contain a text. */
export function searchSessions(
  text: string,
  options: SessionOptions & { readonly session?: string; readonly limit: string },
  terminal: Terminal,
): Promise<ExitKind> {
  const { session, json = false } = options;
  const limit = positiveInteger("--limit", options.limit);
  return withRuns(options, terminal, async (_store, { sessions }): Promise<ExitKind> => {
    const { hits, next } = await sessions.search(text, {
      limit,
      ...(session !== undefined && { sessionId: session }),
    });
    const lines = json
      ? hits.map((hit) => JSON.stringify(hit))
      : columns(
          hits.map(({ sessionId, entryId, excerpt: around }) => [
            printable(sessionId),
            printable(entryId),
            printable(around),
          ]),
        );
    for (const line of lines) await terminal.out(line);
    if (hits.length === 0) terminal.say("No entry contains this text.");
    if (next !== null) terminal.say(`Only the first ${limit} are shown; --limit shows more.`);
    return "ok";
  });
}

function sessionLine(sessionId: string, { json = false }: SessionOptions): string {
  return json ? JSON.stringify({ sessionId }) : printable(sessionId);
}
