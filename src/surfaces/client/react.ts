import {
  createContext,
  createElement,
  useContext,
  useMemo,
  useSyncExternalStore,
  type ReactElement,
  type ReactNode,
} from "react";
import type { Delta, Event, RunResult, SessionEntry, TaskId } from "../../kernel/index.ts";
import type { Query, Result } from "../server/route-values.ts";
import { LiveText } from "../view/live-text.ts";
import type { Client, ClientApproval, ClientRun } from "./client.ts";

const ClientContext = createContext<Client | null>(null);

/** Properties of {@link ReeveProvider}. */
export interface ReeveProviderProps {
  /** A client of `createClient`. */
  readonly client: Client;
  readonly children?: ReactNode;
}

/** Gives the hooks below it their client. */
export function ReeveProvider({ client, children }: ReeveProviderProps): ReactElement {
  return createElement(ClientContext, { value: client }, children);
}

/** Returns the client of the nearest {@link ReeveProvider}, for calls such as `client.runs.cancel(runId)`. */
export function useClient(): Client {
  const client = useContext(ClientContext);
  if (client === null)
    throw new Error("missing client: wrap the component in <ReeveProvider client={createClient(...)}>");
  return client;
}

/** What every hook returns beside its data. */
export interface HookState {
  /** Whether the data has not been read yet. */
  readonly isLoading: boolean;
  /** Whether the server answers. While it does not answer, the last data are kept. */
  readonly isConnected: boolean;
  /** The error because of which the data can no longer be read or followed. `null` if there is none. */
  readonly error: Error | null;
}

/** The state of {@link useRun}. */
export interface UseRun extends HookState {
  readonly run: ClientRun | undefined;
  /** The newest events, at most `maxEvents`. */
  readonly events: readonly Event[];
  /** The text that the run's agent is writing now. Empty between its messages. */
  readonly text: string;
  /** The result of the ended run. */
  readonly result: RunResult | undefined;
  /** The open questions of the run. */
  readonly approvals: readonly ClientApproval[];
}

/** The state of {@link useRuns}. */
export interface UseRuns extends HookState {
  readonly runs: readonly ClientRun[];
}

/** The state of {@link useInbox}. */
export interface UseInbox extends HookState {
  readonly inbox: Result<"GET", "/api/inbox"> | undefined;
}

/** The state of {@link useSession}. */
export interface UseSession extends HookState {
  /** The entries of the conversation, from its beginning to the current entry. */
  readonly entries: readonly SessionEntry[];
  /** The run of the session that is executed or waits. */
  readonly run: ClientRun | undefined;
  /** What the agent of that run is writing. */
  readonly text: string;
}

/** Milliseconds in which all changes are combined to one rendering. */
const frameMs = 16;
/** Milliseconds in which all events are combined to one read of a list. */
const settleMs = 250;
const defaultMaxEvents = 1_000;

/**
 * Follows a run: its status, its newest events, the text that its agent is writing, its questions and its result.
 *
 * @example
 * ```ts
 * import { useRun } from "reeve/react";
 *
 * export function Answer({ runId }: { readonly runId: string }) {
 *   const { run, text, result } = useRun(runId);
 *   return result === undefined ? `${run?.status ?? "loading"}: ${text}` : String(result.output);
 * }
 * ```
 */
export function useRun(
  runId: string,
  { maxEvents = defaultMaxEvents }: { readonly maxEvents?: number } = {},
): UseRun {
  const client = useClient();
  return useFeed(useMemo(() => runFeed(client, runId, maxEvents), [client, runId, maxEvents]));
}

/** Lists runs, newest first, and keeps the list up to date. */
export function useRuns(query: Query<"GET", "/api/runs"> = {}): UseRuns {
  const client = useClient();
  const key = JSON.stringify(query);
  return useFeed(useMemo(() => runsFeed(client, JSON.parse(key) as typeof query), [client, key]));
}

/** Reads everything that waits for the caller, and updates it. */
export function useInbox(query: Query<"GET", "/api/inbox"> = {}): UseInbox {
  const client = useClient();
  const key = JSON.stringify(query);
  return useFeed(useMemo(() => inboxFeed(client, JSON.parse(key) as typeof query), [client, key]));
}

/** Follows a conversation: its entries, its active run, and the text that an agent is writing. */
export function useSession(sessionId: string): UseSession {
  const client = useClient();
  return useFeed(useMemo(() => sessionFeed(client, sessionId), [client, sessionId]));
}

