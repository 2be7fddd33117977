import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { RunId } from "../kernel/index.ts";
import { ordersVariable, readReport, type WorkerOrders } from "./worker-duty.ts";

/** Outcome of a worker process: it reported its runs, it was killed at a write, or it failed. */
export type WorkerEnd =
  | { readonly kind: "finished"; readonly runs: readonly RunId[]; readonly kinds: readonly string[] }
  | { readonly kind: "killed"; readonly write: string }
  | { readonly kind: "failed"; readonly reason: string };

/** A worker in a separate process that runs a script which calls `runWorkerDuty`. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly ended: Promise<WorkerEnd>;
  #output = "";
  #errors = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => void (this.#output += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => void (this.#errors += text));
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => resolve({ kind: "failed", reason: error.message }));
      child.once("close", (code, signal) => resolve(this.#readEnd(code, signal)));
    });
  }

  /**
   * Starts a worker process. `cache` is a folder for compiled code, which later processes of the same script reuse.
   * If the variable NODE_COMPILE_CACHE is set, its folder is used instead.
   */
  static start(script: URL, orders: WorkerOrders, cache: string): WorkerProcess {
    const { NODE_OPTIONS: _options, ...inherited } = process.env;
    const env = { NODE_COMPILE_CACHE: cache, ...inherited, [ordersVariable]: JSON.stringify(orders) };
    const child = spawn(process.execPath, [fileURLToPath(script)], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new WorkerProcess(child);
  }

  /**
   * Resolves once the process has written `words` to stderr. Rejects if the process ends or `boundMs` milliseconds pass
   * first.
   */
  hasSaid(words: string, boundMs = 120_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const give = (): void => reject(new Error(`the worker did not write ${words}; ${this.#said()}`));
      const bound = setTimeout(give, boundMs);
      const look = (): void => {
        if (!this.#errors.includes(words)) return;
        clearTimeout(bound);
        this.#child.stderr?.off("data", look);
        resolve();
      };
      this.#child.stderr?.on("data", look);
      void this.ended.then(give);
      look();
    });
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT" | "SIGTERM"): void {
    if (!this.isOver) this.#child.kill(name);
  }

  /**
   * Waits for the process to end and returns its outcome. Kills the process and returns a failure after `boundMs`
   * milliseconds.
   */
  async endWithin(boundMs: number): Promise<WorkerEnd> {
    let late = false;
    const bound = setTimeout(() => {
      late = true;
      this.signal("SIGKILL");
    }, boundMs);
    const end = await this.ended;
    clearTimeout(bound);
    if (!late) return end;
    return { kind: "failed", reason: `the worker did not finish within ${boundMs} ms; ${this.#said()}` };
  }

  #readEnd(code: number | null, signal: NodeJS.Signals | null): WorkerEnd {
    const killed = /^killed (.+)$/m.exec(this.#errors)?.[1];
    if (signal === "SIGKILL" && killed !== undefined) return { kind: "killed", write: killed };
    if (code === 0) {
      const report = readReport(this.#output);
      if (report !== undefined) return { kind: "finished", ...report };
      const fix = "call runWorkerDuty() in it, and await it";
      return { kind: "failed", reason: `the worker script reported no work; ${fix}; ${this.#said()}` };
    }
    return { kind: "failed", reason: `the worker ended with ${signal ?? `code ${code}`}; ${this.#said()}` };
  }

  #said(): string {
    return `stderr: ${this.#errors.trim() || "nothing"}`;
  }
}
