import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { RunId } from "../kernel/index.ts";
import { ordersVariable, type WorkerOrders } from "./worker-duty.ts";

/** How a worker process ended: with a report, by its death, or badly. */
export type WorkerEnd =
  | { readonly kind: "finished"; readonly runs: readonly RunId[]; readonly writes: number }
  | { readonly kind: "killed"; readonly write: string }
  | { readonly kind: "failed"; readonly reason: string };

/** A worker in a process of its own, on a script that calls `workAsTold`. */
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

  /** `cache` is a folder in which the next process of the same script finds its code compiled. */
  static start(script: URL, orders: WorkerOrders, cache: string): WorkerProcess {
    const { NODE_OPTIONS: _options, ...inherited } = process.env;
    const env = { ...inherited, NODE_COMPILE_CACHE: cache, [ordersVariable]: JSON.stringify(orders) };
    const child = spawn(process.execPath, [fileURLToPath(script)], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new WorkerProcess(child);
  }

  /** Resolves when it has said this on stderr; rejects when it ended or `boundMs` went by without. */
  hasSaid(words: string, boundMs = 20_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const give = (): void => reject(new Error(`it has not said ${words}; ${this.#said()}`));
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

  /** How it ended by itself, or that it did not within `boundMs`; it is over either way. */
  async endWithin(boundMs: number): Promise<WorkerEnd> {
    let late = false;
    const bound = setTimeout(() => {
      late = true;
      this.signal("SIGKILL");
    }, boundMs);
    const end = await this.ended;
    clearTimeout(bound);
    if (!late) return end;
    return { kind: "failed", reason: `it did not finish within ${boundMs} ms; ${this.#said()}` };
  }

  #readEnd(code: number | null, signal: NodeJS.Signals | null): WorkerEnd {
    const killed = /^killed (.+)$/m.exec(this.#errors)?.[1];
    if (signal === "SIGKILL" && killed !== undefined) return { kind: "killed", write: killed };
    if (code === 0) {
      const last = this.#output.trim().split("\n").at(-1) ?? "";
      const { runs, writes } = JSON.parse(last === "" ? "{}" : last) as {
        runs?: readonly RunId[];
        writes?: number;
      };
      return { kind: "finished", runs: runs ?? [], writes: writes ?? 0 };
    }
    return { kind: "failed", reason: `it ended with ${signal ?? `code ${code}`}; ${this.#said()}` };
  }

  #said(): string {
    return `it said: ${this.#errors.trim() || "nothing"}`;
  }
}
