import type { CancelSignal } from "../base/cancel-signal.ts";
import type { Clock } from "../base/sources.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { Failure } from "../base/fault.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Model } from "../messages/model.ts";
import type { SessionEntry } from "../sessions/session-entry.ts";
import type { RuntimeSessions } from "./session-api.ts";

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
  /** Returns the id of the session's current entry. `null` for an empty session. */
  leafId(): Promise<string | null>;
  /** Returns the visible entries of the session path, root first. Empty for a session without entries. */
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
  /** Returns the names of the agent's models and of the models that its extensions registered. */
  list(): readonly string[];
  /** Returns the model with the name `provider/id`, or `undefined` if there is none. */
  find(name: string): Model | undefined;
}

/** How urgent a notice of `ui.notify` is. */
export type NoticeLevel = "info" | "warning" | "error";

/** What an event handler may show to a person. */
export interface ExtensionNotices {
  /**
   * Shows a message to a person. In a run it is the event `extension_notice` of the run's log, which every surface
   * reads. Outside a run it goes to the surface of the process; throws `unsupported` if there is none. Default level:
   * `info`.
   */
  notify(message: string, level?: NoticeLevel): void;
}

/**
 * Asks questions to a person. A question is durable: it appears in `Runtime.approvals`, survives a restart of the
 * process and is answered with `RunHandle.approve`. The time limit of the handler does not run while a question is
 * open. A handler asks one question at a time; if its step is repeated after a crash, it must ask the same
 * questions in the same order and receives the recorded answers.
 */
export interface ExtensionUi extends ExtensionNotices {
  /** Asks a person to agree. Returns `true` if the decision of the person is `approved`, otherwise `false`. */
  confirm(message: string): Promise<boolean>;
  /**
   * Asks a person to choose. Returns the choice if the person approves, and `undefined` for any other decision. The
   * choice is the `input` of the decision. An answer that is not one of the choices is refused, and the person is
   * asked again.
   */
  select<Choice extends string>(message: string, choices: readonly Choice[]): Promise<Choice | undefined>;
  /**
   * Asks a person for a text. Returns the text if the person approves, and `undefined` for any other decision. The
   * text is the `input` of the decision. An answer without a text is refused, and the person is asked again.
   */
  input(message: string, options?: { readonly placeholder?: string }): Promise<string | undefined>;
}

/**
 * The running agent, as far as an extension may access it. Every extension handler receives one. It is valid until the
 * handler returns or exceeds its time limit; later calls throw `closed`.
 *
 * S5: `runCompaction`, `waitForIdle`, `newSession`, `fork` and `switchSession` throw `agent_busy` inside an unfinished
 * invocation of the same session, because they would wait for themselves.
 */
export interface ExtensionContext {
  /** Working directory of the process. */
  readonly cwd: string;
  /** The current session. */
  readonly sessionManager: SessionView;
  /** The main model of the agent. `undefined` if the agent has none. */
  readonly model: Model | undefined;
  /** The models that the agent knows by name. */
  readonly modelRegistry: ModelRegistry;
  /** Aborted when the current invocation is cancelled or the handler exceeds its time limit. */
  readonly signal: CancelSignal;
  /** Questions and notices for a person. */
  readonly ui: ExtensionUi;
  /** Whether no invocation or compaction is running in the session, in any process. */
  isIdle(): Promise<boolean>;
  /** Whether steering or follow-up input is waiting that the invocation has not read. */
  hasPendingMessages(): Promise<boolean>;
  /** Cancels the current invocation. Throws `unsupported` outside a run. Default reason: the name of the extension. */
  abort(reason?: string): void;
  /** Asks the surface to end the process after the invocation has settled. Throws `unsupported` without a surface. */
  shutdown(): void;
  /** Returns how much of the context window the session occupies, or `undefined` if the window is unknown. */
  getContextUsage(): Promise<ContextUsage | undefined>;
  /** Returns the system prompt that this process built last for the session. Empty before the first one is built. */
  getSystemPrompt(): string;
  /**
   * Requests a compaction of the session after the current invocation. Throws `unsupported` outside an invocation; use
   * `runCompaction` there.
   */
  compact(instructions?: string): void;
  /** Compacts the session now. Returns `false` if there was nothing to compact. */
  runCompaction(instructions?: string): Promise<boolean>;
  /** Asks the workspace to read its files again. Throws `unsupported` without a workspace. */
  reload(): Promise<void>;
  /** Resolves when no invocation or compaction is running in the session. */
  waitForIdle(): Promise<void>;
  /** Switches to a new session and returns its id. The session is stored with its first entry. */
  newSession(): Promise<SessionId>;
  /** Creates a session that continues from this entry, switches to it and returns its id. */
  fork(entryId: string): Promise<SessionId>;
  /** Switches to an existing session. */
  switchSession(sessionId: string): Promise<void>;
}

