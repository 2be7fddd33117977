import { DatabaseSync } from "node:sqlite";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** Estimated number of WAL pages, on average, after which a checkpoint copies them into the file. */
const everyPages = 4_000;
/**
 * Size of the WAL in pages from which a checkpoint also restarts the log, which blocks writers for a moment. The
 * WAL can become so large if several processes write.
 */
const mostPages = 16_000;
const pageBytes = 4_096;
/** Estimated number of pages that a transaction writes in addition to its content. */
const morePages = 2;

interface CheckpointTask {
  readonly checkpointer: "reeve";
  readonly path: string;
}

/**
 * Runs WAL checkpoints in a thread with its own connection. A checkpoint inside a write, as SQLite does by default,
 * blocks the event loop for tens of milliseconds. The thread is started with the first checkpoint, because starting it
 * takes about as long.
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

  /** Records that a transaction wrote about this many bytes, and starts a checkpoint if it is due. */
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
      // If threads are not allowed, SQLite runs a checkpoint itself when the WAL has grown very long.
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
    // Flags of the process, such as --input-type, may be invalid for a thread.
    const worker = new Worker(new URL(import.meta.url), { workerData: task, execArgv: [] });
    worker.unref();
    worker.on("message", () => {
      this.#isBusy = false;
    });
    // For example a full disk. The next write reports the same error to its caller.
    worker.on("error", () => {
      this.#worker = undefined;
      this.#isBusy = false;
    });
    return worker;
  }
}

/**
 * Returns the number of pages after which a checkpoint is due. It is partly random, so that processes that write at
 * the same pace do not all start a thread at once.
 */
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
