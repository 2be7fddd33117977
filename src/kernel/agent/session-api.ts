import type { Failure } from "../base/fault.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { ThinkingLevel } from "../messages/model.ts";
import type { RunSummary } from "../run/run-summary.ts";
import type { SessionFileChanges } from "../sessions/file-change.ts";
import type { SessionEntry } from "../sessions/session-entry.ts";
import type {
  PathQuery,
  SessionOwner,
  SessionPage,
  SessionQuery,
  SessionSummary,
} from "../sessions/sessions.ts";
import type { AgentPhase } from "../sessions/session-settings.ts";
import type { RunHandle } from "./run-handle.ts";

/** Selects conversations. A conversation must match all given fields. */
export interface SessionFilter extends Pick<SessionQuery, "tenantId" | "userId" | "limit" | "after"> {
  /** Id of the agent that the session belongs to. */
  readonly agentId?: string;
}

/** Options of `RuntimeSessions.list`. */
export interface SessionListOptions extends SessionFilter, Pick<SessionQuery, "text"> {}

/** Options of `RuntimeSessions.path`. */
export interface SessionPathOptions extends Pick<PathQuery, "leafId" | "from" | "limit"> {}

/** Options of `RuntimeSessions.entries`. */
export interface SessionEntriesOptions {
  /** Maximum number of entries per page. Default: 200. */
  readonly limit?: number;
  /** The `next` value of the previous page. If absent, the first page is returned. */
  readonly after?: string;
}

/** One page of the entries of a session. */
export interface SessionEntryPage {
  /** The entries of all branches, in the order in which they were appended. */
  readonly entries: readonly SessionEntry[];
  /** Position of the next page, to pass as `after`. `null` on the last page. */
  readonly next: string | null;
}

/** One entry in the tree of a session. */
export interface SessionNode {
  /** The entry. Entries of type `leaf`, `label` and `session_info` are not nodes. */
  readonly entry: SessionEntry;
  /** Label of the entry. `null` if it has none. */
  readonly label: string | null;
  /** Whether the entry is on the path to the current entry. */
  readonly isOnPath: boolean;
  /** Ids of the entries that follow this one, in the order of appending. */
  readonly children: readonly string[];
}

/** A session as a tree. The nodes are a list, because a conversation may be deeper than JSON can be nested. */
export interface SessionTree {
  /** Id of the entry after which the conversation continues. `null` if it continues before the first entry. */
  readonly leafId: string | null;
  /** Ids of the entries without a parent. */
  readonly roots: readonly string[];
  /** All entries, in the order of appending. */
  readonly nodes: readonly SessionNode[];
}

/** Options of `RuntimeSessions.move`. */
export interface MoveOptions {
  /**
   * Summary of the branch that the conversation leaves. The model sees it after the entry at which the conversation
   * continues.
   */
  readonly summary?: string;
}

/** Options of `RuntimeSessions.fork`. */
export interface ForkSessionOptions {
  /** Last entry of the path that is copied. Default: the current entry. */
  readonly entryId?: string;
  /** Id of the new session, in the form that `parseSessionId` accepts. Default: a new id. */
  readonly sessionId?: string;
  /** Name of the new session. Default: no name. */
  readonly name?: string;
}

/** A conversation that was written elsewhere, such as in a file of another program. */
export interface ImportedSession extends Partial<SessionOwner> {
  /** Id of the agent that continues the conversation. It need not be registered with this runtime. */
  readonly agentId: string;
  /**
   * The entries in the order in which they were appended, so that an entry comes after its parent. They belong to
   * no run. The conversation continues after the last entry, or at the entry that an entry of type `leaf` at the
   * end names.
   */
  readonly entries: readonly SessionEntry[];
  /** Id of the new session, in the form that `parseSessionId` accepts. Default: a new id. */
  readonly sessionId?: string;
}

/** An entry that an application adds to a session. The model sees a `message` and does not see `data`. */
export type CustomEntry =
  | { readonly customType: string; readonly data: JsonValue }
  | { readonly customType: string; readonly message: ChatMessage };

/** A summary that replaces the beginning of a session path in what the model sees. */
export interface SessionCompaction {
  /** The summary. */
  readonly summary: string;
  /** The first entry of the path that the model still sees. */
  readonly firstKeptEntryId: string;
  /** Tokens of the context before the compaction. Default: the estimate of `contextUsage`. */
  readonly tokensBefore?: number;
}

/** Options of a run that compacts a session. */
export interface CompactSessionOptions {
  /** What the summary has to consider, in addition to the usual instructions. */
  readonly instructions?: string;
}

/** Options of `RuntimeSessions.search`. */
export interface SearchOptions extends SessionFilter {
  /** Searches only this session. */
  readonly sessionId?: string;
}

/** An entry that contains the text of a search. */
export interface SearchHit {
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the entry. */
  readonly entryId: string;
  /** Time of the entry, in epoch milliseconds. */
  readonly at: number;
  /** The text around the first match. */
  readonly excerpt: string;
}

/** One page of the results of a search. */
export interface SearchPage {
  /** The entries, by session, newest session first. */
  readonly hits: readonly SearchHit[];
  /** Position of the next page, to pass as `after`. `null` on the last page. */
  readonly next: string | null;
}

/** How much of the model's window the conversation fills. */
export interface SessionUsage {
  /** Tokens of the context: the sum of `reported` and `estimated`. */
  readonly tokens: number;
  /** Input and output tokens of the last model call of the path, as the provider reported them. */
  readonly reported: number;
  /** Estimated tokens of the messages that came after the last call with reported tokens. */
  readonly estimated: number;
  /** Name of the model, `provider/id`. `null` if it is unknown. */
  readonly model: string | null;
  /** Size of the model's context window in tokens. `null` if it is unknown. */
  readonly contextWindow: number | null;
  /** `tokens` divided by `contextWindow`. `null` if the window is unknown. */
  readonly share: number | null;
}

