import { DatabaseSync } from "node:sqlite";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** After so many pages of log, by estimate and on average, they are written back into the file. */
const everyPages = 4_000;
/** A log that has grown so long in spite of that, or by several processes, is started anew, which holds up writers for a moment. */
const mostPages = 16_000;
const pageBytes = 4_096;
/** A transaction writes so many besides what it holds. */
const morePages = 2;

interface CheckpointTask {
  readonly checkpointer: "reeve";
  readonly path: string;
}

/**
 * Writes SQLite's log back into the file from a thread of its own, with a connection of its own: done in the way of a write, as SQLite does
 * by itself, it stops the event loop for tens of milliseconds at a time. The thread is started when there is enough to do: to start one
 * takes a processor as long.
 */
export class Checkpointer {
  readonly #path: string;
  #pages = 0;
  #due = duePages();
  #worker: Worker | undefined;
  #isBusy = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** A transaction of about so many bytes was written. */
  note(bytes: number): void {
    this.#pages += morePages + bytes / pageBytes;
    if (this.#pages < this.#due || this.#isBusy) return;
    this.#pages = 0;
    this.#due = duePages();
    this.#isBusy = true;
    try {
      this.#worker ??= this.#start();
      this.#worker.postMessage("checkpoint", []);
    } catch {
      // Where there may be no threads, SQLite writes the log back by itself when it has grown very long.
      return;
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker === undefined) return;
    const gone = new Promise((resolve) => {
      worker.once("exit", resolve);
    });
    worker.ref();
    worker.postMessage("close", []);
    await gone;
  }

  #start(): Worker {
    const task: CheckpointTask = { checkpointer: "reeve", path: this.#path };
    // What the process was started with, such as --input-type, may not fit a thread.
    const worker = new Worker(new URL(import.meta.url), { workerData: task, execArgv: [] });
    worker.unref();
    worker.on("message", () => {
      this.#isBusy = false;
    });
    // Such as a full disk. Those who write are told of it themselves.
    worker.on("error", () => {
      this.#worker = undefined;
      this.#isBusy = false;
    });
    return worker;
  }
}

/** Never the same for two processes: those who write at one pace would all start a thread at once. */
function duePages(): number {
  return everyPages * (0.75 + Math.random() / 2);
}

function isTask(data: unknown): data is CheckpointTask {
  return typeof data === "object" && data !== null && "checkpointer" in data && data.checkpointer === "reeve";
}

function serve({ path }: CheckpointTask): void {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA busy_timeout = 2000");
  parentPort?.on("message", (message: unknown) => {
    if (message === "close") {
      database.close();
      parentPort?.close();
      return;
    }
    const row = database.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
    if (Number(row?.["log"] ?? 0) > mostPages) database.exec("PRAGMA wal_checkpoint(RESTART)");
    parentPort?.postMessage("done", []);
  });
}

if (!isMainThread && isTask(workerData)) serve(workerData);
