import {
  parseSessionId,
  Transcript,
  type AgentContext,
  type AgentId,
  type AgentSession,
  type ChatMessage,
  type HistoryKey,
  type SessionId,
} from "../../kernel/index.ts";
import type { PromptWindow } from "./compaction/prompt-window.ts";

export interface PromptHistoryOptions {
  readonly agentId: AgentId;
  /** The source of the messages: a `HistoryProvider`, or the sessions of an invocation. */
  readonly history: {
    read(key: HistoryKey): Transcript | Promise<Transcript | readonly ChatMessage[]>;
  };
  /** Creates the window that shortens a growing session. If absent, the model sees the whole session (F1). */
  readonly window?: (() => PromptWindow) | undefined;
  /** Creates the window of a session that exceeded the context window. If absent, windows are not shortened. */
  readonly overflowWindow?: (() => PromptWindow) | undefined;
}

/** The standard `AgentContext`: a stored history and a strategy that shortens what the model sees. */
export class PromptHistory implements AgentContext {
  readonly agentId: AgentId;
  readonly #options: PromptHistoryOptions;
  #windows: Map<SessionId, PromptWindow> | undefined;

  constructor(options: PromptHistoryOptions) {
    this.agentId = options.agentId;
    this.#options = options;
  }

  getPromptWindow(sessionId: SessionId): Transcript | Promise<Transcript> {
    const { agentId } = this;
    const { history, window } = this.#options;
    const said = history.read({ agentId, sessionId });
    if (window === undefined && this.#windows === undefined && said instanceof Transcript) return said;
    return this.#shown(sessionId, said);
  }

  async shorten(sessionId: SessionId): Promise<Transcript | null> {
    const { agentId } = this;
    const { history, window, overflowWindow } = this.#options;
    const open = window ?? overflowWindow;
    if (open === undefined) return null;
    const said = await history.read({ agentId, sessionId });
    return this.#window(sessionId, open).shorten(said instanceof Transcript ? said : Transcript.of(said));
  }

  #window(sessionId: SessionId, open: () => PromptWindow): PromptWindow {
    this.#windows ??= new Map();
    let window = this.#windows.get(sessionId);
    if (window === undefined) this.#windows.set(sessionId, (window = open()));
    return window;
  }

  async #shown(
    sessionId: SessionId,
    said: Transcript | Promise<Transcript | readonly ChatMessage[]>,
  ): Promise<Transcript> {
    const read = await said;
    const whole = read instanceof Transcript ? read : Transcript.of(read);
    const { window: open } = this.#options;
    const window = open === undefined ? this.#windows?.get(sessionId) : this.#window(sessionId, open);
    return window === undefined ? whole : window.of(whole);
  }
}

/** The sessions of one invocation: the agent's own session, and one for each role with a separate session. */
export class OpenSessions {
  /** The agent's own session. Most invocations have no other. */
  #own: AgentSession | undefined;
  #others: Map<SessionId, AgentSession> | undefined;

  add(session: AgentSession): AgentSession {
    if (this.#own === undefined || this.#own.id === session.id) this.#own = session;
    else (this.#others ??= new Map()).set(session.id, session);
    return session;
  }

  /** Returns an id that no session of this invocation has: the name, if necessary with a number. */
  free(name: string): SessionId {
    let id = parseSessionId(name);
    for (let number = 2; this.#find(id) !== undefined; number++) id = parseSessionId(`${name}_${number}`);
    return id;
  }

  read({ sessionId }: HistoryKey): Transcript {
    return this.#find(sessionId)?.messages ?? Transcript.empty;
  }

  #find(id: SessionId): AgentSession | undefined {
    return this.#own?.id === id ? this.#own : this.#others?.get(id);
  }
}