/**
 * An input whose run failed. It becomes part of the conversation only when its run is resumed or the input is sent
 * again.
 */
export interface UnsentInput {
  /** The failed run. */
  readonly run: RunSummary;
  /** The input of the run. */
  readonly input: JsonValue;
  /** Why the run failed. */
  readonly error: Failure | null;
}

/**
 * The conversations of a runtime's store. A conversation is a tree of entries; its path leads from the first entry
 * to the current entry. Every method throws `not_found` if the session does not exist, except `list`, `get`,
 * `search`, `phase` and `delete`. S5: `move`, `fork` without an `entryId`, `switch`, `compact` and `delete` need an
 * idle session. If a run of the session is unfinished, they throw `agent_busy`, which names the run.
 *
 * If the agent of the session is registered with this runtime, its extensions can refuse `move`, `fork` and
 * `switch`. They handle `session_before_tree`, `session_before_fork` or `session_before_switch` before anything
 * changes. If one refuses, the method throws `permission_denied`.
 */
export interface RuntimeSessions {
  /** Returns conversations, newest first, without the sessions of workers within a conversation. */
  list(options?: SessionListOptions): Promise<SessionPage>;
  /** Returns one session. `undefined` if it does not exist. */
  get(sessionId: string): Promise<SessionSummary | undefined>;
  /** Returns the entries from the root to the current entry. Throws `not_found` if the given entry is not an entry of the session. */
  path(sessionId: string, options?: SessionPathOptions): Promise<readonly SessionEntry[]>;
  /** Returns the entries of all branches, page by page. */
  entries(sessionId: string, options?: SessionEntriesOptions): Promise<SessionEntryPage>;
  /** Returns the whole session as a tree. */
  tree(sessionId: string): Promise<SessionTree>;
  /** Sets the name of a session, at most 200 characters. */
  name(sessionId: string, name: string): Promise<void>;
  /** Sets the label of an entry, at most 200 characters. `null` removes it. */
  label(sessionId: string, entryId: string, label: string | null): Promise<void>;
  /** Continues the conversation after another entry; `null` starts a new branch. Returns the id of the current entry. */
  move(sessionId: string, entryId: string | null, options?: MoveOptions): Promise<string | null>;
  /** Copies a path to a new session of the same owner and returns the id of that session. */
  fork(sessionId: string, options?: ForkSessionOptions): Promise<SessionId>;
  /**
   * Stores a conversation as a new session, all of it or nothing, and returns its id. Throws `already_exists` if the session
   * exists, and `invalid_argument` for an entry that a session cannot hold.
   */
  import(session: ImportedSession): Promise<SessionId>;
  /**
   * Leaves a session and returns the id of the session in which to continue. This is `targetId`, which must exist,
   * or a new id if `targetId` is `null`. The call stores nothing: a new session is stored with its first entry.
   */
  switch(sessionId: string, targetId: string | null): Promise<SessionId>;
  /** Appends an entry to the path and returns its id. */
  append(sessionId: string, entry: CustomEntry): Promise<string>;
  /**
   * Appends a summary that replaces the entries before `firstKeptEntryId` in the model's view. Returns the entry's id.
   * Rejects with `not_found` if the conversation continues during the call.
   */
  compact(sessionId: string, compaction: SessionCompaction): Promise<string>;
  /**
   * Starts a run of kind `compaction`, in which the agent of the session writes the summary. The run belongs to the
   * owner of the session. The agent must be registered with this runtime. The output of the run has the `entryId`,
   * or `skipped` with the reason why no entry was written.
   */
  compact(sessionId: string, options?: CompactSessionOptions): Promise<RunHandle>;
  /** Sets the model of the following invocations, as `provider/id`. It replaces the main model of the agent. */
  setModel(sessionId: string, model: string): Promise<void>;
  /** Sets the thinking level of the following invocations. */
  setThinkingLevel(sessionId: string, level: ThinkingLevel): Promise<void>;
  /**
   * Returns entries that contain a text; upper and lower case are equal. It reads the matching sessions one after
   * the other.
   */
  search(text: string, options?: SearchOptions): Promise<SearchPage>;
  /** Returns how much of the model's context window the conversation fills. */
  contextUsage(sessionId: string): Promise<SessionUsage>;
  /**
   * Returns the files that the tools `write` and `edit` changed after an entry, in all branches of the session and in the
   * tasks of its runs, with their previous contents. Reads the journals of those runs. Throws `not_found` if the entry is
   * not in the session.
   */
  fileChanges(sessionId: string, entryId: string): Promise<SessionFileChanges>;
  /** Returns the inputs of failed runs that no one has sent again, oldest first. */
  unsent(sessionId: string): Promise<readonly UnsentInput[]>;
  /**
   * Submits the input of a failed run again, in the same session and for the same user. A repeated call returns the same
   * run. The agent must be registered with this runtime.
   */
  resend(runId: string): Promise<RunHandle>;
  /** Returns what an agent is doing in a session, whichever process executes it. `idle` for an unknown session. */
  phase(sessionId: string, agentId: string): Promise<AgentPhase>;
  /**
   * Deletes a session and the sessions of workers within it. Does nothing if the session does not exist. The runs
   * of the session are kept until retention or `Runtime.collect` deletes them.
   */
  delete(sessionId: string): Promise<void>;
}
