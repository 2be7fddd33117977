import type { StoredBooking } from "./stored-booking.ts";
import type { AgentId, Commit, EventType, Failure, SessionChange, TaskId } from "../../../kernel/index.ts";

/**
 * Refers to content that a step of the same commit holds, or, for `run_start`, a task change: the index of the holder,
 * and the members if the event does not repeat all members that such events repeat. For example, a message is part of
 * its model call's value and of the event `message_end`; the row stores it once.
 */
export type Reference = readonly [holder: number, ...members: (string | number)[]];

/** A step with its digest. A step of the root task has no `taskId`; only a failed step has a `failure`. */
export type StoredStep = readonly [
  address: string,
  kind: string,
  name: string,
  digest: string,
  value: unknown,
  taskId?: TaskId,
  failure?: Failure,
];

/** The start of a step. A step of the root task has no `taskId`. */
export type StoredOpening = readonly [address: string, seq: number, taskId?: TaskId];

export type StoredEvent = BriefEvent | PlainEvent;

/** The stored form of a frequent event: its type and values, without member names. */
export type BriefEvent = readonly [type: EventType, ...values: unknown[]];

/** An event without the members that follow from its heading and its position. */
export interface PlainEvent {
  readonly type: EventType;
  /** The data without what `from` refers to. Absent if nothing remains. */
  readonly data?: object | undefined;
  readonly from?: Reference;
}

/**
 * The members of the following events that differ from the event before. The first event is compared with the root
 * task, the agent of the run and the time of the commit.
 */
export interface StoredHeading {
  readonly taskId?: TaskId;
  readonly agentId?: AgentId;
  readonly parentId?: TaskId | null;
  /** Milliseconds before the commit. */
  readonly ago?: number;
}

/**
 * Names a batch of session entries by its first entry and the number of entries (default: 1). The `entries` table holds
 * their content. Session and agent are absent if they are the run's; the visibility is absent if it is `pending`.
 */
export type StoredChange =
  | (Partial<Omit<SessionAppend, "type" | "entry" | "atLeaf">> &
      StoredEntryId & { readonly count?: number; readonly type?: undefined })
  | Exclude<SessionChange, SessionAppend>;

/** `own` is the part of the entry's id after the run's id and a slash. */
type StoredEntryId = { readonly own: string } | { readonly entryId: string };

type SessionAppend = Extract<SessionChange, { readonly type: "append" }>;

/** The JSON that the row of a commit stores. */
export interface StoredCommit extends Omit<
  { readonly [Key in keyof Commit]: Commit[Key] | undefined },
  "number" | "at" | "opens" | "steps" | "events" | "ledger" | "sessions"
> {
  readonly number?: undefined;
  readonly at?: undefined;
  readonly opens?: readonly StoredOpening[] | undefined;
  readonly steps?: readonly StoredStep[] | undefined;
  readonly ledger?: readonly StoredBooking[] | undefined;
  readonly events?: readonly (StoredEvent | StoredHeading)[] | undefined;
  readonly sessions?: readonly StoredChange[] | undefined;
}
