import { Fault } from "../../../../kernel/index.ts";
import type { Database } from "./database.ts";

export interface ChangeWatchOptions {
  readonly database: Database;
  readonly everyMs: number;
  /** Called after another process wrote to the file. If it returns `false`, it is called again at the next poll. */
  readonly onWrite: () => boolean;
  /** Called at every eighth poll, for changes that leave no trace in the file, such as the death of a worker. */
  readonly onRound: () => void;
  /** Called once if the file was deleted or replaced. The watch then ends. */
  readonly onLost: (fault: Fault) => void;
}

/** Number of polls per call of `onRound`. */
const looksPerRound = 8;

/**
 * Detects writes of other processes while at least one caller holds the watch. It polls `PRAGMA data_version`, which
 * SQLite changes with every transaction of another connection. Writes of this process are announced directly.
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
    const { database, onWrite, onRound, onLost } = this.#options;
    try {
      database.verify();
      const version = database.version();
      if (this.#version === undefined || version === this.#version || onWrite()) this.#version = version;
      if (++this.#looks % looksPerRound === 0) onRound();
    } catch (error) {
      // Otherwise the file is locked for a moment, or it fails. In the second case readers and writers get the error. The
      // next poll tries again.
      if (!Fault.is(error) || error.code !== "store_lost") return;
      this.close();
      onLost(error);
    }
  };
}
