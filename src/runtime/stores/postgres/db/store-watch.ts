import { Client } from "pg";
import type { StoreChange } from "../../../../kernel/index.ts";
import { applicationName, type Database } from "./database.ts";
import type { Notice } from "./transaction.ts";

export interface StoreWatchOptions {
  readonly database: Database;
  /** Interval at which `onWatch` is called, for readers of runs that other processes execute. */
  readonly watchEveryMs: number;
  readonly onWatch: () => Promise<void>;
  /** Interval at which `onPoll` is called, for work that was not announced by a notification. */
  readonly pollMs: number;
  readonly onPoll: () => Promise<void>;
  /** Called with a change that another process has announced. */
  readonly onNotice: (change: StoreChange) => void;
}

/** First delay between attempts to listen again, in milliseconds. */
const firstDelayMs = 100;
const longestDelayMs = 5_000;

/**
 * Detects what other processes wrote, while at least one caller holds the watch. Notifications arrive on a separate
 * connection. They only make the detection faster: behind a transaction pooler none arrives, and while the
 * connection is lost some are missed. Polling detects all changes.
 */
export class StoreWatch {
  readonly #options: StoreWatchOptions;
  #holders = 0;
  #timers: readonly NodeJS.Timeout[] = [];
  #client: Client | undefined;
  #listening: NodeJS.Timeout | undefined;
  #delayMs = firstDelayMs;
  #hasListened = false;

  constructor(options: StoreWatchOptions) {
    this.#options = options;
  }

  /** Starts watching. Returns a function that stops it. */
  hold(): () => void {
    if (this.#holders++ === 0) this.#start();
    let isHeld = true;
    return () => {
      if (isHeld && --this.#holders === 0) this.close();
      isHeld = false;
    };
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#listening);
    this.#timers = [];
    this.#hangUp();
  }

  #start(): void {
    const { database, watchEveryMs, onWatch, pollMs, onPoll } = this.#options;
    if (database.isClosed) return;
    this.#timers = [every(watchEveryMs, onWatch), every(pollMs, onPoll)];
    this.#hasListened = false;
    this.#listen();
  }

  readonly #listen = (): void => {
    const { database } = this.#options;
    const client = new Client({
      connectionString: database.options.url,
      keepAlive: true,
      connectionTimeoutMillis: database.options.timeoutMs,
      application_name: applicationName(database.options.schema),
    });
    this.#client = client;
    client.on("error", () => this.#listenLater(client));
    client.on("end", () => this.#listenLater(client));
    client.on("notification", ({ payload }) => this.#notice(payload));
    this.#connect(client).catch(() => this.#listenLater(client));
  };

  async #connect(client: Client): Promise<void> {
    await client.connect();
    // A reader that only waits must not keep the process alive.
    (client as Client & { readonly unref: () => void }).unref();
    await client.query(`LISTEN ${client.escapeIdentifier(this.#options.database.channel)}`);
    this.#delayMs = firstDelayMs;
    // What was announced while no connection listened is not notified any more.
    if (this.#hasListened) this.#options.onNotice({ kind: "other" });
    this.#hasListened = true;
  }

  #listenLater(client: Client): void {
    if (this.#client !== client) return;
    this.#hangUp();
    if (this.#timers.length === 0) return;
    this.#listening = setTimeout(this.#listen, this.#delayMs).unref();
    this.#delayMs = Math.min(longestDelayMs, this.#delayMs * 2);
  }

  #hangUp(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => undefined);
  }

  #notice(payload: string | undefined): void {
    const [holder, change, hasWorker = false] = JSON.parse(payload ?? "[]") as Notice | [];
    if (change === undefined || holder === this.#options.database.holder) return;
    const isWake = change.kind === "new" || change.kind === "mail";
    this.#options.onNotice(isWake ? { ...change, writer: hasWorker ? "worker" : "client" } : change);
  }
}

/** Calls the work at an interval, but not while an earlier call is in progress. */
function every(ms: number, work: () => Promise<void>): NodeJS.Timeout {
  let isWorking = false;
  const call = (): void => {
    if (isWorking) return;
    isWorking = true;
    work()
      // Readers and writers get the error themselves. The next call tries again.
      .catch(() => undefined)
      .finally(() => {
        isWorking = false;
      });
  };
  return setInterval(call, ms).unref();
}
