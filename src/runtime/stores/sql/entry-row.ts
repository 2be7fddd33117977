import {
  formatTaskId,
  parseTaskId,
  type EntryVisibility,
  type RunId,
  type SessionEntry,
  type TaskId,
} from "../../../kernel/index.ts";
import { idAfter, type EntryName, type EntryRest } from "../codec/entry-batch.ts";

/** The visibilities of entries. A row stores the index of a visibility in this list. */
export const visibilities: readonly EntryVisibility[] = ["pending", "hidden", "visible"];
export const visible = visibilities.indexOf("visible");

/** The columns of a row of `entries` with its content. */
export interface EntryText {
  /**
   * JSON array with the remaining members of each entry. The first entry has its `parentId`; each other entry is
   * the child of the previous one.
   */
  readonly body: string;
  /** JSON of the references to the large values of the entries. `null` if they have none. */
  readonly refs: string | null;
}

/** A row holds a batch of entries. */
export interface EntryRow extends EntryName, EntryText {
  readonly count: number;
  readonly runId: RunId | null;
  /** Ordinal of the task in its run. */
  readonly task: number | null;
  readonly visibility: number;
  readonly type: SessionEntry["type"];
}

/** The facts about an entry that can be found by its name without reading its content. */
export type EntryMark = Pick<EntryRow, "number" | "count" | "visibility">;

/** Returns the entries of a row from their remaining members. */
export function entriesIn(row: Omit<EntryRow, keyof EntryText>, rests: readonly EntryRest[]): SessionEntry[] {
  const { runId, task, type } = row;
  const taskId = task === null ? null : formatTaskId(task);
  let at: number | undefined;
  return rests.map((rest, index) => {
    at = rest.at ?? at;
    const id = idAfter(row, index);
    return { parentId: idAfter(row, index - 1), at, ...rest, type, id, runId, taskId } as SessionEntry;
  });
}

/** Returns the ordinal of a task in its run. */
export function ordinalOf(taskId: TaskId): number {
  return Number(parseTaskId(taskId).slice(1));
}
