import { isAbsolute, resolve } from "node:path";
import type { PlanEntry, ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import { visibleLine, visibleText, type JsonValue } from "../../../kernel/index.ts";

/** The data with which an editor shows a tool call before its result. */
export interface ToolCallView {
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: ToolCallLocation[];
  /** The file change that the call makes. Empty for calls that change no file. */
  readonly content: ToolCallContent[];
}

/** The ACP kinds of Reeve's tools. The kind of all other tools, such as those of MCP servers, is `other`. */
const kinds: Readonly<Record<string, ToolKind>> = {
  read: "read",
  ls: "search",
  find: "search",
  grep: "search",
  knowledge: "read",
  skill: "read",
  recall: "search",
  write: "edit",
  edit: "edit",
  bash: "execute",
  fetch: "fetch",
  todo: "think",
};

/** Maximum length of a title, in characters. */
const maxTitle = 120;

/**
 * Describes a tool call for an editor. `root` is the folder of the tools; it is needed because editors need
 * absolute paths.
 */
export function toolCallView(toolName: string, input: JsonValue, root: string): ToolCallView {
  const values = recordOf(input);
  const path = textIn(values, "path");
  const line = values["offset"];
  const locations: ToolCallLocation[] =
    path === undefined
      ? []
      : [{ path: absolute(path, root), ...(typeof line === "number" && { line: Math.trunc(line) }) }];
  return {
    title: titleOf(toolName, values),
    kind: Object.hasOwn(kinds, toolName) ? (kinds[toolName] ?? "other") : "other",
    locations,
    content: path === undefined ? [] : diffOf(toolName, values, absolute(path, root)),
  };
}

/** Returns the plan that a call of the tool `todo` stores. `undefined` for any other call. */
export function planOf(toolName: string, input: JsonValue): PlanEntry[] | undefined {
  const { items } = recordOf(input);
  if (toolName !== "todo" || !Array.isArray(items)) return undefined;
  return items.flatMap((item): PlanEntry[] => {
    const { text, status } = recordOf(item as JsonValue);
    if (typeof text !== "string" || status === "dropped") return [];
    return [{ content: text, priority: "medium", status: planStatus(status) }];
  });
}

function planStatus(status: JsonValue | undefined): PlanEntry["status"] {
  if (status === "doing") return "in_progress";
  return status === "done" ? "completed" : "pending";
}

function titleOf(toolName: string, values: Readonly<Record<string, JsonValue>>): string {
  const [name = ""] = ["command", "path", "url", "pattern", "query", "task"].filter(
    (each) => textIn(values, each) !== undefined,
  );
  const about = visibleText(textIn(values, name) ?? "")
    .replaceAll(/\s+/gu, " ")
    .trim();
  const title = visibleLine(about === "" ? toolName : `${toolName} ${about}`);
  return title.length <= maxTitle ? title : `${title.slice(0, maxTitle - 1)}…`;
}

function diffOf(
  toolName: string,
  values: Readonly<Record<string, JsonValue>>,
  path: string,
): ToolCallContent[] {
  const newText = textIn(values, toolName === "edit" ? "newText" : "content");
  if (newText === undefined || (toolName !== "edit" && toolName !== "write")) return [];
  return [{ type: "diff", path, oldText: textIn(values, "oldText") ?? null, newText }];
}

function absolute(path: string, root: string): string {
  return isAbsolute(path) ? path : resolve(root, path);
}

function textIn(values: Readonly<Record<string, JsonValue>>, name: string): string | undefined {
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  return typeof value === "string" ? value : undefined;
}

function recordOf(value: JsonValue): Readonly<Record<string, JsonValue>> {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  return isRecord ? (value as Readonly<Record<string, JsonValue>>) : {};
}
