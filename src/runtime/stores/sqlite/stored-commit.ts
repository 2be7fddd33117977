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
 * Content that a step of the same commit holds already: the step's index, and which members of its value. A message is recorded as the
 * value of its model call and told in an event; it is stored once.
 */
export type Reference = readonly [step: number, ...members: string[]];

/** A step with its digest worked out. The root's steps do not name their task. */
export interface StoredStep {
  readonly taskId?: TaskId;
  readonly address: string;
  readonly kind: string;
  readonly name: string;
  readonly digest: string;
  readonly value?: JsonValue;
  readonly failure?: Failure;
}

/** Who and when are left out where they are as in the event before; the first starts from the root task and the commit. */
export interface StoredEvent {
  readonly type: EventType;
  readonly taskId?: TaskId;
  readonly agentId?: AgentId;
  readonly parentId?: TaskId | null;
  /** Milliseconds before the commit. */
  readonly ago?: number;
  readonly from?: Reference;
  readonly data: object;
}

/** An entry is in its session, and named here. The session and the agent are left out where they are the run's; so is `pending`. */
export type StoredChange =
  | (Pick<SessionAppend, "type"> &
      Partial<Omit<SessionAppend, "type" | "entry" | "atLeaf">> & { readonly entryId: string })
  | Exclude<SessionChange, SessionAppend>;

type SessionAppend = Extract<SessionChange, { readonly type: "append" }>;

export interface StoredCommit extends Omit<Commit, "number" | "at" | "steps" | "events" | "sessions"> {
  readonly steps?: readonly StoredStep[];
  readonly events?: readonly StoredEvent[];
  readonly sessions?: readonly StoredChange[];
}