/**
 * What the handler of a committed event receives. The handler cannot ask a person, because it runs beside the
 * invocation, which does not wait for it.
 */
export interface ExtensionEventContext extends Omit<ExtensionContext, "ui"> {
  /** Notices for a person. */
  readonly ui: ExtensionNotices;
}

/** An error of an extension, as `Runtime.extensionErrors` lists it. */
export interface ExtensionError {
  /** Name of the extension. */
  readonly extension: string;
  /** What failed: the type of the event whose handler failed, `setup`, or `command` with the name of the command. */
  readonly event: string;
  /** The error. */
  readonly failure: Failure;
  /** Time of the error, in epoch milliseconds. */
  readonly at: number;
  /** Id of the agent that has the extension. */
  readonly agentId: AgentId;
  /** Id of the run in which the error happened. `null` outside a run. */
  readonly runId: RunId | null;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the tenant. `null` without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. `null` without a user. */
  readonly userId: string | null;
}

/** A message of `ui.notify` that belongs to no run. */
export interface ExtensionNotice {
  /** Name of the extension. */
  readonly extension: string;
  /** The message. */
  readonly message: string;
  /** How urgent the message is. */
  readonly level: NoticeLevel;
  /** Id of the session. */
  readonly sessionId: SessionId;
}

/** The part of a process that shows sessions to a person, such as a chat. Pass it to `openRuntime`. */
export interface ExtensionSurface {
  /** Shows a notice that belongs to no run. If absent, `ui.notify` throws `unsupported` outside a run. */
  notify?(notice: ExtensionNotice): void;
  /**
   * Shows an error of an extension that belongs to no run, such as the error of a slash command. The errors of a
   * run are events `extension_error` of its log. `Runtime.extensionErrors` lists both.
   */
  reportError?(error: ExtensionError): void;
  /**
   * Shows another session and continues in it. If absent, handlers of committed events cannot navigate
   * (`unsupported`).
   */
  showSession?(sessionId: SessionId, from: SessionId): void;
  /** Ends the process after running invocations have settled. If absent, `shutdown` throws `unsupported`. */
  shutdown?(): void;
  /** Reads prompts, skills, guardrails and extensions from their files again. If absent, `reload` throws `unsupported`. */
  reload?(): Promise<void>;
}

/** What the runtime provides to the extensions of an agent in a session. These calls are not journaled. */
export interface ExtensionPort {
  /** The runtime's clock. */
  readonly clock: Clock;
  /** Working directory of the process. */
  readonly cwd: string;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the run. `null` outside a run. */
  readonly runId: RunId | null;
  /** The conversations that the tenant and the user may see. */
  readonly sessions: RuntimeSessions;
  /** The surface of this process. `null` if there is none. */
  readonly surface: ExtensionSurface | null;
  /**
   * Creates an abort signal of the platform. It is aborted with the task and by `abort`; outside a task only by
   * `abort`.
   */
  newSignal(): { readonly signal: CancelSignal; abort(reason: unknown): void };
  /** Returns the model with the name `provider/id`, if the runtime can resolve it. */
  findModel(name: string): Model | undefined;
  /** Cancels the run. Does nothing outside a run. */
  cancel(reason: string): void;
  /** Whether input is waiting that the run has not read. `false` outside a run. */
  hasPendingMessages(): Promise<boolean>;
  /** Resolves when no run in the session is unfinished. */
  untilIdle(): Promise<void>;
  /**
   * Adds an event to the log of the run at once. E4: unlike `RunContext.emitEvent`, it also adds the event during a
   * replay. It is for things that happen in this process and not in the code of the task. It does nothing outside a
   * run, or after the process has dropped the task.
   */
  emitEvent(event: EmittableEvent): void;
  /** Adds an error to `Runtime.extensionErrors`. */
  reportError(error: Pick<ExtensionError, "extension" | "event" | "failure" | "agentId">): void;
}
