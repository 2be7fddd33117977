import type { CancelSignal } from "../base/cancel-signal.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Model } from "../messages/model.ts";
import type { SessionEntry } from "../sessions/session-entry.ts";

/** How much of the model's context window a session occupies. */
export interface ContextUsage {
  /** Number of tokens that the session occupies. */
  readonly tokens: number;
  /** Size of the model's context window, in tokens. */
  readonly contextWindow: number;
}

/** The part of a session that an extension may read and write. */
export interface SessionView {
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Returns the id of the session's current leaf. `null` for an empty session. */
  leafId(): string | null;
  /** Returns the visible entries of the session path, root first. */
  path(): Promise<readonly SessionEntry[]>;
  /** Appends an entry with data of the extension and returns its id. The model does not see the entry. */
  append(entry: {
    readonly type: "custom";
    readonly customType: string;
    readonly data: JsonValue;
  }): Promise<string>;
}

/** The models that an extension can select by name. */
export interface ModelRegistry {
  /** Returns the names of all registered models. */
  list(): readonly string[];
  /** Returns the model with the name `provider/id`, or `undefined` if there is none. */
  find(name: string): Model | undefined;
}

/**
 * The running agent, as far as an extension may access it. Every extension handler receives one. Navigation and
 * `runCompaction` require an idle session and otherwise throw `agent_busy` (S5).
 */
export interface ExtensionContext {
  /** Working directory of the agent. */
  readonly cwd: string;
  /** The current session. */
  readonly sessionManager: SessionView;
  /** The current model of the agent. */
  readonly model: Model;
  /** The models that the agent can switch to. */
  readonly modelRegistry: ModelRegistry;
  /** Aborted when the current invocation is cancelled. */
  readonly signal: CancelSignal;
  /** Whether no invocation or compaction is running in the session. */
  isIdle(): boolean;
  /** Whether steering or follow-up input is waiting. */
  hasPendingMessages(): boolean;
  /** Cancels the current invocation. */
  abort(reason?: string): void;
  /** Ends the process after the current invocation has settled. */
  shutdown(): void;
  /** Returns how much of the context window the session occupies, or `undefined` if that is unknown. */
  getContextUsage(): ContextUsage | undefined;
  /** Returns the current system prompt. */
  getSystemPrompt(): string;
  /** Requests a compaction at the next durable point. */
  compact(instructions?: string): void;
  /** Compacts the session now. Returns `false` if there was nothing to compact. */
  runCompaction(instructions?: string): Promise<boolean>;
  /** Reads prompts, skills, guardrails and extensions from their files again. */
  reload(): Promise<void>;
  /** Resolves when the session is idle. */
  waitForIdle(): Promise<void>;
  /** Creates a new session, switches to it and returns its id. */
  newSession(): Promise<SessionId>;
  /** Creates a session that continues from this entry, switches to it and returns its id. */
  fork(entryId: string): Promise<SessionId>;
  /** Switches to an existing session. */
  switchSession(sessionId: SessionId): Promise<void>;
}