/** A state that is followed as long as a component shows it. */
class Feed<State extends HookState> {
  #state: State;
  readonly #start: (feed: Feed<State>, signal: AbortSignal) => Promise<void>;
  readonly #listeners = new Set<() => void>();
  #stop: AbortController | undefined;
  /** Whether the listeners will be notified at the end of this frame. */
  #isDue = false;

  constructor(state: State, start: (feed: Feed<State>, signal: AbortSignal) => Promise<void>) {
    this.#state = state;
    this.#start = start;
  }

  readonly state = (): State => this.#state;

  /** Adds a subscriber. The first subscriber starts the feed; when the last one is removed, the feed stops. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#stop === undefined) this.#follow();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#stop?.abort();
      this.#stop = undefined;
    };
  };

  set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
    if (this.#isDue) return;
    this.#isDue = true;
    setTimeout(() => {
      this.#isDue = false;
      for (const listener of this.#listeners) listener();
    }, frameMs);
  }

  #follow(): void {
    const stop = new AbortController();
    this.#stop = stop;
    this.#start(this, stop.signal).catch((error: unknown) => {
      if (stop.signal.aborted) return;
      this.set({
        error: error instanceof Error ? error : new Error(String(error)),
        isLoading: false,
        isConnected: false,
      } as Partial<State>);
    });
  }
}

function useFeed<State extends HookState>(feed: Feed<State>): State {
  return useSyncExternalStore(feed.subscribe, feed.state, feed.state);
}

const initial: HookState = { isLoading: true, isConnected: false, error: null };

/** Returns callbacks that update `isConnected` of a feed when the server answers and when it does not. */
function connection<State extends HookState>(feed: Feed<State>, signal: AbortSignal) {
  const mark = (isConnected: boolean) => () => feed.set({ isConnected } as Partial<State>);
  return { signal, onOpen: mark(true), onLost: mark(false) };
}

function isOffline(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "offline";
}

/**
 * Returns a function that reads again, at most once in `settleMs`. A read that fails because the server does not
 * answer is repeated at the next change. `ended` rejects for any other failure.
 */
function repeatedReading(read: () => Promise<void>, signal: AbortSignal) {
  const failed = Promise.withResolvers<never>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const again = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (signal.aborted) return;
      read().catch((error: unknown) => {
        if (!signal.aborted && !isOffline(error)) failed.reject(error);
      });
    }, settleMs);
  };
  // The feed shows the failure. A feed that has stopped shows nothing.
  failed.promise.catch(() => undefined);
  return { again, failed: failed.promise };
}

function runFeed(client: Client, runId: string, maxEvents: number): Feed<UseRun> {
  const empty = { run: undefined, events: [], text: "", result: undefined, approvals: [] };
  return new Feed<UseRun>({ ...initial, ...empty }, async (feed, signal) => {
    const { runs } = client;
    const read = async (): Promise<void> => {
      const [run, approvals] = await Promise.all([
        runs.get(runId, { signal }),
        runs.approvals(runId, { signal }),
      ]);
      if (!signal.aborted) feed.set({ run, approvals, isLoading: false });
    };
    await read();
    const reading = repeatedReading(read, signal);
    const text = new WrittenText();
    // The state may have events from before a pause of the component.
    const from = (feed.state().events.at(-1)?.seq ?? -1) + 1;
    const follow = async (): Promise<void> => {
      for await (const item of runs.events(runId, { ...connection(feed, signal), from })) {
        text.add(item);
        if (!("seq" in item)) feed.set({ text: text.value });
        else {
          feed.set({ events: [...feed.state().events, item].slice(-maxEvents), text: text.value });
          reading.again();
        }
      }
      if (signal.aborted) return;
      const result = await runs.result(runId, { signal });
      await read();
      feed.set({ result, text: "" });
    };
    await Promise.race([follow(), reading.failed]);
  });
}

function runsFeed(client: Client, query: Query<"GET", "/api/runs">): Feed<UseRuns> {
  return new Feed<UseRuns>({ ...initial, runs: [] }, (feed, signal) =>
    followChanges(client, feed, signal, async () => {
      const { runs } = await client.runs.list(query, { signal });
      if (!signal.aborted) feed.set({ runs, isLoading: false });
    }),
  );
}

function inboxFeed(client: Client, query: Query<"GET", "/api/inbox">): Feed<UseInbox> {
  return new Feed<UseInbox>({ ...initial, inbox: undefined }, (feed, signal) =>
    followChanges(client, feed, signal, async () => {
      const inbox = await client.inbox.list(query, { signal });
      if (!signal.aborted) feed.set({ inbox, isLoading: false });
    }),
  );
}

