import { Fault, type Runtime } from "../../../kernel/index.ts";
import { scopeOf, type Access } from "../access/access.ts";
import type { AccessGate } from "../access/gate.ts";
import { RunChanges } from "./run-changes.ts";
import { RunHub } from "./run-hub.ts";
import { SseStream } from "./sse-stream.ts";

export interface StreamLimits {
  /** Maximum number of open streams of the server. */
  readonly maxStreams: number;
  /** Maximum number of open streams of one token. */
  readonly maxStreamsPerToken: number;
  /**
   * Number of bytes that a stream buffers for a reader that does not read. If there are more, the reader is
   * disconnected.
   */
  readonly maxQueuedBytes: number;
  /** Interval of heartbeats. A reader that has not read for one to two intervals is disconnected. */
  readonly heartbeatMs: number;
  /** Interval at which the server checks for changed runs, as long as a stream needs them. */
  readonly changesMs: number;
}

/** A response that stays open: a stream, or a response for a caller that waits for a result. */
interface OpenResponse {
  readonly access: Access;
  /** Called with each heartbeat. */
  tick(): void;
  /** Ends the response before its work is finished. */
  endEarly(): void;
}

/** A caller that waits for a result. */
export interface HeldResponse {
  /** Aborts if the caller must not wait any longer, because the server drains or the token was revoked. */
  readonly signal: AbortSignal;
  /** Ends the wait. */
  release(): void;
}

export interface OpenOptions {
  /** Headers of the response, in addition to the usual headers of a stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether the connection is broken off when the server ends the stream before its work is finished. This is for
   * protocols whose clients treat the end of a response as the end of the answer. Default: `false`.
   */
  readonly isCut?: boolean;
  /** The bytes that are sent first. Default: the delay after which a disconnected client should connect again. */
  readonly opening?: Uint8Array;
}

/** Starts the work of a stream. The stream ends when the promise settles. */
type Follow = (stream: SseStream) => Promise<void>;

/** All open streams of a server, with their limits, their heartbeats and shared objects. */
export class OpenStreams {
  readonly hub = new RunHub();
  readonly #limits: StreamLimits;
  readonly #gate: AccessGate;
  readonly #report: (error: unknown) => void;
  readonly #open = new Set<OpenResponse>();
  readonly #changes: RunChanges;
  #timer: NodeJS.Timeout | undefined;

  /** `runtime` sees the runs of all tenants. */
  constructor(runtime: Runtime, limits: StreamLimits, gate: AccessGate, report: (error: unknown) => void) {
    this.#changes = new RunChanges(runtime, limits.changesMs, report);
    this.#limits = limits;
    this.#gate = gate;
    this.#report = report;
  }

  /** Opens a stream for a response. Throws `rate_limited` if too many streams are open. */
  open(
    access: Access,
    disconnect: (() => void) | undefined,
    follow: Follow,
    { headers = {}, isCut = false, opening = retryLater }: OpenOptions = {},
  ): Response {
    this.requireRoom(access);
    const stream = new SseStream({
      maxQueuedBytes: this.#limits.maxQueuedBytes,
      onEnd: () => this.#forget(entry),
      ...(disconnect !== undefined && { disconnect }),
    });
    const entry: OpenResponse = {
      access,
      tick: () => stream.tick(),
      endEarly: () => (isCut ? stream.disconnect() : stream.end()),
    };
    this.#add(entry);
    // The first bytes tell the client that the stream is open.
    if (opening.byteLength > 0) stream.push(opening);
    void this.#follow(stream, follow);
    return new Response(stream.body, { headers: { ...streamHeaders, ...headers } });
  }

  /**
   * Lets a caller wait for a result without a stream. The waiting response counts as an open stream. Throws
   * `rate_limited` if too many streams are open.
   */
  hold(access: Access): HeldResponse {
    this.requireRoom(access);
    const ended = new AbortController();
    const entry: OpenResponse = { access, tick: () => undefined, endEarly: () => ended.abort() };
    this.#add(entry);
    return { signal: ended.signal, release: () => this.#forget(entry) };
  }

  #add(entry: OpenResponse): void {
    this.#open.add(entry);
    this.#timer ??= setInterval(() => this.#tick(), this.#limits.heartbeatMs).unref();
  }

  /** Returns the changes of the runs that a caller may see. */
  changes(access: Access): Pick<RunChanges, "listen"> {
    const scope = scopeOf(access);
    return { listen: (listener, signal) => this.#changes.listen(listener, signal, scope) };
  }

  /** Checks for changed runs immediately, because a request may have changed one. */
  poke(): void {
    this.#changes.poke();
  }

  /** Ends all streams. Their clients resume at another server, or when this server has restarted. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const entry of this.#open) entry.endEarly();
  }

  async #follow(stream: SseStream, follow: Follow): Promise<void> {
    try {
      await follow(stream);
    } catch (error) {
      if (!stream.isOver && !(Fault.is(error) && error.code === "closed")) this.#report(error);
    } finally {
      stream.end();
    }
  }

  /**
   * Throws `rate_limited` if too many streams are open. For a caller that changes something before it opens a
   * stream.
   */
  requireRoom({ tokenId, name }: Access): void {
    const { maxStreams, maxStreamsPerToken } = this.#limits;
    let ofToken = 0;
    for (const { access } of this.#open) if (access.tokenId === tokenId) ofToken++;
    if (this.#open.size < maxStreams && ofToken < maxStreamsPerToken) return;
    const [limit, owner] =
      ofToken < maxStreamsPerToken
        ? [maxStreams, "this server"]
        : [maxStreamsPerToken, `token ${JSON.stringify(name)}`];
    throw new Fault("rate_limited", `${owner} has ${limit} open streams; close one before you open another`, {
      details: { maxStreams: limit, retryAfter: 1 },
    });
  }

  #forget(entry: OpenResponse): void {
    this.#open.delete(entry);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    for (const entry of this.#open) entry.tick();
    this.#endRevoked().catch(this.#report);
  }

  /** Ends the streams of tokens that were revoked or have expired. */
  async #endRevoked(): Promise<void> {
    const byToken = Map.groupBy(this.#open, ({ access }) => access.tokenId);
    for (const entries of byToken.values()) {
      const [first] = entries;
      if (first === undefined || (await this.#gate.isValid(first.access))) continue;
      for (const entry of entries) entry.endEarly();
    }
  }
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  // Proxies such as nginx must not collect the events.
  "x-accel-buffering": "no",
};

const retryLater = new TextEncoder().encode("retry: 1000\n\n");

/** Returns the sequence number of the first event to send: the one after the last event that a client has received. */
export function nextSeq(lastEventId: string | null, from: number | undefined): number {
  if (lastEventId === null || lastEventId === "") return from ?? 0;
  if (/^\d{1,15}$/u.test(lastEventId)) return Number(lastEventId) + 1;
  throw new Fault(
    "invalid_argument",
    `invalid Last-Event-ID ${JSON.stringify(lastEventId)}: expected the seq of an event`,
  );
}
