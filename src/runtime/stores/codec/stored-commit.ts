import type { StoredBooking } from "./stored-booking.ts";
import type { AgentId, Commit, EventType, Failure, SessionChange, TaskId } from "../../../kernel/index.ts";

/**
 * A reference to content that a step of the same commit contains, or for `run_start` a task change. It consists of
 * the index of that step or change, and of the members, unless the event repeats all members that such events
 * usually repeat. For example, a message is part of its model call's value and of the event `message_end`, but the
 * row stores it only once.
 */
export type Reference = readonly [holder: number, ...members: (string | number)[]];

/**
 * The stored form of a step with its digest. A step of the root task has no `taskId`; only a failed step has a
 * `failure`.
 */
export type StoredStep = readonly [
  address: string,
  kind: string,
  name: string,
  digest: string,
  value: unknown,
  taskId?: TaskId,
  failure?: Failure,
];

/** The stored form of the start of a step. A step of the root task has no `taskId`. */
export type StoredOpening = readonly [address: string, seq: number, taskId?: TaskId];

export type StoredEvent = BriefEvent | PlainEvent;

/** The stored form of a frequent event: its type and values, without member names. */
export type BriefEvent = readonly [type: EventType, ...values: unknown[]];

/** An event without the members that follow from its heading and from its position in the commit. */
export interface PlainEvent {
  readonly type: EventType;
  /** The data without the content to which `from` refers. Absent if nothing remains. */
  readonly data?: object | undefined;
  readonly from?: Reference;
}

/**
 * The members of the following events that differ from those of the previous event. For the first event, they
 * differ from the root task, the agent of the run and the time of the commit.
 */
export interface StoredHeading {
  readonly taskId?: TaskId;
  readonly agentId?: AgentId;
  readonly parentId?: TaskId | null;
  /** Milliseconds before the commit. */
  readonly ago?: number;
}

/**
 * The stored form of a session change. A batch of entries is named by its first entry and the number of entries
 * (default: 1); the `entries` table contains them. Session and agent are absent if they are the run's, and the
 * visibility is absent if it is `pending`.
 */
export type StoredChange =
  | (Partial<Omit<SessionAppend, "type" | "entry" | "atLeaf">> &
      StoredEntryId & { readonly count?: number; readonly type?: undefined })
  | Exclude<SessionChange, SessionAppend>;

/** The stored id of an entry. `own` is the part of the id after the run's id and a slash. */
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
