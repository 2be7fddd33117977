import { Worker } from "node:worker_threads";
import { Fault, type CancelSignal } from "../../kernel/index.ts";

/** Query of `globSearch()`. */
export interface GlobQuery {
  readonly pattern: string;
  /** Folder to which the pattern is relative. */
  readonly cwd: string;
  /** Globs of files to leave out. */
  readonly ignore: readonly string[];
}

/**
 * Code of the search thread. The glob comes from the model or a `.gitignore`; one that takes too long is stopped by
 * terminating the thread.
 */
const program = `
  const { parentPort, workerData: { library, pattern, options } } = require("node:worker_threads");
  void import(library).then(async ({ glob }) => parentPort.postMessage(await glob(pattern, options)));
`;

/**
 * Returns the files that match, as paths relative to `cwd`. Links below `cwd` are not followed, but a link at the start
 * of the pattern is.
 */
export async function globSearch(query: GlobQuery, signal: CancelSignal): Promise<readonly string[]> {
  const { pattern, cwd, ignore } = query;
  const options = { cwd, ignore, dot: true, expandDirectories: false, followSymbolicLinks: false };
  const library = import.meta.resolve("tinyglobby");
  signal.throwIfAborted();
  // execArgv is empty because options of the parent process, such as --input-type, may be invalid for a thread.
  const worker = new Worker(program, {
    eval: true,
    execArgv: [],
    workerData: { library, pattern, options },
  });
  const found = new Promise<readonly string[]>((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    worker.once("message", resolve);
    worker.once("error", (error) => reject(Fault.from(error)));
    worker.once("exit", () => {
      signal.removeEventListener("abort", stop);
      reject(new Fault("tool_failed", "the search thread ended without a result"));
    });
  });
  try {
    return await found;
  } finally {
    await worker.terminate();
  }
}
