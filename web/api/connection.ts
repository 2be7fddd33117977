import { StreamParser, type StreamMessage } from "../../src/surfaces/view/stream-parser.ts";
import { computed, signal } from "@preact/signals";

/** Whether the server answers. If not: since when, and when the page tries again (epoch milliseconds). */
export type Connection =
  | { readonly state: "connecting" }
  | { readonly state: "live" }
  | { readonly state: "offline"; readonly since: number; readonly nextTryAt: number }
  | { readonly state: "locked" };

export const connection = signal<Connection>({ state: "connecting" });

/** Whether the server does not answer. The page then cannot send orders. */
export const isOffline = computed(() => connection.value.state === "offline");

/** Sequence number of the shown event of the run. `null` if no run is shown. */
export const shownEvent = signal<number | null>(null);

const retries = new Set<() => void>();

/** Ends the waiting times of all streams, so that they connect immediately. */
export function tryNow(): void {
  for (const retry of retries) retry();
}

const firstDelayMs = 500;
const longestDelayMs = 8_000;
const longestWorkMs = 4;

export interface StreamOptions {
  /**
   * Returns the address for a connection. It is called for each connection, so that a reader resumes at its
   * position.
   */
  readonly address: () => string;
  readonly onMessage: (message: StreamMessage) => void;
  /** The server answers again. */
  readonly onOpen?: () => void;
  /** Whether the stream is complete, so that the page does not connect again. */
  readonly isOver?: () => boolean;
  readonly signal: AbortSignal;
}

/**
 * Follows server-sent events until the signal aborts. If the connection is lost, it connects again with a growing
 * delay. The header `Last-Event-ID` contains the last id, so that each event arrives only once.
 */
export async function follow(options: StreamOptions): Promise<void> {
  const { signal: stop, isOver } = options;
  let lastId: string | null = null;
  let delay = firstDelayMs;
  while (!stop.aborted) {
    try {
      lastId = await readOnce(options, lastId, () => {
        delay = firstDelayMs;
      });
      if (isOver?.() === true) return;
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof Refused) return refused(error);
      if (!(error instanceof Unanswered)) throw error;
    }
    if (stop.aborted) return;
    markOffline(delay);
    await pause(delay, stop);
    delay = Math.min(longestDelayMs, delay * 2);
  }
}

function refused({ status }: Refused): void {
  if (status === 401) connection.value = { state: "locked" };
}

class Refused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the server refused the stream with status ${status}`);
    this.status = status;
  }
}

/** The server did not answer. */
class Unanswered extends Error {}

/** Reads one connection to its end. Returns the last id. */
async function readOnce(
  options: StreamOptions,
  lastId: string | null,
  onAnswer: () => void,
): Promise<string | null> {
  const { address, onOpen, signal: stop } = options;
  const headers = { accept: "text/event-stream", ...(lastId !== null && { "last-event-id": lastId }) };
  const response = await answer(address(), { cache: "no-store", signal: stop, headers });
  if (response.status >= 400 && response.status < 500 && response.status !== 429)
    throw new Refused(response.status);
  if (!response.ok) throw new Unanswered();
  onAnswer();
  if (connection.value.state !== "live") connection.value = { state: "live" };
  onOpen?.();
  const parser = new StreamParser(lastId);
  if (response.body !== null) await readAll(response.body, parser, options);
  return parser.lastId;
}

/** Reads a body to its end. After some milliseconds of work it lets the page draw, however much has arrived. */
async function readAll(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  parser: StreamParser,
  { onMessage, signal: stop }: StreamOptions,
): Promise<void> {
  let resumedAt = performance.now();
  for await (const piece of pieces(body))
    for (const message of parser.messages(piece)) {
      if (stop.aborted) return;
      onMessage(message);
      if (performance.now() - resumedAt < longestWorkMs) continue;
      await new Promise((resolve) => setTimeout(resolve, 0));
      resumedAt = performance.now();
    }
}

async function answer(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...options, credentials: "same-origin" });
  } catch {
    throw new Unanswered();
  }
}

/** Yields the texts of a body. Ends when the connection is lost; the caller then resumes with the last id. */
async function* pieces(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncIterable<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value = "" } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done) return;
    yield value;
  }
}

function markOffline(delay: number): void {
  const now = Date.now();
  const { value } = connection;
  const since = value.state === "offline" ? value.since : now;
  connection.value = { state: "offline", since, nextTryAt: now + delay };
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      retries.delete(done);
      stop.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    retries.add(done);
    stop.addEventListener("abort", done, { once: true });
  });
}
