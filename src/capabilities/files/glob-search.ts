import { Worker } from "node:worker_threads";
import { Fault, type CancelSignal } from "../../kernel/index.ts";

export interface GlobQuery {
  readonly pattern: string;
  /** The folder it is matched from. */
  readonly cwd: string;
  readonly ignore: readonly string[];
}

/** In a thread: a glob that takes for ever, which is the model's or that of a `.gitignore`, stops with it, and stops nothing else. */
const program = `
  const { parentPort, workerData: { library, pattern, options } } = require("node:worker_threads");
  void import(library).then(async ({ glob }) => parentPort.postMessage(await glob(pattern, options)));
`;

/** The files that match, as paths from `cwd`. Links below it are not followed; one that the pattern begins with is. */
export async function globSearch(query: GlobQuery, signal: CancelSignal): Promise<readonly string[]> {
  const { pattern, cwd, ignore } = query;
  const options = { cwd, ignore, dot: true, expandDirectories: false, followSymbolicLinks: false };
  const library = import.meta.resolve("tinyglobby");
  signal.throwIfAborted();
  // What the process was started with, such as --input-type, may not fit a thread.
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
      reject(new Fault("tool_failed", "the search ended without an answer"));
    });
  });
  try {
    return await found;
  } finally {
    await worker.terminate();
  }
}
