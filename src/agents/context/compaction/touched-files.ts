import type { ChatMessage, ToolCallPart } from "../../../kernel/index.ts";

/** File paths in the order of first use. A modified file is not listed as read. */
export interface TouchedFiles {
  readonly read: readonly string[];
  readonly modified: readonly string[];
}

/** Returns what a call does to a file. `null` if it uses no file. */
export type FileUse = (
  call: ToolCallPart,
) => { readonly use: "read" | "modified"; readonly path: string } | null;

const readers = new Set(["read", "read_file"]);
const writers = new Set(["write", "write_file", "edit", "edit_file"]);

/** Recognises file use by the usual names of file tools. */
export const usualFileUse: FileUse = ({ toolName, input }) => {
  const use = readers.has(toolName) ? "read" : writers.has(toolName) ? "modified" : undefined;
  if (use === undefined || typeof input !== "object" || input === null) return null;
  const fields = input as Readonly<Record<string, unknown>>;
  const path = fields["path"] ?? fields["file_path"] ?? fields["filePath"];
  return typeof path === "string" && path !== "" && !path.includes("\n") ? { use, path } : null;
};

/** The files that successful calls touched. */
export function touchedFiles(messages: readonly ChatMessage[], fileUse: FileUse): TouchedFiles {
  // The messages are read backwards, so results come before their calls.
  let failed = new Set<string>();
  const read: string[] = [];
  const modified: string[] = [];
  for (const message of messages.toReversed()) {
    if (message.role === "tool")
      for (const { isError, callId } of message.content) if (isError) failed.add(callId);
    if (message.role !== "assistant") continue;
    for (const part of message.content.toReversed()) {
      const found = part.type === "tool_call" && !failed.has(part.callId) ? fileUse(part) : null;
      if (found !== null) (found.use === "read" ? read : modified).push(found.path);
    }
    failed = new Set();
  }
  return joinFiles({ read: read.toReversed(), modified: modified.toReversed() });
}

export function joinFiles(...all: readonly TouchedFiles[]): TouchedFiles {
  const modified = new Set(all.flatMap((files) => files.modified));
  const read = new Set(all.flatMap((files) => files.read).filter((path) => !modified.has(path)));
  return { read: [...read], modified: [...modified] };
}

/** Appends the file lists to a summary, so that they are stored with it. */
export function withFiles(summary: string, { read, modified }: TouchedFiles): string {
  return [summary, list("read-files", read), list("modified-files", modified)].filter(Boolean).join("\n\n");
}

/** The inverse of `withFiles`. */
export function splitFiles(text: string): { readonly summary: string; readonly files: TouchedFiles } {
  const read = /\n\n<read-files>\n([\s\S]*?)\n<\/read-files>/.exec(text);
  const modified = /\n\n<modified-files>\n([\s\S]*?)\n<\/modified-files>/.exec(text);
  const summary = text.replace(read?.[0] ?? "", "").replace(modified?.[0] ?? "", "");
  return {
    summary,
    files: { read: read?.[1]?.split("\n") ?? [], modified: modified?.[1]?.split("\n") ?? [] },
  };
}

function list(tag: string, paths: readonly string[]): string {
  return paths.length === 0 ? "" : `<${tag}>\n${paths.join("\n")}\n</${tag}>`;
}
