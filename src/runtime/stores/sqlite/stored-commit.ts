import type { StoredBooking } from "./stored-booking.ts";
import type {
  AgentId,
  Commit,
  EventType,
  Failure,
  JsonValue,
  SessionChange,
  TaskId,
} from "../../../kernel/index.ts";

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
  value: JsonValue,
  taskId?: TaskId,
  failure?: Failure,
];

/** The root's do not name their task. */
export type StoredOpening = readonly [address: string, seq: number, taskId?: TaskId];

/** Who and when are left out where they are as in the event before; the first starts from the root task and the commit. */
export interface StoredEvent {
  readonly type: EventType;
  readonly taskId?: TaskId;
  readonly agentId?: AgentId;
  readonly parentId?: TaskId | null;
  /** Milliseconds before the commit. */
  readonly ago?: number;
  readonly from?: Reference;
  /** Left out where there is nothing but what it refers to. */
  readonly data?: object;
}

/** An entry is in its session, and named here. The session and the agent are left out where they are the run's; so is `pending`. */
export type StoredChange =
  | (Partial<Omit<SessionAppend, "type" | "entry" | "atLeaf">> &
      StoredEntryId & { readonly type?: undefined })
  | Exclude<SessionChange, SessionAppend>;

/** `own`: what follows the id of the run and a slash. */
type StoredEntryId = { readonly own: string } | { readonly entryId: string };

type SessionAppend = Extract<SessionChange, { readonly type: "append" }>;

export interface StoredCommit extends Omit<
  Commit,
  "number" | "at" | "opens" | "steps" | "events" | "ledger" | "sessions"
> {
  readonly opens?: readonly StoredOpening[];
  readonly steps?: readonly StoredStep[];
  readonly ledger?: readonly StoredBooking[];
  readonly events?: readonly StoredEvent[];
  readonly sessions?: readonly StoredChange[];
}
