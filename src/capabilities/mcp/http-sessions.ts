import type { McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Clock } from "../../kernel/index.ts";

/** One session of a host. */
export interface Session {
  readonly server: McpServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** User who opened the session. A request of another user with the same session id is refused. */
  readonly owner: string | undefined;
  /** User or network that opened the session, for the limit per caller. `undefined` if it is not known. */
  readonly caller: string | undefined;
}

/** Limits of `HttpSessions`. */
export interface SessionLimits {
  readonly clock: Clock;
  /** Milliseconds without a request after which a session is closed. */
  readonly idleMs: number;
  /** Maximum number of sessions at the same time. */
  readonly max: number;
  /** Maximum number of sessions of one caller at the same time. */
  readonly maxPerCaller: number;
  /** Receives an error of closing a session. */
  readonly onError: (error: unknown) => void;
}

interface Use {
  usedAt: number;
  /** Number of requests that are being answered. */
  open: number;
}

/**
 * The open sessions. Their number is limited, in all and per caller. If a limit is reached, a new session closes
 * the session that has been idle longest. At the limit per caller, it is one of the same caller; at the total
 * limit, one of the caller with the most sessions. So one caller cannot prevent others from opening sessions. A
 * session whose request is being answered is never closed.
 */
export class HttpSessions {
  readonly #limits: SessionLimits;
  /** The sessions with their use, least recently used first. */
  readonly #sessions = new Map<Session, Use>();
  readonly #byId = new Map<string, Session>();
  #cancelTimer: (() => void) | undefined;

  constructor(limits: SessionLimits) {
    this.#limits = limits;
  }

  /** Number of sessions, including those that are being started. */
  get size(): number {
    return this.#sessions.size;
  }

  find(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  /**
   * Makes room for a session of a caller, if necessary by closing an idle one. Returns `caller_full` if all sessions of
   * the caller are in use, and `full` if all sessions of all callers are.
   */
  makeRoom(caller: string | undefined): "room" | "caller_full" | "full" {
    this.#closeIdle();
    const { max, maxPerCaller } = this.#limits;
    const isCaller = (session: Session): boolean => session.caller === caller;
    if (caller !== undefined && this.#count(isCaller) >= maxPerCaller && !this.#closeOldest(isCaller))
      return "caller_full";
    if (this.#sessions.size < max) return "room";
    return this.#callersBySize().some((each) => this.#closeOldest((session) => session.caller === each))
      ? "room"
      : "full";
  }

  /** Adds a session that is being started. It counts at once, and gets its id with `name()`. */
  add(session: Session): void {
    this.#sessions.set(session, { usedAt: this.#limits.clock.now(), open: 0 });
    this.#schedule();
  }

  /** Makes a session known under its id. */
  name(session: Session, id: string): void {
    this.#byId.set(id, session);
  }

  /** Answers a request in a session, which stays open until the response has been sent. */
  async during(session: Session, answer: () => Promise<Response>): Promise<Response> {
    const done = this.#begin(session);
    try {
      const response = await answer();
      if (response.body !== null) return withEnd(response, response.body, done);
      done();
      return response;
    } catch (error) {
      done();
      throw error;
    }
  }

  /** Removes a session without closing it. */
  remove(session: Session): void {
    this.#sessions.delete(session);
    const { sessionId } = session.transport;
    if (sessionId !== undefined) this.#byId.delete(sessionId);
  }

  /** Closes all sessions. */
  async close(): Promise<void> {
    this.#cancelTimer?.();
    const sessions = [...this.#sessions.keys()];
    for (const session of sessions) this.remove(session);
    await Promise.all(sessions.map(({ server }) => server.close()));
  }

  #begin(session: Session): () => void {
    const use = this.#use(session);
    if (use !== undefined) use.open++;
    let isDone = false;
    return () => {
      if (isDone) return;
      isDone = true;
      const still = this.#use(session);
      if (still !== undefined) still.open--;
    };
  }

  /** Marks a session as the most recently used. */
  #use(session: Session): Use | undefined {
    const use = this.#sessions.get(session);
    if (use === undefined) return undefined;
    use.usedAt = this.#limits.clock.now();
    this.#sessions.delete(session);
    this.#sessions.set(session, use);
    return use;
  }

  #count(matches: (session: Session) => boolean): number {
    return [...this.#sessions.keys()].filter(matches).length;
  }

  #callersBySize(): readonly (string | undefined)[] {
    const counts = new Map<string | undefined, number>();
    for (const { caller } of this.#sessions.keys()) counts.set(caller, (counts.get(caller) ?? 0) + 1);
    return [...counts].toSorted(([, one], [, other]) => other - one).map(([caller]) => caller);
  }

  #closeOldest(matches: (session: Session) => boolean): boolean {
    for (const [session, { open }] of this.#sessions) {
      if (open > 0 || !matches(session)) continue;
      this.#end(session);
      return true;
    }
    return false;
  }

  #closeIdle(): void {
    const { clock, idleMs } = this.#limits;
    for (const [session, { usedAt, open }] of this.#sessions)
      if (open === 0 && clock.now() - usedAt >= idleMs) this.#end(session);
  }

  #end(session: Session): void {
    this.remove(session);
    session.server.close().catch(this.#limits.onError);
  }

  /** Closes idle sessions even if there are no requests. One timer serves all sessions. */
  #schedule(): void {
    if (this.#cancelTimer !== undefined) return;
    const { clock, idleMs } = this.#limits;
    const close = (): void => {
      this.#cancelTimer = undefined;
      this.#closeIdle();
      if (this.#sessions.size > 0) this.#schedule();
    };
    this.#cancelTimer = clock.schedule(clock.now() + idleMs, close, { background: true });
  }
}

/** Returns the response with a body that calls `done` when it has been read, has failed or is cancelled. */
function withEnd(response: Response, body: ReadableStream<Uint8Array>, done: () => void): Response {
  const reader = body.getReader();
  const watched = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { done: isOver, value } = await reader.read();
        if (!isOver) return controller.enqueue(value);
        done();
        controller.close();
      } catch (error) {
        done();
        controller.error(error);
      }
    },
    cancel: (reason) => {
      done();
      return reader.cancel(reason);
    },
  });
  return new Response(watched, response);
}
