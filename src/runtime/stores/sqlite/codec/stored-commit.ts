import type { StoredBooking } from "./stored-booking.ts";
import type { AgentId, Commit, EventType, Failure, SessionChange, TaskId } from "../../../../kernel/index.ts";

/**
 * Content that a step of the same commit holds already: the step's index, and which part of its value if it is not all that such events
 * repeat. A message is recorded as the value of its model call and told in an event; it is stored once.
 */
export type Reference = readonly [step: number, ...members: (string | number)[]];

/** With its digest worked out. The root's steps do not name their task; only one that failed has a failure. */
export type StoredStep = readonly [
  address: string,
  kind: string,
  name: string,
  digest: string,
  value: unknown,
  taskId?: TaskId,
  failure?: Failure,
];

/** The root's do not name their task. */
export type StoredOpening = readonly [address: string, seq: number, taskId?: TaskId];

export type StoredEvent = BriefEvent | PlainEvent;

/** The stored form of a frequent event: its type and values, without property names. */
export type BriefEvent = readonly [type: EventType, ...values: unknown[]];

export interface PlainEvent {
  readonly type: EventType;
  /** Left out where there is nothing but what it refers to. */
  readonly data?: object | undefined;
  readonly from?: Reference;
}

/** Whose the events after it are and when they were: what is not as before. The first follow on from the root task and the commit. */
export interface StoredHeading {
  readonly taskId?: TaskId;
  readonly agentId?: AgentId;
  readonly parentId?: TaskId | null;
  /** Milliseconds before the commit. */
  readonly ago?: number;
}

/**
 * A batch of entries, which are in their session, and named here: the first, and how many, unless it is one. The session and the agent are
 * left out where they are the run's; so is `pending`.
 */
export type StoredChange =
  | (Partial<Omit<SessionAppend, "type" | "entry" | "atLeaf">> &
      StoredEntryId & { readonly count?: number; readonly type?: undefined })
  | Exclude<SessionChange, SessionAppend>;

/** `own`: what follows the id of the run and a slash. */
type StoredEntryId = { readonly own: string } | { readonly entryId: string };

type SessionAppend = Extract<SessionChange, { readonly type: "append" }>;

/** Nothing in it is an empty list. */
export interface StoredCommit extends Omit<
  { readonly [Key in keyof Commit]: Commit[Key] | undefined },
  "number" | "at" | "opens" | "steps" | "events" | "ledger" | "sessions"
> {
  readonly opens?: readonly StoredOpening[] | undefined;
  readonly steps?: readonly StoredStep[] | undefined;
  readonly ledger?: readonly StoredBooking[] | undefined;
  readonly events?: readonly (StoredEvent | StoredHeading)[] | undefined;
  readonly sessions?: readonly StoredChange[] | undefined;
}