/** Reads immediately, and again after each change of a run. */
async function followChanges<State extends HookState>(
  client: Client,
  feed: Feed<State>,
  signal: AbortSignal,
  read: () => Promise<void>,
  concerns: (run: ClientRun) => boolean = () => true,
): Promise<void> {
  const reading = repeatedReading(read, signal);
  const follow = async (): Promise<void> => {
    await read();
    await changesOf(client).follow({
      ...connection(feed, signal),
      onRun: (run) => {
        if (run === undefined || concerns(run)) reading.again();
      },
    });
  };
  await Promise.race([follow(), reading.failed]);
}

interface ChangesReader {
  readonly signal: AbortSignal;
  readonly onOpen: () => void;
  readonly onLost: () => void;
  /** Receives each run that changes, and `undefined` when changes may have been missed. */
  readonly onRun: (run: ClientRun | undefined) => void;
}

/**
 * The changes of all runs. All hooks of a client share one stream of changes, because browsers limit the number of
 * connections to a server.
 */
class SharedChanges {
  readonly #client: Client;
  readonly #readers = new Set<ChangesReader>();
  #isOpen = false;
  #stop = new AbortController();
  #following: Promise<void> | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Resolves when the signal of the reader aborts. Rejects if the server refuses the stream. */
  async follow(reader: ChangesReader): Promise<void> {
    this.#readers.add(reader);
    if (this.#isOpen) reader.onOpen();
    const left = Promise.withResolvers<void>();
    const leave = (): void => left.resolve();
    reader.signal.addEventListener("abort", leave, { once: true });
    try {
      this.#following ??= this.#read();
      await Promise.race([this.#following, left.promise]);
    } finally {
      reader.signal.removeEventListener("abort", leave);
      this.#readers.delete(reader);
      if (this.#readers.size === 0) this.#end();
    }
  }

  async #read(): Promise<void> {
    const each = (tell: (reader: ChangesReader) => void, isOpen: boolean) => () => {
      this.#isOpen = isOpen;
      for (const reader of this.#readers) tell(reader);
    };
    const changes = this.#client.runs.changes({
      signal: this.#stop.signal,
      onOpen: each((reader) => reader.onOpen(), true),
      onLost: each((reader) => reader.onLost(), false),
    });
    for await (const run of changes) for (const { onRun } of this.#readers) onRun(run);
  }

  #end(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#isOpen = false;
    // The next reader opens a new connection. A failure has reached the readers.
    this.#following?.catch(() => undefined);
    this.#following = undefined;
  }
}

const shared = new WeakMap<Client, SharedChanges>();

function changesOf(client: Client): SharedChanges {
  const known = shared.get(client) ?? new SharedChanges(client);
  shared.set(client, known);
  return known;
}

function sessionFeed(client: Client, sessionId: string): Feed<UseSession> {
  const empty = { entries: [], run: undefined, text: "" };
  return new Feed<UseSession>({ ...initial, ...empty }, async (feed, signal) => {
    const following = new Map<string, Promise<void>>();
    const follow = async (run: ClientRun): Promise<void> => {
      const text = new WrittenText();
      const options = { ...connection(feed, signal) };
      for await (const item of client.runs.events(run.runId, options)) {
        text.add(item);
        if (text.value !== feed.state().text) feed.set({ text: text.value });
      }
      feed.set({ text: "" });
    };
    const read = async (): Promise<void> => {
      const [entries, { runs }] = await Promise.all([
        client.sessions.path(sessionId, {}, { signal }),
        client.runs.list({ sessionId, limit: 1 }, { signal }),
      ]);
      if (signal.aborted) return;
      const [newest] = runs;
      const run = newest?.endedAt === null ? newest : undefined;
      feed.set({ entries, run, isLoading: false });
      if (run === undefined || following.has(run.runId)) return;
      const followed = follow(run).finally(() => following.delete(run.runId));
      following.set(run.runId, followed);
      // The list of runs says how the run ended, and the stream of changes says that the server is lost.
      followed.catch(() => undefined);
    };
    await followChanges(client, feed, signal, read, (run) => run.sessionId === sessionId);
  });
}

/** The text that the root task of a run is writing now. */
class WrittenText {
  readonly #live = new LiveText();
  #root: TaskId | undefined;

  get value(): string {
    return this.#root === undefined ? "" : (this.#live.of(this.#root)?.text ?? "");
  }

  add(item: Event | Delta): void {
    if (!("seq" in item)) {
      this.#live.add(item);
      return;
    }
    this.#root ??= item.taskId;
    if (item.type === "message_end" || item.type === "task_end") this.#live.endMessage(item.taskId);
  }
}
