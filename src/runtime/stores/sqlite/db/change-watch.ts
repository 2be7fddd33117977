import type { Database } from "./database.ts";

export interface ChangeWatchOptions {
  readonly database: Database;
  readonly everyMs: number;
  /** Another process wrote something. False: it wants to be told again. */
  readonly onWrite: () => boolean;
  /** For what leaves no trace in the file; asked now and then. */
  readonly onRound: () => void;
}

/** Of so many looks one is a round. */
const looksPerRound = 8;

/**
 * Notices what other processes write, while someone wants to know: SQLite counts their transactions (`PRAGMA data_version`), and its
 * count is looked at every few milliseconds. What this process writes is told by itself.
 */
export class ChangeWatch {
  readonly #options: ChangeWatchOptions;
  #holders = 0;
  #timer: NodeJS.Timeout | undefined;
  #version: number | undefined;
  #looks = 0;

  constructor(options: ChangeWatchOptions) {
    this.#options = options;
  }

  /** Watches until what it returns is called. */
  hold(): () => void {
    if (this.#holders++ === 0) this.#start();
    let isHeld = true;
    return () => {
      if (isHeld && --this.#holders === 0) this.close();
      isHeld = false;
    };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#version = undefined;
  }

  #start(): void {
    if (!this.#options.database.isOpen) return;
    this.#look();
    this.#timer = setInterval(this.#look, this.#options.everyMs).unref();
  }

  readonly #look = (): void => {
    const { database, onWrite, onRound } = this.#options;
    try {
      const version = database.version();
      if (this.#version === undefined || version === this.#version || onWrite()) this.#version = version;
      if (++this.#looks % looksPerRound === 0) onRound();
    } catch {
      // Locked for an instant, or in trouble that those who read or write are told of: the next look finds it.
      return;
    }
  };
}
