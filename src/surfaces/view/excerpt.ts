import { messageText, visibleText, type AssistantMessage, type JsonValue } from "../../kernel/index.ts";

/** Maximum number of characters of an excerpt. It is limited so that a view with thousands of tasks stays small. */
const most = 80;

/** Returns the beginning of a text as one line, with its hidden characters made visible. */
export function excerpt(text: string): string {
  const line = visibleText(text.slice(0, 4 * most))
    .replaceAll(/\s+/gu, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** Names of the arguments that describe a call best, in order of preference. */
const telling = ["command", "path", "file", "url", "query", "pattern", "question", "task", "message"];

/**
 * Returns the argument that describes a call best, as text: the command, the path or the query, or else all
 * arguments.
 */
export function argumentOf(input: JsonValue): string {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return textOfValue(input ?? "");
  const fields = input as Readonly<Record<string, JsonValue>>;
  const names = Object.keys(fields);
  for (const name of names.length === 1 ? names : telling) {
    const value = fields[name];
    if (typeof value === "string" && value !== "") return textOfValue(value);
  }
  return names.length === 0 ? "" : textOfValue(input);
}

/** Formats a JSON value as one line, with its hidden characters made visible. A string is formatted without quotes. */
function textOfValue(value: JsonValue): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return visibleText(text).replaceAll(/\s+/gu, " ").trim();
}

/** Returns the text of an answer, or else the tools that it calls. */
export function answerWords(message: AssistantMessage): string {
  const text = excerpt(messageText(message));
  if (text !== "") return text;
  const names = message.content.flatMap((part) => (part.type === "tool_call" ? [part.toolName] : []));
  return names.length === 0 ? "" : excerpt(`calls ${[...new Set(names)].join(", ")}`);
}
