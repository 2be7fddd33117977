import type { RunId, TaskId } from "../base/identity.ts";
import { readProperty } from "../base/read-property.ts";
import type { JsonValue } from "../base/json-value.ts";

/** What a file contained. */
export type KeptFile =
  | { readonly kind: "absent" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary"; readonly base64: string }
  /** The file has more than `maxKeptBytes`, or this process may not read it. */
  | { readonly kind: "not_kept"; readonly reason: "too_large" | "unreadable" };

/** Files of at most this size are kept before a tool changes them: 4 MiB. */
export const maxKeptBytes = 4 * 1024 * 1024;

/**
 * A change of a file by a tool. The tools `write` and `edit` record it as a step of their call before they write,
 * so that a crash does not lose the previous content, and a repeated call does not record its own change as the
 * previous content.
 */
export interface FileChange {
  /** Id of the tool call. */
  readonly callId: string;
  /** Real absolute path of the file. */
  readonly path: string;
  /** What the file contained. */
  readonly before: KeptFile;
  /** SHA-256 of `before`, in hexadecimal. `null` if the file did not exist or was not kept. */
  readonly beforeHash: string | null;
  /** SHA-256 of what the tool wrote, in hexadecimal. */
  readonly afterHash: string;
}

/** Name of the step that records a `FileChange`. */
export const fileChangeStep = "previous content";

/** A change of a file with the call that made it. */
export interface RecordedFileChange extends FileChange {
  readonly runId: RunId;
  readonly taskId: TaskId;
  /** Time at which the change was recorded, in epoch milliseconds. */
  readonly at: number;
}

/** The effects of the runs of a session after one of its entries. */
export interface SessionFileChanges {
  /** The recorded changes of files, oldest first. */
  readonly changes: readonly RecordedFileChange[];
  /** Number of recorded changes whose contents retention has erased. */
  readonly erased: number;
  /** The calls of other tools, by name, in the order of their first call. Their effects cannot be undone from the journal. */
  readonly otherCalls: readonly { readonly toolName: string; readonly count: number }[];
}

/**
 * Returns the change that a step recorded. `undefined` if its content was erased, or if other code recorded the
 * step.
 */
export function readFileChange(value: JsonValue): FileChange | undefined {
  const isChange = ["path", "afterHash"].every((key) => typeof readProperty(value, key) === "string");
  return isChange ? (value as unknown as FileChange) : undefined;
}
