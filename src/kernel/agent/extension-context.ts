import type { CancelSignal } from "../base/cancel-signal.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Model } from "../messages/model.ts";
import type { SessionEntry } from "../sessions/session-entry.ts";

export interface ContextUsage {
  readonly tokens: number;
  readonly contextWindow: number;
}

/** The session an extension is in, as far as it may see and write. */
export interface SessionView {
  readonly sessionId: SessionId;
  leafId(): string | null;
  /** The visible path, root first. */
  path(): Promise<readonly SessionEntry[]>;
  append(entry: {
    readonly type: "custom";
    readonly customType: string;
    readonly data: JsonValue;
  }): Promise<string>;
}

export interface ModelRegistry {
  list(): readonly string[];
  /** `provider/id`. */
  find(name: string): Model | undefined;
}

/**
 * What every extension handler is handed: the running agent, as far as an extension may touch it. Navigation and
 * `runCompaction` need an idle session and throw `agent_busy` otherwise (S5).
 */
export interface ExtensionContext {
  readonly cwd: string;
  readonly sessionManager: SessionView;
  readonly model: Model;
  readonly modelRegistry: ModelRegistry;
  readonly signal: CancelSignal;
  isIdle(): boolean;
  hasPendingMessages(): boolean;
  /** Cancels the invocation under way. */
  abort(reason?: string): void;
  /** Ends the process once the invocation under way has settled. */
  shutdown(): void;
  getContextUsage(): ContextUsage | undefined;
  getSystemPrompt(): string;
  /** Asks for compaction at the next durable point. */
  compact(instructions?: string): void;
  /** Compacts now. False: there was nothing to compact. */
  runCompaction(instructions?: string): Promise<boolean>;
  /** Reads prompts, skills, guardrails and extensions from their files again. */
  reload(): Promise<void>;
  waitForIdle(): Promise<void>;
  newSession(): Promise<SessionId>;
  fork(entryId: string): Promise<SessionId>;
  switchSession(sessionId: SessionId): Promise<void>;
}
